// What payloads of 25 MiB do to small events beside them, open loop (from the intended time):
//   node hack/bench/large.ts [large events a second] [seconds] [report 0/1]
// Ceilings: the same traffic between bare senders and bare receivers, and over a bare relay (lib/bare-relay.ts) that writes bodies to Redis and
// reads them there. Ends with 1 when the p99 of small events is above 20 ms beside the large ones.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { storeLayout } from '../../src/data/registry/store-layout.ts';
import { startBareRelay } from './lib/bare-relay.ts';
import type { LargeOrder, LargeReport } from './lib/large-traffic.ts';
import { busyCores, coresOf } from './lib/processes.ts';
import { withLargeAof } from './lib/redis-options.ts';
import { ms, percentile, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { Sender, type Sent } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [perSecond = 5, seconds = 20, isKept = 1] = process.argv.slice(2).map(Number);
const bytes = 25 * 1024 * 1024;
const maxPayloadBytes = 32 * 1024 * 1024;
const smallPerSecond = 100;
const boundMs = 20;

async function startLarge(): Promise<{ child: ChildProcess; origin: string }> {
  const child = fork(new URL('lib/large-traffic.ts', import.meta.url).pathname, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [told] = (await once(child, 'message')) as [LargeReport];
  return { child, origin: 'origin' in told ? told.origin : '' };
}

interface Found {
  sent: Sent;
  large: LargeReport;
  cores: { all: number; own: number };
}

/** `pids`: of what is measured, as its part of the cores in use. */
async function beside(child: ChildProcess, url: string, pids: readonly number[], small: () => Promise<Sent>): Promise<Found> {
  const order: LargeOrder = { url, bytes, perSecond, seconds };
  const told = once(child, 'message') as Promise<[LargeReport]>;
  const [all, own] = [busyCores(), coresOf(pids)];
  child.send(order);
  const sent = await small();
  const cores = { all: all(), own: own() };
  const [large] = await told;
  return { sent, large, cores };
}

function rowsOf(name: string, { sent: { answerMs, refused }, large, cores }: Found): [string, string][] {
  const most = `${ms(percentile(answerMs, 0.5))} / ${ms(percentile(answerMs, 0.99))} / ${ms(Math.max(...answerMs))}; ${refused}`;
  const ofLarge =
    'answerMs' in large
      ? `${ms(percentile(large.answerMs, 0.5))} / ${ms(percentile(large.answerMs, 0.99))}; ${large.accepted}, ${large.refused}, ${large.arrived}`
      : '-';
  return [
    [`${name}: small events, median / p99 / slowest; refused`, most],
    [`${name}: large events, median / p99; accepted, refused, delivered`, ofLarge],
    [`${name}: cores in use, of them by what is measured`, `${cores.all.toFixed(2)}, ${cores.own.toFixed(2)}`],
  ];
}

const sink = await startSink();
const [sender, receiver] = [await startLarge(), await startLarge()];
const world = await startWorld({
  lanes: [
    { slug: 'small', urls: [sink.origin] },
    { slug: 'large', urls: [sender.origin], source: { largePayloadLimitBytes: maxPayloadBytes } },
  ],
  redisArguments: withLargeAof,
  environment: { POSTHORN_MAX_PAYLOAD_BYTES: String(maxPayloadBytes) },
});
const small = new Sender(world.ingest, 64);
let isWithin = true;
try {
  const rows: [string, string][] = [];
  const bare = new Sender(sink.origin, 64);
  const raw = await beside(sender.child, receiver.origin, [], () => bare.openLoop('/', smallPerSecond, seconds));
  rows.push(...rowsOf('bare receivers', raw));
  await bare.close();
  const relay = await startBareRelay({ small: sink.origin, large: sender.origin });
  const relayed = new Sender(relay.origin, 64);
  try {
    await relayed.closedLoop('/small', 2000, 16);
    const ceiling = await beside(sender.child, `${relay.origin}/large`, relay.pids, () =>
      relayed.openLoop('/small', smallPerSecond, seconds),
    );
    rows.push(...rowsOf('bare relay', ceiling));
  } finally {
    await relayed.close();
    await relay.stop();
  }
  await world.redis.client.set(`${world.prefix}{cfg}:layout`, String(storeLayout));
  await small.closedLoop(world.path('small'), 2000, 16);
  const alone = await small.openLoop(world.path('small'), smallPerSecond, seconds);
  rows.push(['alone: small events, median / p99', `${ms(percentile(alone.answerMs, 0.5))} / ${ms(percentile(alone.answerMs, 0.99))}`]);
  const found = await beside(sender.child, `${world.ingest}${world.path('large')}`, world.pids(), () =>
    small.openLoop(world.path('small'), smallPerSecond, seconds),
  );
  rows.push(...rowsOf('beside', found));
  isWithin = percentile(found.sent.answerMs, 0.99) <= boundMs && found.sent.refused === 0;
  report(isKept === 1 ? 'large' : null, `${perSecond}/s of 25 MiB beside ${smallPerSecond}/s of 400 bytes, for ${seconds} s`, rows);
} finally {
  sender.child.kill();
  receiver.child.kill();
  await small.close();
  await world.stop();
  sink.close();
}
process.exitCode = isWithin ? 0 : 1;
