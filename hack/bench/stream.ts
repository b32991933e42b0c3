// The live stream: from the request to ingest to the row at a client, alone and beside 199 others, and what the feed costs Redis:
//   node hack/bench/stream.ts [seconds] [events of each round]
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { hashApiKey, newApiKey } from '../../src/core/api-key-hash.ts';
import { recordLayoutVersion } from '../../src/core/records.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { eventually } from '../../test/support/eventually.ts';
import { organizationRecord } from '../../test/support/records.ts';
import { ms, percentile, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [seconds = 20, events = 5000] = process.argv.slice(2).map(Number);
const perSecond = 20;
/** As many as an organization may have. */
const clientsPerOrganization = 20;

const sink = await startSink();
const world = await startWorld({ lanes: [{ slug: 'orders', urls: [sink.origin] }] });
const sender = new Sender(world.ingest, 64);
const clients: ClientRequest[] = [];
/** When the first row of each event came, by its id. */
const rowsAt = new Map<string, number>();

async function follow(key: string, onRow: (eventId: string) => void = () => undefined): Promise<void> {
  const asked = request(`${world.api}/api/stream?topics=events`, { headers: { authorization: key }, agent: false }).end();
  asked.on('error', () => {});
  clients.push(asked);
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  if (answer.statusCode !== 200) throw new Error(`a stream was refused: ${answer.statusCode}`);
  answer.setEncoding('utf8').on('data', (text: string) => {
    for (const [, id = ''] of text.matchAll(/"eventId":"(evt_\w+)"/g)) onRow(id);
  });
  answer.on('error', () => {});
}

/** Milliseconds from the request to the row, of events at a slow pace. */
async function latencies(): Promise<number[]> {
  const sent: { id: string; at: number }[] = [];
  for (let i = 0; i < seconds * perSecond; i++) {
    await sleep(1000 / perSecond);
    const at = performance.now();
    const answer = await fetch(world.ingest + world.path('orders'), { method: 'POST', body: '{"a":1}' });
    const { eventId } = (await answer.json()) as { eventId: string };
    sent.push({ id: eventId, at });
  }
  await eventually('the rows', 10_000, () => sent.every(({ id }) => rowsAt.has(id)) || undefined);
  return sent.map(({ id, at }) => (rowsAt.get(id) ?? 0) - at);
}

/** Microseconds of Redis in scripts per delivered event. */
async function scriptTime(): Promise<number> {
  sink.reset();
  await world.redis.client.call('CONFIG', 'RESETSTAT');
  const { accepted } = await sender.closedLoop(world.path('orders'), events, 16);
  await eventually('the deliveries', 60_000, () => sink.arrivals.size >= accepted.length || undefined);
  await sleep(200);
  const stats = await world.redis.client.info('commandstats');
  return Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(stats)?.[1] ?? 0) / accepted.length;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const shown = (values: readonly number[]): string => `${ms(percentile(values, 0.5))} / ${ms(percentile(values, 0.99))}`;
const noteRow = (id: string): void => void (rowsAt.has(id) || rowsAt.set(id, performance.now()));

try {
  await sender.closedLoop(world.path('orders'), 2000, 16);
  const watched: number[] = [];
  const unwatched: number[] = [];
  for (let round = 0; round < 6; round++) {
    await world.redis.client.del(`${world.prefix}{s0}:watch`, `${world.prefix}{s0}:feed`);
    unwatched.push(await scriptTime());
    await world.redis.client.set(`${world.prefix}{s0}:watch`, 'bench');
    await world.redis.client.xadd(`${world.prefix}{s0}:feed`, '*', '', '');
    watched.push(await scriptTime());
  }
  await world.redis.client.del(`${world.prefix}{s0}:watch`, `${world.prefix}{s0}:feed`);
  await follow(world.credentials[1], noteRow);
  const alone = await latencies();
  for (let i = 1; i < clientsPerOrganization; i++) await follow(world.credentials[1]);
  const publisher = new RedisRegistryPublisher(world.redis.client, world.prefix);
  const epoch = await publisher.mintEpoch();
  for (let i = 0; i < 9; i++) {
    const { key } = newApiKey();
    const org = `org_bench${i}`;
    const slug = `bench${i}`;
    await publisher.publish(epoch, 'organization', organizationRecord({ id: org, slug }));
    const rights = { role: 'admin' as const, scopes: ['read' as const], expiresAtMs: null, generation: 1 };
    const names = { id: `key_bench${i}`, org, orgSlug: slug, namespace: slug, name: slug };
    await publisher.publish(epoch, 'apiKey', { v: recordLayoutVersion, ...names, sha256: hashApiKey(key), ...rights });
    await sleep(500);
    for (let k = 0; k < clientsPerOrganization; k++) await follow(`Bearer ${key}`);
  }
  const beside = await latencies();
  const more = (mean(watched) / mean(unwatched) - 1) * 100;
  report('stream', `${seconds} s at ${perSecond}/s; ${events} events a round`, [
    ['request to ingest → row at the client, one client: p50 / p99', shown(alone)],
    ['the same beside 199 clients of the process, 19 of which get the row: p50 / p99', shown(beside)],
    ['scripts of Redis per delivered event while nobody watches', `${mean(unwatched).toFixed(1)} µs`],
    ['the same while somebody watches', `${mean(watched).toFixed(1)} µs (${more.toFixed(1)} % more)`],
  ]);
} finally {
  for (const client of clients) client.destroy();
  await sender.close();
  await world.stop();
  sink.close();
}
