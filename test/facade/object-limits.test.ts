import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let key: string;
beforeAll(async () => {
  world = await startFacadeWorld();
  await world.addOrganization('small', 'free');
  key = await world.addKey('small');
  await limit(2);
});
afterAll(() => world.stop());

async function limit(objectsPerKind: number): Promise<void> {
  const spec = { namespace: 'small', plan: 'free', limits: { objectsPerKind } } as const;
  await world.store.apply({ kind: 'Organization', metadata: { name: 'small' }, spec }, { manager: 'kubectl' });
  const id = await world.organizationId('small');
  await eventually(async () => expect(await world.registry.get('organization', id)).toMatchObject({ objectsPerKind }));
}

const create = (name: string, path = '/api/filters', body: object = { conditions: [{ field: 'payload.a', operator: 'exists' }] }) =>
  world.request('POST', path, { key, body: { name, ...body } });

/** Creates a filter, and waits until the API counts it. */
async function createFilter(name: string): Promise<void> {
  expect((await create(name)).status).toBe(201);
  await eventually(async () => expect((await world.request('GET', '/api/filters', { key })).text).toContain(`"name":"${name}"`));
}

test('an organization with as many resources of a kind as it may have gets no more of that kind until one is deleted or the limit raised', async () => {
  await createFilter('one');
  await createFilter('two');
  const refused = await create('three');
  expect(refused.status).toBe(403);
  expect(refused.text).toContain('The organization has 2 filters, as many as its plan (free) or its limit allows');
  expect((await create('of another kind', '/api/sources', {})).status).toBe(201);
  expect((await world.request('PATCH', '/api/filters/two', { key, body: { description: 'changed' } })).status).toBe(200);
  expect((await world.request('DELETE', '/api/filters/one', { key })).status).toBe(204);
  await eventually(() => createFilter('three'));
  expect((await create('four')).status).toBe(403);
  await limit(3);
  await eventually(async () => expect((await create('four')).status).toBe(201));
});

test('an organization with as many replays as it may have gets no more', async () => {
  await limit(2);
  const replay = (name: string) => create(name, '/api/replays', { what: 'deliveries' });
  for (const name of ['first', 'second']) {
    expect((await replay(name)).status).toBe(201);
    await eventually(async () => expect((await world.request('GET', '/api/replays', { key })).text).toContain(`"name":"${name}"`));
  }
  const refused = await replay('third');
  expect(refused.status).toBe(403);
  expect(refused.text).toContain('The organization has 2 replays, as many as its plan (free) or its limit allows');
});

test('an import stops at the limit, as its dry run says: of destinations the records beyond it fail, routes are imported all or none', async () => {
  await limit(2);
  const url = 'https://hooks.example.com/in';
  expect((await create('shop', '/api/sources', {})).status).toBe(201);
  const importOf = (collection: string, records: object[], validateOnly: boolean) =>
    world.request('POST', `/api/${collection}/import`, { key, body: { [collection]: records, conflictStrategy: 'skip', validateOnly } });
  const destinations = ['a', 'b', 'c'].map((slug) => ({ name: slug, slug, url }));
  const routes = [['a'], ['b'], ['a', 'b']].map((destinationSlugs, i) => ({ name: `Route ${i}`, sourceSlug: 'shop', destinationSlugs }));
  for (const validateOnly of [true, false])
    expect((await importOf('destinations', destinations, validateOnly)).body).toMatchObject({
      summary: { imported: 2, failed: 1 },
      errors: [
        { code: 'FORBIDDEN', message: expect.stringMatching(/^The organization would have 3 destinations, more than the 2 that its plan/) },
      ],
    });
  const count = async () => (await world.request('GET', '/api/routes', { key })).body.pagination.total;
  for (const validateOnly of [true, false]) {
    expect((await importOf('routes', routes, validateOnly)).body).toMatchObject({
      code: 'FORBIDDEN',
      message: expect.stringMatching(/^The organization would have 3 routes, more than the 2 that its plan/),
    });
    expect(await count()).toBe(0);
  }
  expect((await importOf('routes', routes.slice(0, 2), false)).body).toMatchObject({ imported: 2 });
});

test('an organization does not hold others back by its limit', async () => {
  for (const name of ['a', 'b', 'c'])
    expect((await world.request('POST', '/api/sources', { key: world.admin, body: { name } })).status).toBe(201);
});
