import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { families } from '../../src/facade/families/families.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
  await world.create('sources', { slug: 'shop' });
  for (const slug of ['one', 'two', 'three']) await world.create('destinations', { slug, url: `https://${slug}.example/` });
});
afterAll(() => world?.stop());

const call = (method: string, path: string, body?: object) => world.request(method, `/api/${path}`, { body });

test('every record of a list says to which organization it belongs', () => {
  const lists = families
    .flatMap(({ operations }) => operations)
    .filter(({ method, path }) => method === 'GET' && !path.includes('{') && path !== '/organizations');
  const items = lists.flatMap(({ operationId, answer: { schema } }) => {
    const fields = schema instanceof z.ZodObject ? Object.entries(schema.shape) : [];
    return fields.flatMap(([name, field]) => {
      const element = ['data', 'cronJobs'].includes(name) && field instanceof z.ZodArray ? field.element : null;
      return element instanceof z.ZodObject && 'id' in element.shape ? [[operationId, 'organizationId' in element.shape] as const] : [];
    });
  });
  expect(items.length).toBeGreaterThan(15);
  expect(items.filter(([, isOwned]) => !isOwned)).toEqual([]);
});

const source = { name: 'S' };
const destination = { name: 'D', url: 'https://d.example/' };
const transform = { name: 'T', code: 'payload' };
const channel = { name: 'C', type: 'email', config: { addresses: ['a@example.com'] } };

/** Each has the collection, what is made, the field and its synonym, and values of both that go together: the first is that of what is made. */
const synonyms: [string, object, string, string, [unknown, unknown][]][] = [
  [
    'sources',
    source,
    'enabled',
    'isActive',
    [
      [true, true],
      [false, false],
    ],
  ],
  [
    'destinations',
    destination,
    'enabled',
    'isActive',
    [
      [true, true],
      [false, false],
    ],
  ],
  [
    'notification-channels',
    channel,
    'enabled',
    'isActive',
    [
      [true, true],
      [false, false],
    ],
  ],
  [
    'sources',
    source,
    'dedupHeader',
    'dedupCustomHeader',
    [
      [null, null],
      ['x-id', 'x-id'],
      ['x-order', 'x-order'],
    ],
  ],
  [
    'sources',
    source,
    'dedupStrategy',
    'dedupEnabled',
    [
      ['auto', true],
      ['none', false],
    ],
  ],
  [
    'transforms',
    transform,
    'type',
    'transformType',
    [
      ['jsonata', 'jsonata'],
      ['liquid', 'liquid'],
    ],
  ],
];

describe.each(synonyms)('of %s (%j) the field %s', (collection, sent, field, synonym, values) => {
  const [[first] = [], [other, otherSynonym] = []] = values;
  const make = () => world.create(collection, sent);

  test.each(values)('as %j reads as its synonym does, whichever of them is sent', async (value, shown) => {
    for (const body of [{ [field]: value }, { [synonym]: shown }]) {
      const created = await world.create(collection, { ...sent, ...body });
      expect(created).toMatchObject({ [field]: value, [synonym]: shown });
      const record = await make();
      expect((await call('PATCH', `${collection}/${record.id}`, body)).body).toMatchObject({ [field]: value, [synonym]: shown });
    }
  });

  test('in a record that is sent back counts when it was changed, and so does its synonym', async () => {
    for (const change of [{ [field]: other }, { [synonym]: otherSynonym }]) {
      const record = await make();
      const back = await call('PATCH', `${collection}/${record.id}`, { ...record, ...change });
      expect([back.status, back.body[field], back.body[synonym]]).toEqual([200, other, otherSynonym]);
      const same = await call('PATCH', `${collection}/${record.id}`, back.body);
      expect([same.status, same.body[field]]).toEqual([200, other]);
    }
    expect(first).not.toEqual(other);
  });
});

test.each([
  ['sources', { ...source, enabled: true, isActive: false }],
  ['destinations', { ...destination, enabled: false, isActive: true }],
  ['notification-channels', { ...channel, enabled: false, isActive: true }],
  ['sources', { ...source, dedupHeader: 'x-a', dedupCustomHeader: 'x-b' }],
  ['transforms', { ...transform, type: 'liquid', transformType: 'jsonata' }],
  ['routes', { name: 'R', sourceId: 'shop', destinationIds: ['one', 'two'], destinationId: 'two' }],
])('a new one of %s that contradicts itself is refused: %j', async (collection, body) => {
  const answer = await call('POST', collection, body);
  expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  expect(answer.body.message).toContain('contradicts');
});

describe.each(['skip', 'overwrite', 'rename'])('an import with %s', (conflictStrategy) => {
  test.each([
    ['sources', 'enabled', { name: 'Kept', slug: 'kept', enabled: true, isActive: false }],
    ['sources', 'enabled', { name: 'Kept', slug: 'kept', enabled: false, isActive: true }],
    ['sources', 'dedupHeader', { name: 'Kept', slug: 'kept', dedupHeader: 'x-a', dedupCustomHeader: null }],
    ['sources', 'dedupHeader', { name: 'New', slug: 'new', dedupHeader: 'x-a', dedupCustomHeader: 'x-b' }],
    ['destinations', 'enabled', { ...destination, slug: 'one', enabled: true, isActive: false }],
    ['destinations', 'enabled', { ...destination, slug: 'one', enabled: false, isActive: true }],
    ['destinations', 'enabled', { ...destination, slug: 'new', enabled: false, isActive: true }],
  ])('refuses the record of %s whose names of %s contradict each other: %j', async (collection, field, record) => {
    if (collection === 'sources') await call('POST', 'sources', { name: 'Kept', slug: 'kept' });
    const list = async () =>
      (await call('GET', `${collection}?pageSize=100`)).body.data.map(({ updatedAt: _, ...each }: { updatedAt?: string }) => each);
    const before = await list();
    const { status, body } = await call('POST', `${collection}/import`, { [collection]: [record], conflictStrategy });
    expect([status, body.summary]).toEqual([200, { imported: 0, skipped: 0, overwritten: 0, failed: 1 }]);
    expect(body.errors).toMatchObject([{ code: 'VALIDATION_FAILED', message: expect.stringContaining(`${field} and `) }]);
    expect(body.errors[0].message).toContain('contradict');
    expect(await list()).toEqual(before);
  });

  test.each([
    ['two', ['one', 'two']],
    [null, ['one']],
    ['one', []],
  ])('refuses the route whose destinationSlug is %j of %j', async (destinationSlug, destinationSlugs) => {
    const routes = [{ name: 'R', sourceSlug: 'shop', destinationSlug, destinationSlugs }];
    const answer = await call('POST', 'routes/import', { routes, conflictStrategy });
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining('destinationSlug')]);
  });
});

test('the first destination of a route may be named by its id and by its slug', async () => {
  const { id } = (await call('GET', 'destinations/one')).body;
  for (const [i, body] of [
    { destinationIds: [id, 'two'], destinationId: 'one' },
    { destinationIds: ['one'], destinationId: id },
  ].entries()) {
    const route = await call('POST', 'routes', { name: `R${i}`, sourceId: 'shop', ...body });
    expect([route.status, route.body.destinationId]).toEqual([201, id]);
    expect((await call('DELETE', `routes/${route.body.id}`)).status).toBe(204);
  }
});

test.each([
  ['transforms/test', { code: '1', payload: {}, type: 'jsonata', transformType: 'javascript' }, 'type and transformType'],
  ['deliveries/bulk-replay', { ids: ['msg_a'], deliveryIds: ['msg_b'] }, 'ids and deliveryIds'],
])('%s refuses names of a field that contradict each other: %j', async (path, body, names) => {
  const answer = await call('POST', path, body);
  expect([answer.status, answer.body.code, answer.body.message]).toEqual([400, 'VALIDATION_FAILED', expect.stringContaining(names)]);
});

test.each([
  ['transforms/test', { code: '1', payload: {}, type: 'jsonata', transformType: 'jsonata' }],
  ['deliveries/bulk-replay', { ids: ['msg_a'], deliveryIds: ['msg_a'] }],
])('%s takes names of a field that agree: %j', async (path, body) => {
  expect((await call('POST', path, body)).status).toBe(200);
});

test('a source that is not to drop duplicates drops none, whatever strategy is beside it', async () => {
  const made = await world.create('sources', { dedupEnabled: false, dedupStrategy: 'payload_hash' });
  expect(made).toMatchObject({ dedupEnabled: false, dedupStrategy: 'none' });
});

describe('the destinations of a route', () => {
  const destinationId = async (slug: string) => (await call('GET', `destinations/${slug}`)).body.id;
  const made = async (body: object) => {
    const route = await world.create('routes', { sourceId: 'shop', ...body });
    return { route, remove: () => call('DELETE', `routes/${route.id}`) };
  };

  test('the destinations of a route may be sent as the one that it is', async () => {
    const { route, remove } = await made({ destinationId: 'one' });
    expect(route).toMatchObject({ destinationId: await destinationId('one'), destinationIds: [await destinationId('one')] });
    const [listed] = (await call('GET', 'routes')).body.data;
    expect(listed).toMatchObject({ destinationId: route.destinationId });
    await remove();
  });

  test.each([
    [{ destinationId: 'three' }, ['three', 'two']],
    [{ destinationId: 'two' }, ['two']],
    [{ destinationId: 'one' }, ['one', 'two']],
    [{ destinationIds: ['three'] }, ['three']],
    [{ destinationId: 'three', destinationIds: ['three', 'one'] }, ['three', 'one']],
  ])('one and two, with %j, become %j', async (change, slugs) => {
    const { route, remove } = await made({ destinationIds: ['one', 'two'] });
    const { body } = await call('PATCH', `routes/${route.id}`, change);
    expect(body.destinationIds).toEqual(await Promise.all(slugs.map(destinationId)));
    expect(body.destinationId).toBe(body.destinationIds[0]);
    await remove();
  });

  test('the destinations of a route are those that were changed in a record that is sent back', async () => {
    const { route, remove } = await made({ destinationIds: ['one', 'two'] });
    const three = await destinationId('three');
    const one = await call('PATCH', `routes/${route.id}`, { ...route, destinationIds: [three] });
    expect(one.body.destinationIds).toEqual([three]);
    const two = await call('PATCH', `routes/${route.id}`, { ...one.body, destinationId: route.destinationId });
    expect(two.body.destinationIds).toEqual([route.destinationId]);
    const both = await call('PATCH', `routes/${route.id}`, { destinationIds: ['two'], destinationId: 'three' });
    expect([both.status, both.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    await remove();
  });

  test('the destinations of a route are needed, and none is none', async () => {
    for (const body of [{}, { destinationId: '' }]) {
      const answer = await call('POST', 'routes', { name: 'R', sourceId: 'shop', ...body });
      expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
      expect(answer.body.message).toMatch(/destinationIds? /);
    }
  });
});

describe('a setting that Posthorn does not have', () => {
  const cron = { cronExpression: '0 0 * * *', url: 'https://c.example/' };
  test.each<[string, object, object, object]>([
    ['sources', source, { encryptFields: [], maskFields: null, transientMode: false }, { encryptFields: ['$.card'] }],
    ['sources', source, { maskFields: [] }, { maskFields: ['$.card'] }],
    ['sources', source, {}, { transientMode: true }],
    ['transforms', transform, { inputFormat: 'json', outputFormat: 'json' }, { inputFormat: 'xml' }],
    ['transforms', transform, {}, { outputFormat: 'form' }],
    ['cron', cron, { notifyOnFailure: false, notifyOnSuccess: false, notifyEmails: null, groupId: null }, { notifyOnFailure: true }],
    ['cron', cron, {}, { groupId: 'grp_1' }],
    ['event-types', {}, { defaultPriority: null, isPublic: false }, { isPublic: true }],
  ])('a setting that Posthorn does not have of %s (%j) is taken as off, %j, and refused as %j', async (collection, body, off, on) => {
    const name = collection === 'event-types' ? { name: `type_${Object.keys(on)[0]?.toLowerCase()}` } : { name: 'Set' };
    const refused = await call('POST', collection, { ...body, ...name, ...on });
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).toContain(Object.keys(on)[0]);
    const taken = await call('POST', collection, { ...body, ...name, ...off });
    expect(taken.status).toBe(201);
  });
});

test('a schema is changed with PUT as with PATCH', async () => {
  const schema = await world.create('schemas', { jsonSchema: { type: 'object' } });
  const { status, body } = await call('PUT', `schemas/${schema.id}`, { description: 'What an order is' });
  expect([status, body.description, body.jsonSchema]).toEqual([200, 'What an order is', { type: 'object' }]);
});

describe('sources that are exported and imported', () => {
  const exported = async (ids: string) => (await call('GET', `sources/export?ids=${ids}`)).body.sources;
  const imported = async (sources: object[], conflictStrategy = 'skip', more = {}) =>
    (await call('POST', 'sources/import', { sources, conflictStrategy, ...more })).body;

  test('sources that are exported and imported are the same but for the slug', async () => {
    const settings = {
      dedupHeader: 'x-id',
      rateLimitPerMinute: 60,
      ipFilterMode: 'denylist',
      ipDenylist: ['192.0.2.0/24'],
      allowedMethods: ['PUT'],
    };
    await world.create('sources', { slug: 'from', provider: 'gitlab', enabled: false, ...settings });
    const [record] = await exported('from');
    expect(await imported([{ ...record, slug: 'to' }])).toMatchObject({ success: true, details: { imported: [record.name] } });
    expect(await exported('to')).toEqual([{ ...record, slug: 'to' }]);
  });

  test('sources that are exported and imported without the signing secret that they have are disabled until it is sent, and keep a stored one', async () => {
    const secret = 'a-long-random-secret';
    await world.create('sources', { slug: 'signed', provider: 'github', signingSecret: secret });
    const [record] = await exported('signed');
    expect(JSON.stringify(record)).not.toContain(secret);
    const answer = await imported([{ ...record, slug: 'moved' }]);
    expect(answer.errors).toEqual([]);
    expect(answer.warnings).toEqual(['Source "moved" is disabled: send its signingSecret, then enable it.']);
    expect((await call('GET', 'sources/moved')).body).toMatchObject({ enabled: false, hasSigningSecret: false });
    const { hasSigningSecret: _, ...strict } = record;
    expect((await imported([{ ...strict, slug: 'strict' }])).warnings).toHaveLength(1);
    await imported([{ ...record, slug: 'sent', signingSecret: secret }]);
    expect((await call('GET', 'sources/sent')).body).toMatchObject({ enabled: true, signingSecretLast4: 'cret' });
    expect(await imported([{ ...record, name: 'Renamed' }], 'overwrite')).toMatchObject({
      details: { overwritten: ['Renamed'] },
      warnings: [],
    });
    expect((await call('GET', 'sources/signed')).body).toMatchObject({ name: 'Renamed', enabled: true, signingSecretLast4: 'cret' });
  });

  test('each count separately, and in a dry run nothing is written', async () => {
    const records = [
      { name: 'Fine', slug: 'fine' },
      { name: 'Foreign', slug: 'foreign', provider: 'mailchimp' },
    ];
    const dry = await imported(records, 'skip', { validateOnly: true });
    expect(dry).toMatchObject({
      success: false,
      summary: { imported: 1, failed: 1 },
      errors: [{ name: 'Foreign', code: 'VALIDATION_FAILED' }],
    });
    expect((await call('GET', 'sources/fine')).status).toBe(404);
  });
});

test('sources are deleted at once, unless one of them has routes', async () => {
  for (const slug of ['first', 'second', 'used']) await world.create('sources', { slug });
  const route = await world.create('routes', { sourceId: 'used', destinationIds: ['one'] });
  const refused = await call('DELETE', 'sources/bulk', { ids: ['first', 'used'] });
  expect([refused.status, refused.body.code]).toEqual([409, 'IN_USE']);
  expect((await call('GET', 'sources/first')).body.routeCount).toBe(0);
  expect((await call('GET', 'sources/used')).body.routeCount).toBe(1);
  expect((await call('DELETE', 'sources/bulk', { ids: ['first', 'second', 'unknown'] })).body).toEqual({ success: true, deleted: 2 });
  await call('DELETE', `routes/${route.id}`);
});
