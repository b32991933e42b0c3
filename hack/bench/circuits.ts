// A circuit storm: the circuits of many routes open at once, and the load on the API server until every status reports it.
//   node hack/bench/circuits.ts [routes] [seconds until the receiver answers again]
// Prints one table. The API server and etcd run on the same cores. The API server's own metrics count the writes.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { Circuits } from '../../src/data/queue/circuits.ts';
import { eventually } from '../../test/support/eventually.ts';
import { buildProgram } from '../lib/built-program.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { apiVersion, type ControlPlanePrograms, namespace, startControlPlanePrograms } from './lib/control-plane-programs.ts';
import { inParallel } from './lib/in-parallel.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';

const [routes = 10_000, answersAfterSeconds = 300] = process.argv.slice(2).map(Number);
const routesPerSource = 1000;
const routesPerDestination = 100;
const destinations = Math.ceil(routes / routesPerDestination);
const sources = Math.ceil(routes / routesPerSource);
const cooldownSeconds = 60;
/** Ten writes a second, twice, and what may be on the way. */
const deadlineMs = (routes + destinations) * 200 + answersAfterSeconds * 1000 + 120_000;

const routeListSchema = z.object({
  metadata: z.object({ continue: z.string().optional() }),
  items: z.array(
    z.object({
      status: z
        .object({
          circuit: z.object({ state: z.string() }).optional(),
          conditions: z.array(z.object({ type: z.string(), status: z.string() })).optional(),
        })
        .optional(),
    }),
  ),
});

async function main(): Promise<void> {
  // What is measured is what the image holds.
  buildProgram();
  let isFailing = true;
  const receiver = createServer((incoming, response) => {
    incoming.resume();
    response.statusCode = isFailing ? 500 : 204;
    response.end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const address = receiver.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
  const world = await startControlPlanePrograms(['controller', 'api', 'ingest', 'delivery'], {
    POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
    POSTHORN_SHARDS: '1',
  });
  const end = new AbortController();
  try {
    await create(world, url);
    await eventually('all routes to be ready', 600_000, async () => {
      await sleep(2000);
      return (await counted(world)).ready === routes;
    });
    const before = await probe(world, 10_000);
    const writes = countWrites(world, end.signal);
    const probing = probe(world, deadlineMs, end.signal);
    const startedAt = performance.now();
    const elapsed = (): number => (performance.now() - startedAt) / 1000;
    for (let i = 0; i < sources; i++) await send(world, `source-${i}`);
    await eventually('all circuits to be open', 120_000, async () => (await brokenCircuits(world)) === routes);
    const openedSeconds = elapsed();
    await sleep(Math.max(0, answersAfterSeconds * 1000 - openedSeconds * 1000));
    const shownOpen = (await counted(world)).open;
    isFailing = false;
    await eventually('all circuits to be closed', 600_000, async () => {
      await sleep(500);
      return (await brokenCircuits(world)) === 0;
    });
    const closedSeconds = elapsed();
    await eventually('every status to say so', deadlineMs, async () => {
      await sleep(5000);
      const { open, delivering } = await counted(world);
      console.error(`${elapsed().toFixed(0)} s: ${open} routes shown with a circuit that is not closed`);
      return open === 0 && delivering === routes;
    });
    const rightSeconds = elapsed();
    end.abort();
    const [perSecondWritten, during] = await Promise.all([writes, probing]);
    const written = perSecondWritten.reduce((sum, each) => sum + each, 0);
    report('circuits', 'circuits that open at once', [
      redisCeilingRow(await bareRedisPipeline()),
      ['routes, destinations', `${routes}, ${destinations}`],
      ['all circuits open after', seconds(openedSeconds)],
      [`routes whose status said so after ${answersAfterSeconds} s, when the receiver answered again`, String(shownOpen)],
      ['all circuits closed after', seconds(closedSeconds)],
      ['every status right after', seconds(rightSeconds)],
      ['status writes in all', String(written)],
      ['status writes in the busiest second', perSecond(Math.max(...perSecondWritten))],
      ['status writes in the busiest ten seconds', perSecond(busiest(perSecondWritten, 10) / 10)],
      ['GET of a destination at the API server before, p50 / p99', `${ms(percentile(before, 0.5))} / ${ms(percentile(before, 0.99))}`],
      ['the same until all was right, p50 / p99', `${ms(percentile(during, 0.5))} / ${ms(percentile(during, 0.99))}`],
    ]);
  } finally {
    end.abort();
    receiver.close();
    receiver.closeAllConnections();
    await world.stop();
  }
}

async function create(world: ControlPlanePrograms, url: string): Promise<void> {
  for (let i = 0; i < sources; i++) await world.create({ kind: 'Source', plural: 'sources' }, `source-${i}`, {});
  await inParallel(destinations, (i) =>
    world.create({ kind: 'Destination', plural: 'destinations' }, `destination-${i}`, { type: 'http', http: { url } }),
  );
  await inParallel(routes, (i) =>
    world.create({ kind: 'Route', plural: 'routes' }, `route-${i}`, {
      sourceRef: { name: `source-${Math.floor(i / routesPerSource)}` },
      destinationRefs: [{ name: `destination-${i % destinations}` }],
      circuit: { failureThreshold: 1, cooldownSeconds, probeSuccessThreshold: 1 },
    }),
  );
}

async function send({ ingestPort, apiKey }: ControlPlanePrograms, slug: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${ingestPort}/ingest/${namespace}/${slug}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: '{"order":1}',
  });
  if (!response.ok) throw new Error(`ingest answered ${response.status}: ${await response.text()}`);
}

/** From the statuses of the routes. */
async function counted({ plane }: ControlPlanePrograms): Promise<{ ready: number; open: number; delivering: number }> {
  const found = { ready: 0, open: 0, delivering: 0 };
  for (let token: string | undefined = ''; token !== undefined; ) {
    const path = `/apis/${apiVersion}/namespaces/${namespace}/routes?limit=500&continue=${encodeURIComponent(token)}`;
    const page: z.output<typeof routeListSchema> = routeListSchema.parse(await plane.request('GET', path));
    for (const { status } of page.items) {
      const is = (name: string): boolean => status?.conditions?.some((each) => each.type === name && each.status === 'True') === true;
      if (is('Ready')) found.ready++;
      if ((status?.circuit?.state ?? 'closed') !== 'closed') found.open++;
      else found.delivering++;
    }
    token = page.metadata.continue === '' ? undefined : page.metadata.continue;
  }
  return found;
}

/** Status writes of routes and destinations that the API server has counted, second by second. */
async function countWrites({ plane }: ControlPlanePrograms, signal: AbortSignal): Promise<number[]> {
  const dispatcher = new Agent({ connect: { ca: readFileSync(plane.caFile) } });
  const total = async (): Promise<number> => {
    const response = await request(`${plane.url}/metrics`, { headers: { authorization: `Bearer ${plane.token}` }, dispatcher });
    const lines = (await response.body.text())
      .split('\n')
      .filter(
        (line) =>
          line.startsWith('apiserver_request_total{') &&
          /resource="(routes|destinations)"/.test(line) &&
          line.includes('subresource="status"') &&
          /verb="(APPLY|PATCH|PUT)"/.test(line),
      );
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  };
  const written: number[] = [];
  let [last, dueAt] = [await total(), performance.now()];
  while (!signal.aborted) {
    dueAt += 1000;
    await sleep(Math.max(0, dueAt - performance.now()));
    const now = await total();
    written.push(now - last);
    last = now;
  }
  await dispatcher.destroy();
  return written;
}

/** Five reads a second of one object at the API server, and how long each took. */
async function probe({ plane }: ControlPlanePrograms, forMs: number, signal?: AbortSignal): Promise<number[]> {
  const taken: number[] = [];
  for (const endsAt = performance.now() + forMs; performance.now() < endsAt && signal?.aborted !== true; await sleep(200)) {
    const startedAt = performance.now();
    await plane.request('GET', `/apis/${apiVersion}/namespaces/${namespace}/destinations/destination-0`);
    taken.push(performance.now() - startedAt);
  }
  return taken;
}

async function brokenCircuits({ redis }: ControlPlanePrograms): Promise<number> {
  return (await new Circuits({ redis: redis.client, prefix: 'posthorn:' }).broken()).length;
}

function busiest(values: readonly number[], width: number): number {
  return Math.max(...values.map((_, i) => values.slice(i, i + width).reduce((sum, each) => sum + each, 0)));
}

const seconds = (value: number): string => `${value.toFixed(1)} s`;

await main();
