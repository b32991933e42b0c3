import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Clock } from '../../src/core/clock.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import type { CompleteStore, ResourceStore } from '../../src/store/store.ts';
import { fetchProgrammed } from '../support/api-writes.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { withMethod } from '../support/with-method.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { describeDeletions } from './suites/deletions.ts';

describeDeletions(() => startFacadeWorld({ store: whoseControllersHearOfDeletionsLate() }));

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const create = async (path: string, body: object) => {
  const { status, body: record } = await world.request('POST', `/api/${path}`, { body });
  expect(status).toBe(201);
  return record;
};
const destination = (name: string) => create('destinations', { name, url: 'https://hooks.example.com/in' });

test('the deliveries of a deleted destination can still be read', async () => {
  const { id } = await destination('Short-lived');
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const event = newEvent({ org, destinations: [id] });
  await world.acceptor.accept(event);
  expect((await world.request('DELETE', `/api/destinations/${id}`)).status).toBe(204);
  const { body } = await world.request('GET', `/api/deliveries?destinationId=${id}`);
  expect(body.data).toMatchObject([{ eventId: event.id, destinationId: id }]);
});

test('a route whose last destination is deleted stays, and is not ready for want of destinations', async () => {
  const { id: destinationId } = await destination('The only one');
  const { id: sourceId } = await create('sources', { name: 'Shop' });
  const route = await create('routes', { name: 'Lonely', sourceId, destinationIds: [destinationId] });
  await world.request('DELETE', `/api/destinations/${destinationId}`);
  expect((await world.request('GET', `/api/routes/${route.id}`)).body.destinationIds).toEqual([]);
  await eventually(async () => {
    const { status } = await world.store.get('Route', { namespace: 'acme', name: route.slug });
    expect(status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'False', reason: 'NoDestinations' });
  });
});

test('a change that is not in force in time is answered with a warning that reports it', async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const own = await startFacadeWorld({ store: withStatusOfSourcesAfter(answered), inForceTimeoutMs: 50 });
  try {
    const { status, headers } = await own.request('POST', '/api/sources', { body: { name: 'Hurried' } });
    expect(status).toBe(201);
    expect(headers.get('warning')).toBe('199 - "not yet in force"');
  } finally {
    answer();
    await own.stop();
  }
});

test('a source that is not in force in time is in force once fetchProgrammed returns', async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const own = await startFacadeWorld({ store: withStatusOfSourcesAfter(answered), inForceTimeoutMs: 50 });
  try {
    const headers = { authorization: `Bearer ${own.admin}`, 'content-type': 'application/json' };
    let isInForce = false;
    const made = fetchProgrammed(`${own.baseUrl}/api/sources`, { method: 'POST', headers, body: '{"name":"Hurried"}' }).finally(() => {
      isInForce = true;
    });
    await eventually(async () => expect((await own.request('GET', '/api/sources')).body.data).toHaveLength(1));
    await systemClock.sleep(500);
    expect(isInForce).toBe(false);
    answer();
    expect((await made).status).toBe(201);
  } finally {
    answer();
    await own.stop();
  }
});

test('a change of a filter is answered when the routes that refer to it are published with it', async () => {
  const source = await create('sources', { name: 'Filtered' });
  const filter = await create('filters', { name: 'Shared', conditions: [{ field: 'payload.a', operator: 'exists' }] });
  const routes = [];
  for (let i = 0; i < 20; i++) {
    const name = `Filtered ${i}`;
    const destinationIds = [(await destination(name)).id];
    routes.push(await create('routes', { name, sourceId: source.id, destinationIds, filterId: filter.id }));
  }
  // What is published of a route stays in force, with its old filter, while its source is not there.
  const key = { namespace: 'acme', name: source.slug };
  const { spec } = await world.store.get('Source', key);
  await world.store.delete('Source', key);
  const conditionOf = async (kind: 'Filter' | 'Route', name: string, type: string) =>
    (await world.store.get(kind, { namespace: 'acme', name })).status?.conditions?.find((condition) => condition.type === type);
  for (const { slug } of routes)
    await eventually(async () => expect(await conditionOf('Route', slug, 'ResolvedRefs')).toMatchObject({ reason: 'SourceNotFound' }));

  const conditions = [{ field: 'payload.b', operator: 'exists' }];
  const answering = world.request('PATCH', `/api/filters/${filter.id}`, { body: { conditions } });
  await eventually(async () => expect(await conditionOf('Filter', filter.slug, 'Programmed')).toMatchObject({ observedGeneration: 2 }));
  await world.store.apply({ kind: 'Source', metadata: key, spec }, { manager: 'kubectl' });
  const { status, headers } = await answering;
  expect([status, headers.get('warning')]).toEqual([200, null]);
  for (const { id } of routes) expect(await world.registry.getOfAny('route', id)).toMatchObject({ filter: { logic: 'AND', conditions } });
});

test('a change of a filter that a route cannot take is answered with the warning', async () => {
  const own = await startFacadeWorld({ inForceTimeoutMs: 500 });
  try {
    const source = await own.create('sources', { name: 'Lost' });
    const { id: destinationId } = await own.create('destinations', { url: 'https://hooks.example.com/in' });
    const filter = await own.create('filters', { conditions: [{ field: 'payload.a', operator: 'exists' }] });
    const route = await own.create('routes', { sourceId: source.id, destinationIds: [destinationId], filterId: filter.id });
    await eventually(async () => expect(await own.registry.getOfAny('route', route.id)).toMatchObject({ filter: { logic: 'AND' } }));
    await own.store.delete('Source', { namespace: 'acme', name: source.slug });
    await eventually(async () => {
      const { status } = await own.store.get('Route', { namespace: 'acme', name: route.slug });
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'ResolvedRefs', reason: 'SourceNotFound' }));
    });
    const { status, headers } = await own.request('PATCH', `/api/filters/${filter.id}`, { body: { logic: 'OR' } });
    expect([status, headers.get('warning')]).toEqual([200, '199 - "not yet in force"']);
  } finally {
    await own.stop();
  }
});

test('a change is given two seconds to come into force', async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const waits: number[] = [];
  const after: Clock['after'] = (ms, callback) => {
    waits.push(ms);
    return systemClock.after(ms === 2000 ? 0 : ms, callback);
  };
  const clock = { now: () => systemClock.now(), sleep: systemClock.sleep.bind(systemClock), after };
  const own = await startFacadeWorld({ store: withStatusOfSourcesAfter(answered), clock, inForceTimeoutMs: 'default' });
  try {
    waits.length = 0;
    const { status, headers } = await own.request('POST', '/api/sources', { body: { name: 'Hurried' } });
    expect([status, headers.get('warning')]).toEqual([201, '199 - "not yet in force"']);
    expect(waits).toContain(2000);
  } finally {
    answer();
    await own.stop();
  }
});

/** A store whose first watch of each kind, that of the controllers, reports deletions late. */
function whoseControllersHearOfDeletionsLate(): CompleteStore {
  const store = new MemoryStore(systemClock);
  const watched = new Set<string>();
  const watch: ResourceStore['watch'] = async function* (kind, ...rest) {
    const isFirst = !watched.has(kind);
    watched.add(kind);
    for await (const event of store.watch(kind, ...rest)) {
      if (isFirst && event.type === 'deleted') await systemClock.sleep(150);
      yield event;
    }
  };
  return withMethod(store, 'watch', watch);
}

/** A store that is slow to take the status of sources. */
function withStatusOfSourcesAfter(moment: Promise<void>): CompleteStore {
  const store = new MemoryStore(systemClock);
  const applyStatus: ResourceStore['applyStatus'] = async (kind, ...rest) => {
    if (kind === 'Source') await moment;
    return store.applyStatus(kind, ...rest);
  };
  return withMethod(store, 'applyStatus', applyStatus);
}
