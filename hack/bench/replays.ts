// A replay of dead letters, and live traffic beside many replays:
//   node hack/bench/replays.ts [dead letters] [seconds] [organizations] [replays of each]
// First: one replay at 2,000/s, which is suspended and resumed after a third, and whose worker is killed after two thirds. Then: a healthy target at 100/s, alone
// and beside the replays; one of these sends to a target that has live traffic of its own at 100/s.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { newTimedId } from '../../src/core/ids.ts';
import type { ReplayRecord } from '../../src/core/replay-record.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { RedisReplayRuns } from '../../src/data/replays/redis-replay-runs.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { eventually } from '../../test/support/eventually.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { dead, settleAll, takeFrom } from '../../test/support/queue-worker.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../test/support/records.ts';
import { replayRecord } from '../../test/support/replays.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { settled } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { type Sink, startSink } from './lib/sink.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld, type World } from './lib/world.ts';

const [count = 100_000, seconds = 20, organizations = 10, replaysOfEach = 10] = process.argv.slice(2).map(Number);
const rate = 2000;
const liveRate = 100;
const circuit = { failureThreshold: 10_000_000, cooldownSeconds: 60, probeSuccessThreshold: 2 };
const acceptedAtOnce = 64;
/** When replayed messages were sent, so that their latencies are negative. */
const future = 999_999_999_999;

type Target = { org: string; routeId: string; destinationId: string };

/** Messages that are dead letters already: no worker is running. Their numbers are above those of any traffic. */
async function deadLetters({ redis, prefix }: World, target: Target, number: number, first: number): Promise<void> {
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: systemClock });
  const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  await queue.refreshShard('w_bench', 1000);
  for (let made = 0; made < number; made += acceptedAtOnce) {
    const some = Array.from({ length: Math.min(acceptedAtOnce, number - made) }, (_, i) => {
      const { org, routeId, destinationId } = target;
      const messageId = newTimedId('msg_', 0, Date.now());
      const payload = Buffer.from(`{"number":${first + made + i},"sent":${future}}`);
      return newEvent({ org, payload, targets: [{ messageId, routeId, destinationId, shard: 0, maxAttempts: 1 }] });
    });
    await Promise.all(some.map((event) => acceptor.accept(event)));
    for (
      let jobs = await takeFrom(queue, 'w_bench', 64, { circuit });
      jobs.length > 0;
      jobs = await takeFrom(queue, 'w_bench', 64, { circuit })
    )
      await settleAll(queue, 'w_bench', jobs, dead);
  }
}

const newReplay = (changes: Partial<ReplayRecord>): ReplayRecord => {
  const name = randomUUID();
  return replayRecord({ id: `rep_${name}`, identity: name, uid: name, ratePerSecond: rate, ...changes });
};

async function oneReplay(): Promise<[string, string][]> {
  const sink = await startSink();
  const world = await startWorld({ lanes: [{ slug: 'a', urls: [sink.origin], circuit }], workers: 0 });
  try {
    const ceilings = await measureCeilings(sink.origin, 20_000, 64);
    sink.reset();
    await deadLetters(world, { org: 'org_a', routeId: 'rte_a', destinationId: 'dst_a0' }, count, 1);
    const publisher = new RedisRegistryPublisher(world.redis.client, world.prefix);
    const epoch = await publisher.mintEpoch();
    const runs = new RedisReplayRuns({ redis: world.redis.client, prefix: world.prefix });
    const dryRun = newReplay({ isDryRun: true });
    const replay = newReplay({});
    const run = async ({ identity }: ReplayRecord) => await runs.find('org_a', identity);
    const queued = async (): Promise<number> => (await run(replay))?.queued ?? 0;
    const worker = await world.startDelivery();
    await publisher.publish(epoch, 'replay', dryRun);
    const planBeganAt = performance.now();
    await eventually('the replay', 600_000, async () => (await run(dryRun))?.phase === 'Succeeded');
    const planMs = performance.now() - planBeganAt;
    await publisher.publish(epoch, 'replay', replay);
    await eventually('the replay', 600_000, async () => (await queued()) > 0);
    const [beganAt, first, meter] = [performance.now(), await queued(), world.meterProcessor()];
    await eventually('the replay', 600_000, async () => (await queued()) >= count / 3);
    const third = { at: performance.now(), queued: await queued() };
    const processor = meter(third.queued - first);
    await publisher.publish(epoch, 'replay', { ...replay, isSuspended: true, generation: 2 });
    await sleep(2000);
    const suspended = await queued();
    await sleep(2000);
    const stillSuspended = await queued();
    await publisher.publish(epoch, 'replay', { ...replay, generation: 3 });
    await eventually('the replay', 600_000, async () => (await queued()) >= (count * 2) / 3);
    worker.signal('SIGKILL');
    await world.startDelivery();
    await eventually('the replay', 600_000, async () => (await run(replay))?.phase === 'Succeeded');
    const { delivered = 0, failed = 0, endedOtherwise = 0, skipped = {} } = (await run(replay)) ?? {};
    const webhookIds = [...sink.webhookIds.values()];
    return [
      ...ceilingRows(ceilings),
      [`plan of ${count} (dry run)`, `${(planMs / 1000).toFixed(1)} s; candidates ${(await run(dryRun))?.plan.candidates}`],
      ['queued until it was suspended, of 2000/s', perSecond(((third.queued - first) * 1000) / (third.at - beganAt))],
      processorRow(processor, 'until then'),
      ['queued in 2 s while suspended', String(stillSuspended - suspended)],
      ['queued, delivered, failed, otherwise', [await queued(), delivered, failed, endedOtherwise].join(', ')],
      ['skipped', JSON.stringify(skipped)],
      ['originals that came', String(sink.arrivals.size)],
      ['originals that came under more than one webhook-id', String(webhookIds.filter((ids) => ids.size > 1).length)],
    ];
  } finally {
    await world.stop();
    sink.close();
  }
}

async function besideReplays(): Promise<[string, string][]> {
  const [healthy, replayedTo, others] = [await startSink(), await startSink(), await startSink()];
  const lanes = [
    { slug: 'healthy', urls: [healthy.origin] },
    { slug: 'replayed', urls: [replayedTo.origin] },
  ];
  const world = await startWorld({ lanes, workers: 0 });
  const sender = new Sender(world.ingest, 64);
  const first = 1_000_000_000;
  const each = Math.ceil((rate * seconds) / organizations / 4);
  try {
    const publisher = new RedisRegistryPublisher(world.redis.client, world.prefix);
    const epoch = await publisher.mintEpoch();
    const targets: Target[] = [{ org: 'org_a', routeId: 'rte_replayed', destinationId: 'dst_replayed0' }];
    for (let i = 1; i < organizations; i++) {
      const target = { org: `org_${i}`, routeId: `rte_${i}`, destinationId: `dst_${i}` };
      targets.push(target);
      await publisher.publish(epoch, 'organization', organizationRecord({ id: target.org, slug: `o${i}` }));
      await publisher.publish(
        epoch,
        'destination',
        destinationRecord({ url: others.origin }, { id: target.destinationId, org: target.org }),
      );
      await publisher.publish(
        epoch,
        'route',
        routeRecord({ id: target.routeId, org: target.org, destinations: [{ id: target.destinationId, shard: 0 }] }),
      );
    }
    for (const [i, target] of targets.entries()) await deadLetters(world, target, each, first + i * each);
    await world.startDelivery();
    const live = async (): Promise<{ healthy: number; replayed: number }> => {
      healthy.reset();
      replayedTo.reset();
      const [one, two] = await Promise.all([
        sender.openLoop(world.path('healthy'), liveRate, seconds),
        sender.openLoop(world.path('replayed'), liveRate, seconds),
      ]);
      await settled(60_000, () => healthy.arrivals.size >= one.accepted.length && liveOf(replayedTo).length >= two.accepted.length);
      return { healthy: percentile(healthy.latenciesMs, 0.99), replayed: percentile(liveOf(replayedTo), 0.99) };
    };
    for (const slug of ['healthy', 'replayed']) await sender.closedLoop(world.path(slug), 500, 8);
    await settled(60_000, () => healthy.arrivals.size >= 500 && liveOf(replayedTo).length >= 500);
    const alone = await live();
    const replays = targets.flatMap(({ org }) => Array.from({ length: replaysOfEach }, () => newReplay({ org })));
    for (const replay of replays) await publisher.publish(epoch, 'replay', replay);
    const runs = new RedisReplayRuns({ redis: world.redis.client, prefix: world.prefix });
    const allRuns = async () => (await Promise.all(targets.map(({ org }) => runs.runs(org)))).flat();
    await eventually('all plans', 300_000, async () => {
      const all = await allRuns();
      return all.length === replays.length && all.every(({ phase }) => phase !== 'Planning');
    });
    const queuedBefore = sumOfQueued(await allRuns());
    const beside = await live();
    const all = await allRuns();
    const row = (what: string, one: number, other: number): [string, string] => [
      what,
      `${ms(one)} alone, ${ms(other)} beside: ${(other / one).toFixed(2)}`,
    ];
    return [
      [`messages of ${replays.length} replays that were queued meanwhile`, String(sumOfQueued(all) - queuedBefore)],
      ['replays that were running at the end', String(all.filter(({ endedAtMs }) => endedAtMs === null).length)],
      row('healthy target: p99', alone.healthy, beside.healthy),
      row('live traffic of a target that is replayed to: p99', alone.replayed, beside.replayed),
    ];
  } finally {
    await sender.close();
    await world.stop();
    for (const sink of [healthy, replayedTo, others]) sink.close();
  }
}

function sumOfQueued(runs: readonly { queued: number }[]): number {
  return runs.reduce((sum, { queued }) => sum + queued, 0);
}

/** Latencies of what is no replay. */
function liveOf({ latenciesMs }: Pick<Sink, 'latenciesMs'>): number[] {
  return latenciesMs.filter((latency) => latency >= 0);
}

report('replays', `${count} dead letters at ${rate}/s; ${organizations} organizations with ${replaysOfEach} replays each`, [
  ...(await oneReplay()),
  ...(await besideReplays()),
]);
