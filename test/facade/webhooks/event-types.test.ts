import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld({ inForceTimeoutMs: 20_000 });
});
afterAll(() => world.stop());

const create = (body: object) => world.request('POST', '/api/event-types', { body });
const change = (id: string, body: object) => world.request('PATCH', `/api/event-types/${id}`, { body });
const read = (path: string) => world.request('GET', `/api/event-types${path}`);

describe('creating an event type', () => {
  test('creating an event type answers 201 with the record, in force', async () => {
    const sent = {
      name: 'order.line_item.added',
      displayName: 'Line item added',
      description: 'x'.repeat(1000),
      category: 'Orders',
      schema: '{ "type": "object" }',
      examplePayload: '{ "id": 1 }',
      documentationUrl: 'https://docs.example/line-items',
      isEnabled: true,
    };
    const { status, body, headers } = await create(sent);
    expect(status).toBe(201);
    expect(headers.get('warning')).toBeNull();
    expect(body).toEqual({
      data: {
        ...sent,
        id: expect.stringMatching(/^etp_[a-z2-7]{26}$/),
        organizationId: expect.stringMatching(/^org_/),
        schemaVersion: 1,
        isDeprecated: false,
        deprecatedAt: null,
        deprecatedMessage: null,
        expiresAfterSeconds: null,
        subscriptionCount: 0,
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
      },
    });
    expect((await read(`/${body.data.id}`)).body).toEqual(body);
  });

  test('creating an event type takes a name alone, and the type is enabled', async () => {
    const { body } = await create({ name: 'ping' });
    expect(body.data).toMatchObject({ name: 'ping', isEnabled: true, displayName: null, schema: null, schemaVersion: 1, category: null });
  });

  test('creating an event type with a name that is taken is 409', async () => {
    await create({ name: 'order.taken' });
    const { status, body } = await create({ name: 'order.taken' });
    expect(status).toBe(409);
    expect(body).toEqual({ error: 'Conflict', message: 'There is already an event type "order.taken".', details: { name: ['is taken'] } });
  });

  test.each([
    [{}, 'name'],
    [{ name: 'Order.Paid' }, 'name'],
    [{ name: 'order-paid' }, 'name'],
    [{ name: 'order._paid' }, 'name'],
    [{ name: `${'a'.repeat(50)}.${'b'.repeat(50)}` }, 'name'],
    [{ name: 'order.wrong', description: 'x'.repeat(1001) }, 'description'],
    [{ name: 'order.wrong', displayName: 'x'.repeat(201) }, 'displayName'],
    [{ name: 'order.wrong', category: 'x'.repeat(101) }, 'category'],
    [{ name: 'order.wrong', deprecatedMessage: 'x'.repeat(501) }, 'deprecatedMessage'],
    [{ name: 'order.wrong', schema: '{"type":' }, 'schema'],
    [{ name: 'order.wrong', schema: '{"type":"objekt"}' }, 'schema'],
    [{ name: 'order.wrong', schema: { type: 'object' } }, 'schema'],
    [{ name: 'order.wrong', examplePayload: 'id: 1' }, 'examplePayload'],
    [{ name: 'by_external_id' }, 'name'],
    [{ name: 'order.wrong', documentationUrl: 'docs' }, 'documentationUrl'],
    [{ name: 'order.wrong', documentationUrl: 'https://[0]' }, 'documentationUrl'],
    [{ name: 'order.wrong', documentationUrl: 'https://a\ufffdb.example' }, 'documentationUrl'],
    [{ name: 'order.wrong', isEnabled: 'yes' }, 'isEnabled'],
    [{ name: 'order.wrong', nmae: 'x' }, 'nmae'],
  ])('creating an event type of %j is 400 with the field in the details', async (sent, field) => {
    const { status, body, headers } = await create(sent);
    expect(status).toBe(400);
    expect(body).toEqual({ error: 'Invalid input', message: expect.stringContaining(field), details: { [field]: [expect.any(String)] } });
    expect(headers.get('x-error-code')).toMatch(/^(VALIDATION_FAILED|UNKNOWN_FIELD)$/);
    expect((await read('/order.wrong')).status).toBe(404);
  });
});

test('a schema and an example may begin with a byte order mark', async () => {
  const sent = { name: 'order.marked', schema: '\ufeff{"required":["id"]}', examplePayload: '\ufeff{"id":1}' };
  expect(await create(sent)).toMatchObject({ status: 201, body: { data: sent } });
  const send = (payload: object) => world.request('POST', '/api/send-event', { body: { eventType: sent.name, payload } });
  await eventually(async () => expect((await send({ id: 1 })).status).toBe(201));
  expect((await send({})).body.details).toEqual({ payload: ["must have required property 'id'"] });
});

test('amounts of money are multiples of 0.01 when events are sent', async () => {
  await create({ name: 'order.priced', schema: '{"properties":{"price":{"multipleOf":0.01}}}' });
  const send = (price: number) => world.request('POST', '/api/send-event', { body: { eventType: 'order.priced', payload: { price } } });
  for (const price of [19.99, 143.48, 4.35, 0.07]) await eventually(async () => expect((await send(price)).status).toBe(201));
  expect(await send(19.999)).toMatchObject({ status: 400, body: { details: { payload: ['/price must be multiple of 0.01'] } } });
});

describe('changing an event type', () => {
  test('changing an event type keeps what is not sent, and null removes', async () => {
    const { body } = await create({ name: 'order.changed', displayName: 'Changed', category: 'Orders' });
    const { status, body: changed } = await change(body.data.id, {
      description: 'Something changed.',
      displayName: null,
      isEnabled: false,
    });
    expect(status).toBe(200);
    expect(changed.data).toMatchObject({ description: 'Something changed.', displayName: null, category: 'Orders', isEnabled: false });
    expect((await read(`/${body.data.id}`)).body).toEqual(changed);
  });

  test('increments schemaVersion with each change of the schema, and with nothing else', async () => {
    await create({ name: 'order.versions', schema: '{"type":"object"}' });
    const version = async (fields: object) => (await change('order.versions', fields)).body.data.schemaVersion;
    expect(await version({ description: 'x' })).toBe(1);
    expect(await version({ schema: '{"type":"array"}' })).toBe(2);
    expect(await version({ schema: '{"type":"array"}' })).toBe(2);
    expect(await version({ schema: '{"type":"object"}' })).toBe(3);
    expect(await version({ schema: null })).toBe(4);
  });

  test('marks it as deprecated with the time, and takes that back', async () => {
    await create({ name: 'order.old' });
    const { body } = await change('order.old', { isDeprecated: true, deprecatedMessage: 'Use order.new.' });
    expect(body.data).toMatchObject({
      isDeprecated: true,
      deprecatedAt: expect.any(String),
      deprecatedMessage: 'Use order.new.',
      isEnabled: true,
    });
    expect(Math.abs(Date.parse(body.data.deprecatedAt) - Date.now())).toBeLessThan(60_000);
    const kept = await change('order.old', { description: 'x' });
    expect(kept.body.data.deprecatedAt).toBe(body.data.deprecatedAt);
    const back = await change('order.old', { isDeprecated: false, deprecatedMessage: null });
    expect(back.body.data).toMatchObject({ isDeprecated: false, deprecatedAt: null, deprecatedMessage: null });
  });

  test('changing an event type refuses another name and takes the same one; what is read-only is ignored', async () => {
    const { body } = await create({ name: 'order.fixed' });
    expect((await change('order.fixed', { name: 'order.other' })).body).toMatchObject({
      error: 'Invalid input',
      details: { name: ['cannot be changed'] },
    });
    expect((await change('order.fixed', { ...body.data, schemaVersion: 9, documentationUrl: null })).body.data.schemaVersion).toBe(1);
  });

  test('changing an event type of what Git manages is 409', async () => {
    await world.store.apply(
      { kind: 'WebhookEventType', metadata: { name: 'git.made', namespace: 'acme' }, spec: { name: 'git.made', description: 'Git' } },
      { manager: 'argocd' },
    );
    await eventually(async () => expect((await read('/git.made')).status).toBe(200));
    const { status, body, headers } = await change('git.made', { description: 'API' });
    expect([status, headers.get('x-error-code')]).toEqual([409, 'FIELD_MANAGED']);
    expect(body).toMatchObject({ error: 'Conflict', message: expect.stringContaining('argocd') });
    expect((await world.request('DELETE', '/api/event-types/git.made')).status).toBe(409);
  });
});

test('deleting answers success, and it is gone', async () => {
  const { body } = await create({ name: 'order.gone' });
  const answer = await world.request('DELETE', `/api/event-types/${body.data.id}`);
  expect([answer.status, answer.body]).toEqual([200, { success: true }]);
  expect((await read(`/${body.data.id}`)).body).toEqual({ error: 'Not found', message: expect.any(String), details: {} });
  expect((await world.request('DELETE', `/api/event-types/${body.data.id}`)).status).toBe(404);
});

describe('the list', () => {
  const names = async (query: string) => (await read(query)).body.data.map(({ name }: { name: string }) => name);
  beforeAll(async () => {
    for (const [number, category] of ['a', 'a', 'a', 'b', 'b'].entries()) {
      await create({ name: `list.n${number}`, category, displayName: `Number ${number}`, isEnabled: number !== 1 });
    }
  });

  test('filters by category, isEnabled and a part of the names', async () => {
    expect((await names('?category=a')).sort()).toEqual(['list.n0', 'list.n1', 'list.n2']);
    expect((await names('?category=a&isEnabled=true')).sort()).toEqual(['list.n0', 'list.n2']);
    expect(await names('?isEnabled=false&search=LIST.')).toEqual(['list.n1']);
    expect(await names('?search=number%204')).toEqual(['list.n4']);
    expect(await names('?category=nothing')).toEqual([]);
  });

  test('the list continues by cursor, each once, also when others come in between', async () => {
    const first = (await read('?search=list.n&limit=2')).body;
    expect(first.pagination).toEqual({ hasMore: true, nextCursor: expect.any(String) });
    await create({ name: 'list.n0a' });
    const rest: string[] = [];
    for (let cursor = first.pagination.nextCursor; cursor !== null; ) {
      const { body } = await read(`?search=list.n&limit=2&cursor=${encodeURIComponent(cursor)}`);
      rest.push(...body.data.map(({ name }: { name: string }) => name));
      cursor = body.pagination.nextCursor;
      expect(body.pagination.hasMore).toBe(cursor !== null);
    }
    const all = [...first.data.map(({ name }: { name: string }) => name), ...rest].filter((name) => name !== 'list.n0a');
    expect(all.sort()).toEqual(['list.n0', 'list.n1', 'list.n2', 'list.n3', 'list.n4']);
  });

  test.each(['limit=0', 'limit=101', 'limit=x', 'isEnabled=maybe', 'cursor=abc'])('the list with %s is 400', async (query) => {
    const { status, body } = await read(`?${query}`);
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: 'Invalid input', details: { [query.split('=')[0] ?? '']: [expect.any(String)] } });
  });

  test('the list with the cursor of another list is 400', async () => {
    const { body } = await read('?search=list.n&limit=1');
    expect((await read(`?search=list&cursor=${encodeURIComponent(body.pagination.nextCursor)}`)).status).toBe(400);
  });

  test('the list with a cursor that differs in any character, or has one more, is 400', async () => {
    const { nextCursor } = (await read('?search=list.n&limit=1')).body.pagination;
    const forged = [...nextCursor].map((character, i) => [...nextCursor].with(i, character === 'A' ? 'B' : 'A').join(''));
    for (const cursor of [...forged, `${nextCursor}A`, `${nextCursor}=`, `${nextCursor}!`])
      expect([cursor, (await read(`?search=list.n&limit=1&cursor=${encodeURIComponent(cursor)}`)).status]).toEqual([cursor, 400]);
  });
});

describe('errors of the webhook subscription API', () => {
  test.each<[string, Parameters<FacadeWorld['request']>, number, string]>([
    ['no key', ['GET', '/api/event-types', { key: null }], 401, 'Unauthorized'],
    ['an unknown id', ['GET', '/api/event-types/etp_aaaaaaaaaaaaaaaaaaaaaaaaaa'], 404, 'Not found'],
    ['another organization', ['GET', '/api/organizations/other/event-types'], 404, 'Not found'],
    ['another method', ['PUT', '/api/event-types', { body: {} }], 405, 'Method not allowed'],
    ['a body that is no JSON', ['POST', '/api/event-types', { rawBody: '{' }], 400, 'Invalid input'],
    [
      'a body of another type',
      ['POST', '/api/event-types', { rawBody: '{}', headers: { 'content-type': 'text/plain' } }],
      415,
      'Invalid Content-Type',
    ],
    ['a body too large', ['POST', '/api/event-types', { body: { name: 'x'.repeat(1_100_000) } }], 413, 'Payload too large'],
  ])('%s', async (_, request, status, error) => {
    const answer = await world.request(...request);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ error, message: expect.stringMatching(/\w/) });
    expect(Object.keys(answer.body)).toEqual(['error', 'message', 'details']);
    expect(answer.headers.get('x-error-code')).toMatch(/^[A-Z_]+$/);
  });

  test('a key without the scope is 403', async () => {
    const key = await world.addKey('acme', { role: 'viewer' });
    const { status, body } = await world.request('POST', '/api/event-types', { key, body: { name: 'a' } });
    expect([status, body.error]).toEqual([403, 'Forbidden']);
  });
});

test('a refusal says what is wrong in one sentence', async () => {
  const told = async (body: object) => (await create({ name: 'order.told', ...body })).body.message;
  expect(await told({ name: 'bulk' })).toBe('name is reserved, since API paths use this word.');
  expect(await told({ schema: '{' })).toMatch(/^schema is not JSON: .*[^.]\.$/);
});

test.each(['GET', 'PATCH', 'DELETE'])('%s of one that is not there is 404 and names it as it was requested', async (method) => {
  const { status, body } = await world.request(method, '/api/event-types/order.line_item.lost', method === 'PATCH' ? { body: {} } : {});
  expect([status, body]).toEqual([404, { error: 'Not found', message: 'There is no event type "order.line_item.lost".', details: {} }]);
});
