// How quickly the analytics of a large organization answer, and what its statistics take:
//   node hack/bench/analytics.ts [destinations] [requests per range]
// Every destination has had deliveries in every period that is kept; ten of them share a route.
import { Script } from '../../src/redis/script.ts';
import { listAll } from '../../src/store/all-objects.ts';
import { startFacadeWorld } from '../../test/facade/facade-world.ts';
import { eventually } from '../../test/support/eventually.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { ms, percentile, report } from './lib/report.ts';

const [destinations = 1000, requests = 50] = process.argv.slice(2).map(Number);
const perRoute = 10;
const fill = new Script(new URL('./lib/fill-statistics.lua', import.meta.url));
const levels = [
  { level: 'm', lengthMs: 300_000, periods: 313, keptSeconds: 93_600, attempts: 10 },
  { level: 'h', lengthMs: 3_600_000, periods: 193, keptSeconds: 691_200, attempts: 120 },
  { level: 'd', lengthMs: 86_400_000, periods: 33, keptSeconds: 2_764_800, attempts: 2880 },
];

const world = await startFacadeWorld();
try {
  const manager = { manager: 'kubectl' };
  const namespace = 'acme';
  await world.store.apply({ kind: 'Source', metadata: { name: 'shop', namespace }, spec: {} }, manager);
  for (let i = 0; i < destinations; i++) {
    const spec = { http: { url: `https://receiver-${i}.example/hook` } };
    await world.store.apply({ kind: 'Destination', metadata: { name: `receiver-${i}`, namespace }, spec }, manager);
  }
  for (let first = 0; first < destinations; first += perRoute) {
    const destinationRefs = Array.from({ length: Math.min(perRoute, destinations - first) }, (_, i) => ({ name: `receiver-${first + i}` }));
    const spec = { sourceRef: { name: 'shop' }, destinationRefs };
    await world.store.apply({ kind: 'Route', metadata: { name: `route-${first / perRoute}`, namespace }, spec }, manager);
  }
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const routes = await eventually('the routes to be in force', 300_000, async () => {
    const items = await listAll(world.store, 'Route', namespace);
    return items.every(({ status }) => status?.id !== undefined) ? items : undefined;
  });
  const names = await eventually('the destinations to have ids', 300_000, async () => {
    const items = await listAll(world.store, 'Destination', namespace);
    const ids = items.flatMap(({ metadata, status }) => (status?.id === undefined ? [] : [[metadata.name, status.id] as const]));
    return ids.length === items.length ? new Map(ids) : undefined;
  });
  const source = (await world.store.get('Source', { name: 'shop', namespace })).status?.id ?? '';
  const base = 'test:{s0}:';
  for (const { spec, status } of routes) {
    const { targets, ...event } = newEvent({
      org,
      sourceId: source,
      destinations: spec.destinationRefs.map(({ name }) => names.get(name) ?? ''),
    });
    await world.acceptor.accept({ ...event, targets: targets.map((target) => ({ ...target, routeId: status?.id ?? '' })) });
  }
  const now = Date.now();
  const ids = [source, ...routes.map(({ status }) => status?.id ?? '')];
  const taken = new Map<string, number>();
  for (const { level, lengthMs, periods, keptSeconds, attempts } of levels) {
    for (let back = 0; back < periods; back++) {
      const key = `${base}st:${org}:${level}${Math.floor(now / lengthMs) - back}`;
      const bytes = Number(await fill.run(world.redis.client, [key], [destinations, attempts, keptSeconds, ...ids]));
      taken.set(level, (taken.get(level) ?? 0) + bytes);
    }
  }
  const figures: [string, string][] = [];
  const measure = async (path: string, shown = path): Promise<void> => {
    const times: number[] = [];
    for (let i = 0; i < requests; i++) {
      const begin = performance.now();
      const { status } = await world.request('GET', `/api/${path}`);
      if (status !== 200) throw new Error(`${path} answered ${status}`);
      times.push(performance.now() - begin);
    }
    figures.push([`/api/${shown} p50 / p99`, `${ms(percentile(times, 0.5))} / ${ms(percentile(times, 0.99))}`]);
  };
  for (const path of ['analytics', 'analytics/destinations/health', 'analytics/routes'])
    for (const range of ['1h', '24h', '7d', '30d']) await measure(`${path}?range=${range}`);
  const ofRoute = routes[0]?.status?.id ?? '';
  const ofDestination = names.get('receiver-0') ?? '';
  for (const [scope, shown] of [
    ['', ''],
    [`&sourceId=${source}`, '&sourceId'],
    [`&routeId=${ofRoute}`, '&routeId'],
    [`&destinationId=${ofDestination}`, '&destinationId'],
  ] as const)
    await measure(`analytics/series?step=5m${scope}`, `analytics/series?step=5m${shown} (288 points)`);
  const total = [...taken.values()].reduce((sum, bytes) => sum + bytes, 0);
  for (const { level, periods } of levels) {
    figures.push([`bytes of a destination in a period (${level})`, ((taken.get(level) ?? 0) / periods / destinations).toFixed(0)]);
  }
  figures.push(['bytes of a destination that is active in every period', (total / destinations).toFixed(0)]);
  figures.push(['statistics of the organization', `${(total / 1_048_576).toFixed(1)} MiB`]);
  figures.push(redisCeilingRow(await bareRedisPipeline()));
  report('analytics', `analytics of ${destinations} destinations, ${routes.length} routes`, figures);
} finally {
  await world.stop();
}
