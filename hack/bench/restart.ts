// What the end of a worker does to the traffic, at 500/s with two workers:
//   node hack/bench/restart.ts [seconds] [--short]
// First both are replaced one after the other by SIGTERM (a rolling restart), then one is killed (SIGKILL) while a slow receiver has
// its attempts: how long until what it held arrives again, how long nothing arrives at all, what comes twice. Ends with 1 when anything
// is lost or left unfinished, a rolling restart makes anything come twice, or a kill more than what was held. --short: at 100/s, without the ceilings; keeps no figures.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { workerKeys } from '../../src/data/membership/worker-directory.ts';
import { shardBase } from '../../src/data/shard/shard-keys.ts';
import { SteadySender } from '../chaos/steady-sender.ts';
import { untilSettled } from '../chaos/until-settled.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { type Exactness, exactDelivery, exactnessRow } from './lib/exact-delivery.ts';
import { ms, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { startWorld } from './lib/world.ts';

const { values, positionals } = parseArgs({ options: { short: { type: 'boolean' } }, allowPositionals: true });
const isShort = values.short === true;
const [seconds = 20] = positionals.map(Number);
const rate = isShort ? 100 : 500;
const answerMs = 100;

const sink = await startSink((_, response) => void setTimeout(() => response.end(), answerMs));
const bare = await startSink();
const world = await startWorld({ lanes: [{ slug: 'orders', urls: [sink.origin] }], workers: 2 });

interface Outcome {
  exact: Exactness;
  longestGapMs: number;
  slowestMs: number;
}

/** Sends for `seconds` while `disturb` does its work in the middle. */
async function during(disturb: () => Promise<void>): Promise<Outcome> {
  sink.reset();
  const sender = new SteadySender(`${world.ingest}${world.path('orders')}`, rate);
  sender.start();
  await sleep((seconds * 1000) / 3);
  await disturb();
  await sleep((seconds * 1000) / 2);
  await sender.stop();
  const sent = { accepted: sender.accepted, uncertain: sender.sent };
  return {
    exact: await exactDelivery([{ sink, sent: [sent] }], 15_000),
    longestGapMs: longestGap(sink.times),
    slowestMs: Math.max(...sink.latenciesMs),
  };
}

/** What all workers hold, those that have just died among them. */
async function held(): Promise<number> {
  const { redis, prefix } = world;
  const alive = await redis.client.zrange(workerKeys(prefix).alive, '0', '-1');
  const counts = await Promise.all(alive.map((worker) => redis.client.hlen(`${shardBase(prefix, 0)}held:${worker}`)));
  return counts.reduce((sum, count) => sum + count, 0);
}

function longestGap(times: readonly number[]): number {
  return times.reduce((longest, at, i) => Math.max(longest, i === 0 || i > times.length - 200 ? 0 : at - (times[i - 1] ?? at)), 0);
}

let failed = true;
try {
  const ceilings = isShort ? [] : ceilingRows(await measureCeilings(bare.origin, 20_000, 64));
  await sleep(3000);
  const rolling = await during(async () => {
    for (let i = 0; i < 2; i++) {
      const old = world.programs.deliveries.shift();
      await world.startDelivery();
      await sleep(2000);
      old?.signal('SIGTERM');
      await old?.ended;
    }
  });
  let heldAtKill = 0;
  const killed = await during(async () => {
    const victim = world.programs.deliveries.shift();
    victim?.signal('SIGKILL');
    await victim?.ended;
    heldAtKill = await held();
  });
  const installation = { redis: world.redis.client, prefix: world.prefix, shards: world.shards };
  await untilSettled(installation, 30_000);
  const { findings, unfinished } = await checkShards(installation);
  const isLeft = findings.length + unfinished > 0;
  const { lost, unexpected, duplicated } = rolling.exact;
  const isWrong = lost + unexpected + duplicated + killed.exact.lost + killed.exact.unexpected > 0;
  failed = isLeft || isWrong || killed.exact.duplicated > heldAtKill;
  report(failed || isShort ? null : 'restart', `${rate}/s, two workers, receiver answers after ${answerMs} ms`, [
    ...ceilings,
    exactnessRow(rolling.exact, 'rolling restart'),
    ['rolling restart: longest time without an arrival', ms(rolling.longestGapMs)],
    exactnessRow(killed.exact, 'kill -9 of one worker'),
    ['kill -9: held at the kill', String(heldAtKill)],
    ['kill -9: longest time without an arrival', ms(killed.longestGapMs)],
    ['kill -9: what it held arrives after at most', ms(killed.slowestMs)],
    ['findings of posthorn check, unfinished messages', `${findings.length}, ${unfinished}`],
  ]);
} finally {
  await world.stop();
  sink.close();
  bare.close();
}
process.exitCode = failed ? 1 : 0;
