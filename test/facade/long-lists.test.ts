import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { longestTurnMs } from '../support/longest-turn.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

/** Routes and destinations of an organization, each with a destination of its own; the sources have many routes. */
const count = 3000;
const sources = 100;
const longestMs = 100;

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
  let status = 0;
  const ms = await longestTurnMs(async () => {
    status = (await world.request('GET', `/api${path}`, { headers })).status;
  });
  expect([status, ms < longestMs ? 'short' : `${ms} ms`]).toEqual([200, 'short']);
});

test('the routes of a source are counted, also after one is deleted', async () => {
  const routeCount = async () => (await world.request('GET', '/api/sources/s1')).body.routeCount;
  expect(await routeCount()).toBe(count / sources);
  await world.store.delete('Route', { namespace: 'acme', name: 'r1' });
  await eventually(async () => expect(await routeCount()).toBe(count / sources - 1));
});
