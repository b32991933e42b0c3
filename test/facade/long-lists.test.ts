import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { expectShortTurns } from '../support/short-work.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

/** Routes and destinations of an organization, each with a destination of its own; the sources have many routes. */
const count = 3000;
const sources = 100;
const goalMs = 10;

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
  const put = (kind: 'Source' | 'Destination' | 'Route', name: string, spec: object) =>
    world.store.apply({ kind, metadata: { namespace: 'acme', name }, spec }, { manager: 'kubectl' });
  for (let n = 0; n < sources; n++) await put('Source', `s${n}`, { provider: 'generic' });
  for (let n = 0; n < count; n++) {
    await put('Destination', `d${n}`, { type: 'http', http: { url: `https://shop-${n}.example/hooks` } });
    await put('Route', `r${n}`, { sourceRef: { name: `s${n % sources}` }, destinationRefs: [{ name: `d${n}` }] });
  }
  await eventually(async () => expect((await world.request('GET', '/api/routes?pageSize=1')).body.pagination.total).toBe(count));
  // The controllers of the world run in the same thread.
  await eventually(async () => {
    const last = await world.store.get('Route', { namespace: 'acme', name: `r${count - 1}` });
    expect(last?.status?.conditions?.find(({ type }) => type === 'Programmed')?.status).toBe('True');
  }, 90_000);
}, 120_000);
afterAll(() => world.stop());

const yaml = { accept: 'application/yaml' };

test.each<[string, Record<string, string>]>([
  ['/routes/export', yaml],
  ['/routes/export', {}],
  ['/destinations/export', yaml],
  ['/destinations/export', {}],
  ['/sources/export', {}],
  ['/sources?pageSize=100', {}],
  ['/analytics', {}],
  ['/analytics/routes', {}],
  ['/analytics/dashboard', {}],
  ['/analytics/overview', {}],
  ['/analytics/destinations/health', {}],
])('no turn of the event loop is long for GET %s %j of thousands of resources', async (path, headers) => {
  await expectShortTurns(goalMs, async () => {
    expect((await world.request('GET', `/api${path}`, { headers })).status).toBe(200);
  });
});

test('the routes of a source are counted, also after one is deleted', async () => {
  const routeCount = async () => (await world.request('GET', '/api/sources/s1')).body.routeCount;
  expect(await routeCount()).toBe(count / sources);
  await world.store.delete('Route', { namespace: 'acme', name: 'r1' });
  await eventually(async () => expect(await routeCount()).toBe(count / sources - 1));
});
