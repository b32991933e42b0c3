// Kills (SIGKILL) the api and then the workers while an event for very many webhook endpoints is spread over them:
//   node hack/chaos/expansion.ts [endpoints] [rounds] [--seed N] [--short]
// In each round one event is sent, with an idempotencyKey and until it is answered. Once some of its messages are made the api is killed, later one
// worker, later the other; each is started again. At the end every endpoint must have had every event under one webhook-id, twice only what a killed
// worker had under way, and `posthorn check` must have no findings. --short keeps no figures.
import { parseArgs } from 'node:util';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger } from '../../test/support/logger.ts';
import type { Program } from '../../test/support/program.ts';
import { fillCustomers } from '../bench/lib/customers.ts';
import { report } from '../bench/lib/report.ts';
import { startSink } from '../bench/lib/sink.ts';
import { encryptionKey, startWorld } from '../bench/lib/world.ts';
import { randomOf } from './random.ts';

const { values, positionals } = parseArgs({
  options: { seed: { type: 'string' }, short: { type: 'boolean' } },
  allowPositionals: true,
});
const [endpoints = 100_000, rounds = 3] = positionals.map(Number);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = randomOf(seed);
const slots = 128;
const eventType = 'for.all';
const maxWaitMs = 200_000;
const rateLimits = { perSecond: 1_000_000, perMinute: 10_000_000, perHour: 100_000_000 };

/** Per event and endpoint how often it came, and under which ids. */
const deliveries = new Map<string, Map<string, { times: number; ids: Set<string> }>>();
const sink = await startSink(({ headers, url = '' }, response) => {
  const eventId = String(headers['x-posthorn-event-id']);
  const ofEvent = deliveries.get(eventId) ?? new Map();
  const { times, ids } = ofEvent.get(url) ?? { times: 0, ids: new Set() };
  ofEvent.set(url, { times: times + 1, ids: ids.add(String(headers['webhook-id'])) });
  deliveries.set(eventId, ofEvent);
  response.end();
});
const world = await startWorld({
  lanes: [],
  eventTypes: [eventType],
  workers: 2,
  environment: { POSTHORN_SHARDS: '4', POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true', POSTHORN_DELIVERY_CONCURRENCY: String(slots) },
});
const { redis, prefix, shards, programs } = world;
const installation = { redis: redis.client, prefix, shards };
const shardNumbers = Array.from({ length: shards }, (_, shard) => shard);

/** Sends an event until it is answered, which by its key it is as the first time; answers its id. */
async function send(round: number): Promise<string> {
  const body = JSON.stringify({ eventType, payload: { round }, idempotencyKey: `round ${round}` });
  const headers = Object.fromEntries([world.credentials, ['content-type', 'application/json']]);
  return await eventually('an event to be taken', 60_000, async () => {
    const answer = await fetch(`${world.api}/api/send-event`, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) });
    return answer.ok ? ((await answer.json()) as { data: { eventId: string } }).data.eventId : undefined;
  });
}

async function sum(ask: (shard: number) => Promise<unknown>): Promise<number> {
  return (await Promise.all(shardNumbers.map(ask))).reduce((total: number, each) => total + Number(each ?? 0), 0);
}
const unfinished = (): Promise<number> => sum((shard) => redis.client.hget(`${prefix}{s${shard}}:ctl`, 'open'));
const arrived = (): number => [...deliveries.values()].reduce((all, { size }) => all + size, 0);
const waiting = (): Promise<number> => sum((shard) => redis.client.xlen(`${prefix}{s${shard}}:out`));

async function kill(program: Program | undefined): Promise<void> {
  program?.signal('SIGKILL');
  await program?.ended;
}

const kills = { api: 0, delivery: 0 };
/** Kills after which a part of the expansion was still to be done. */
let inTheMiddle = 0;

/** Kills once so many messages are made. */
async function killAt(share: number, victim: keyof typeof kills, arrivedBefore: number): Promise<void> {
  const deadline = AbortSignal.timeout(maxWaitMs);
  while (arrived() - arrivedBefore + (await unfinished()) < share * endpoints) deadline.throwIfAborted();
  await kill(victim === 'api' ? programs.api : programs.deliveries.shift());
  kills[victim]++;
  if ((await waiting()) > 0) inTheMiddle++;
  await (victim === 'api' ? world.restartApi() : world.startDelivery());
}

async function playRound(round: number): Promise<void> {
  const arrivedBefore = arrived();
  const sent = send(round);
  for (const [i, victim] of (['api', 'delivery', 'delivery'] as const).entries()) await killAt((i + random()) / 3, victim, arrivedBefore);
  const eventId = await sent;
  await eventually(
    'all deliveries',
    maxWaitMs,
    async () => deliveries.get(eventId)?.size === endpoints && (await unfinished()) + (await waiting()) === 0,
  ).catch(() => undefined);
}

let failed = true;
console.log(`seed ${seed}`);
try {
  const store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  const url = (application: number, endpoint: number): string => `${sink.origin}/customers/${application}/hooks/${endpoint}`;
  await fillCustomers(store, { org: 'org_a', endpoints, eventTypes: [`etp_${eventType}`], shards, encryptionKey, rateLimits, url });
  // A kill that came too late shows nothing: then there is another round.
  let played = 0;
  while (played < rounds || (inTheMiddle === 0 && played < rounds + 5)) await playRound(played++);
  const { findings, unfinished: left } = await checkShards(installation);
  const each = [...deliveries.values()].flatMap((ofEvent) => [...ofEvent.values()]);
  const lost = played * endpoints - each.length;
  const duplicated = each.reduce((total, { times }) => total + times - 1, 0);
  const twice = each.filter(({ ids }) => ids.size > 1).length;
  failed = lost + twice + findings.length + left > 0 || duplicated > kills.delivery * slots || inTheMiddle === 0;
  report(
    failed || values.short === true ? null : 'kill-expansion',
    `kills while events are spread over ${endpoints} endpoints, seed ${seed}`,
    [
      ['kills; in the middle of an expansion', `api ${kills.api}, delivery ${kills.delivery}; ${inTheMiddle}`],
      ['lost / twice under another webhook-id', `${lost} / ${twice}`],
      ['again under the same webhook-id', String(duplicated)],
      ['findings of posthorn check, unfinished messages', `${findings.length}, ${left}`],
    ],
  );
} finally {
  await world.stop();
  sink.close();
}
process.exitCode = failed ? 1 : 0;
