import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { WriteAheadLog } from '../../src/data/locks/write-ahead-log.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let endpointId: string;
let applicationId: string;
beforeAll(async () => {
  world = await startFacadeWorld();
  applicationId = await made('webhook-applications', { name: 'Acme' });
  endpointId = await made('webhook-endpoints', { applicationId, url: 'https://acme.example/hooks' });
});
afterAll(() => world.stop());

async function made(collection: string, body: object): Promise<string> {
  const answer = await world.request('POST', `/api/${collection}`, { body });
  expect([collection, answer.status, answer.text]).toEqual([collection, 201, expect.any(String)]);
  return (answer.body.data ?? answer.body.cronJob ?? answer.body).id;
}
const url = 'https://hooks.example.com/in';
let types = 0;
const newType = (): string => `order.type${++types}`;
const families: [collection: string, create: () => Promise<object>, change: (n: number) => object][] = [
  ['sources', async () => ({ name: 'A' }), (n) => ({ name: `A${n}` })],
  ['destinations', async () => ({ name: 'A', url }), (n) => ({ timeoutMs: 1000 + n })],
  [
    'routes',
    async () => ({
      name: 'A',
      sourceId: await made('sources', { name: 'Of the route' }),
      destinationIds: [await made('destinations', { name: 'Of the route', url })],
    }),
    (n) => ({ priority: n }),
  ],
  ['filters', async () => ({ name: 'A', conditions: [{ field: 'payload.a', operator: 'exists' }] }), (n) => ({ name: `A${n}` })],
  ['transforms', async () => ({ name: 'A', code: '0' }), (n) => ({ code: `${n}` })],
  ['schemas', async () => ({ name: 'A', jsonSchema: {} }), (n) => ({ jsonSchema: { minProperties: n } })],
  ['cron', async () => ({ name: 'A', cronExpression: '0 0 1 1 *', url }), (n) => ({ name: `A${n}` })],
  [
    'notification-channels',
    async () => ({ name: 'A', type: 'email', config: { addresses: ['a@example.com'] } }),
    (n) => ({ name: `A${n}` }),
  ],
  ['event-types', async () => ({ name: newType() }), (n) => ({ displayName: `A${n}` })],
  ['webhook-applications', async () => ({ name: 'A' }), (n) => ({ name: `A${n}` })],
  ['webhook-endpoints', async () => ({ applicationId, url }), (n) => ({ timeoutSeconds: 1 + n })],
  [
    'webhook-subscriptions',
    async () => ({ endpointId, eventTypeId: await made('event-types', { name: newType() }) }),
    (n) => ({ labelFilters: { n: `${n}` } }),
  ],
];

describe.each(families)('of %s', (collection, create, change) => {
  test('a change with the ETag that was read is made once, and is 412 after another change', async () => {
    const path = `/api/${collection}/${await made(collection, await create())}`;
    const tagNow = async () => (await world.request('GET', path)).headers.get('etag') ?? '';
    const patch = (n: number, tag?: string) =>
      world.request('PATCH', path, { body: change(n), ...(tag !== undefined && { headers: { 'if-match': tag } }) });
    const first = await tagNow();
    expect(first).toMatch(/^"[\w.-]+"$/);
    expect(await tagNow()).toBe(first);
    const changed = await patch(1, first);
    expect([changed.status, changed.headers.get('etag')]).toEqual([200, await tagNow()]);

    const { body: before } = await world.request('GET', path);
    const refused = await patch(2, first);
    expect([refused.status, refused.headers.get('x-error-code'), refused.headers.get('etag')]).toEqual([412, 'PRECONDITION_FAILED', null]);
    expect(refused.body.error).toEqual(expect.any(String));
    expect((await world.request('GET', path)).body).toEqual(before);

    // One of several, one that a proxy has weakened, any, and none at all.
    const forms = [(tag: string) => `"other", ${tag}`, (tag: string) => `W/${tag}`, () => '*', () => undefined];
    for (const [i, form] of forms.entries()) expect([i, (await patch(3 + i, form(await tagNow()))).status]).toEqual([i, 200]);
  });

  test('of changes at a time with the same ETag one is made', async () => {
    const path = `/api/${collection}/${await made(collection, await create())}`;
    const tag = (await world.request('GET', path)).headers.get('etag') ?? '';
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) => world.request('PATCH', path, { body: change(n), headers: { 'if-match': tag } })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
  });

  test('a deletion with the ETag of an earlier version is 412 and deletes nothing, and with that of the present one deletes', async () => {
    const path = `/api/${collection}/${await made(collection, await create())}`;
    const read = () => world.request('GET', path);
    const remove = (tag: string) => world.request('DELETE', path, { headers: { 'if-match': tag } });
    const first = (await read()).headers.get('etag') ?? '';
    expect((await world.request('PATCH', path, { body: change(1) })).status).toBe(200);
    const refused = await remove(first);
    expect([refused.status, refused.headers.get('x-error-code'), refused.headers.get('etag')]).toEqual([412, 'PRECONDITION_FAILED', null]);
    const now = await read();
    expect(now.status).toBe(200);
    expect((await remove(`"other", ${now.headers.get('etag')}`)).status).toBeLessThan(300);
    expect([(await read()).status, (await remove(first)).status]).toEqual([404, 404]);
  });

  test('of a change and a deletion at a time with the same ETag one is made', async () => {
    for (let i = 0; i < 5; i++) {
      const path = `/api/${collection}/${await made(collection, await create())}`;
      const headers = { 'if-match': (await world.request('GET', path)).headers.get('etag') ?? '' };
      const [changed, deleted] = await Promise.all([
        world.request('PATCH', path, { body: change(1), headers }),
        world.request('DELETE', path, { headers }),
      ]);
      const isDeleted = deleted.status < 300;
      expect([changed.status, deleted.status]).toEqual(isDeleted ? [expect.any(Number), deleted.status] : [200, 412]);
      if (isDeleted) expect([404, 412]).toContain(changed.status);
      expect((await world.request('GET', path)).status).toBe(isDeleted ? 404 : 200);
    }
  });
});

test('a destination that routes name is deleted with the ETag that was read, and with an earlier one stays in them', async () => {
  const destination = await made('destinations', { name: 'Named', url });
  const other = await made('destinations', { name: 'Other', url });
  const sourceId = await made('sources', { name: 'Of both' });
  const route = await made('routes', { name: 'Both', sourceId, destinationIds: [destination, other] });
  const path = `/api/destinations/${destination}`;
  const first = (await world.request('GET', path)).headers.get('etag') ?? '';
  await world.request('PATCH', path, { body: { timeoutMs: 2000 } });
  const destinations = async () => (await world.request('GET', `/api/routes/${route}`)).body.destinationIds;
  expect((await world.request('DELETE', path, { headers: { 'if-match': first } })).status).toBe(412);
  expect(await destinations()).toEqual([destination, other]);
  const now = (await world.request('GET', path)).headers.get('etag') ?? '';
  expect((await world.request('DELETE', path, { headers: { 'if-match': now } })).status).toBe(204);
  expect(await destinations()).toEqual([other]);
});

test('a destination that routes name stays in them when it is changed after its deletion has read it', async () => {
  const destination = await made('destinations', { name: 'Overtaken', url });
  const sourceId = await made('sources', { name: 'Of the overtaken' });
  const route = await made('routes', { name: 'To the overtaken', sourceId, destinationIds: [destination] });
  const path = `/api/destinations/${destination}`;
  const tag = (await world.request('GET', path)).headers.get('etag') ?? '';
  const key = { namespace: 'acme', name: 'overtaken' };
  const { kind, spec } = await world.store.get('Destination', key);
  // The deletion reads the object; then another changes it; then the deletion writes its log entry.
  const begin = jest.spyOn(WriteAheadLog.prototype, 'begin').mockImplementationOnce(async function (this: WriteAheadLog, ...entry) {
    await world.store.apply({ kind, metadata: key, spec: { ...spec, name: 'Renamed' } }, { manager: 'posthorn-api', force: true });
    return await this.begin(...entry);
  });
  try {
    expect((await world.request('DELETE', path, { headers: { 'if-match': tag } })).status).toBe(412);
    expect(begin).toHaveBeenCalledTimes(2);
  } finally {
    begin.mockRestore();
  }
  expect((await world.request('GET', path)).body.name).toBe('Renamed');
  expect((await world.request('GET', `/api/routes/${route}`)).body.destinationIds).toEqual([destination]);
  // No entry is left that recovery would turn into the deletion.
  const now = (await world.request('GET', path)).headers.get('etag') ?? '';
  expect((await world.request('PATCH', `/api/routes/${route}`, { body: { priority: 1 } })).status).toBe(200);
  expect((await world.request('GET', path)).headers.get('etag')).toBe(now);
});

test('a deletion with the ETag that was read is made although controllers keep writing the status', async () => {
  const path = `/api/destinations/${await made('destinations', { name: 'Busy', url })}`;
  const tag = (await world.request('GET', path)).headers.get('etag') ?? '';
  const key = { namespace: 'acme', name: 'busy' };
  const status = { observedGeneration: (await world.store.get('Destination', key)).metadata.generation };
  // The deletion reads the object; then a controller writes; then the object is deleted in the version that was read.
  const remove = world.store.delete.bind(world.store);
  const versions: (string | undefined)[] = [];
  const spy = jest.spyOn(world.store, 'delete').mockImplementation(async (kind, of, precondition) => {
    versions.push(precondition?.version);
    if (versions.length === 1) await world.store.applyStatus('Destination', key, status, { manager: 'posthorn-health' });
    await remove(kind, of, precondition);
  });
  try {
    const deleted = await world.request('DELETE', path, { headers: { 'if-match': tag } });
    expect([deleted.status, deleted.text]).toEqual([204, '']);
  } finally {
    spy.mockRestore();
  }
  expect([versions.length, new Set(versions).size]).toEqual([2, 2]);
});

test('a schema that is put takes If-Match as one that is patched does', async () => {
  const path = `/api/schemas/${await made('schemas', { name: 'Put', jsonSchema: {} })}`;
  const tag = (await world.request('GET', path)).headers.get('etag') ?? '';
  const put = (minProperties: number) =>
    world.request('PUT', path, { body: { jsonSchema: { minProperties } }, headers: { 'if-match': tag } });
  expect([(await put(1)).status, (await put(2)).status]).toEqual([200, 412]);
});

test('a change of the circuit of a route takes the ETag of the route as If-Match', async () => {
  const [, create] = families.find(([collection]) => collection === 'routes') ?? [];
  const path = `/api/routes/${await made('routes', (await create?.()) ?? {})}`;
  const tag = (await world.request('GET', path)).headers.get('etag') ?? '';
  const configure = (circuitFailureThreshold: number) =>
    world.request('PATCH', `${path}/circuit-config`, { body: { circuitFailureThreshold }, headers: { 'if-match': tag } });
  const changed = await configure(7);
  const read = await world.request('GET', path);
  expect([changed.status, changed.headers.get('etag')]).toEqual([200, read.headers.get('etag')]);
  expect((await configure(8)).status).toBe(412);
  expect((await world.request('GET', path)).body).toEqual(read.body);
});

test('what the controllers write of a resource is no other version of it', async () => {
  const id = await made('destinations', { name: 'Settling', url });
  const path = `/api/destinations/${id}`;
  const tag = (await world.request('GET', path)).headers.get('etag');
  const key = { namespace: 'acme', name: 'settling' };
  const before = await world.store.get('Destination', key);
  const status = { observedGeneration: before.metadata.generation };
  await world.store.applyStatus('Destination', key, status, { manager: 'posthorn-health' });
  expect((await world.store.get('Destination', key)).metadata.resourceVersion).not.toBe(before.metadata.resourceVersion);
  expect((await world.request('GET', path)).headers.get('etag')).toBe(tag);
});
