// What payloads of 25 MiB do to small events beside them, open loop (from the intended time):
//   node hack/bench/large.ts [large events a second] [seconds] [report 0/1]
// The ceiling is the same traffic between bare senders and bare receivers. Ends with 1 when the p99 of small events is above 20 ms beside the large ones.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { storeLayout } from '../../src/data/registry/store-layout.ts';
import type { LargeOrder, LargeReport } from './lib/large-traffic.ts';
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

async function beside(child: ChildProcess, url: string, small: () => Promise<Sent>): Promise<{ sent: Sent; large: LargeReport }> {
  const order: LargeOrder = { url, bytes, perSecond, seconds };
  const told = once(child, 'message') as Promise<[LargeReport]>;
  child.send(order);
  const [sent, [large]] = await Promise.all([small(), told]);
  return { sent, large };
}

const row = (name: string, { answerMs, refused }: Sent): [string, string] => [
  `${name}: small events, median / p99 / slowest; refused`,
  `${ms(percentile(answerMs, 0.5))} / ${ms(percentile(answerMs, 0.99))} / ${ms(Math.max(...answerMs))}; ${refused}`,
];
const largeRow = (name: string, large: LargeReport): [string, string] => [
  `${name}: large events, median / p99; accepted, refused, delivered`,
  'answerMs' in large
    ? `${ms(percentile(large.answerMs, 0.5))} / ${ms(percentile(large.answerMs, 0.99))}; ${large.accepted}, ${large.refused}, ${large.arrived}`
    : '-',
];

const sink = await startSink();
const [sender, receiver] = [await startLarge(), await startLarge()];
const world = await startWorld({
  lanes: [
    { slug: 'small', urls: [sink.origin] },
    { slug: 'large', urls: [sender.origin], source: { largePayloadLimitBytes: maxPayloadBytes } },
  ],
  environment: { POSTHORN_MAX_PAYLOAD_BYTES: String(maxPayloadBytes) },
});
const [small, bare] = [new Sender(world.ingest, 64), new Sender(sink.origin, 64)];
let isWithin = true;
try {
  await world.redis.client.set(`${world.prefix}{cfg}:layout`, String(storeLayout));
  await small.closedLoop(world.path('small'), 2000, 16);
  const rows: [string, string][] = [];
  const raw = await beside(sender.child, receiver.origin, () => bare.openLoop('/', smallPerSecond, seconds));
  rows.push(row('bare receivers', raw.sent), largeRow('bare receivers', raw.large));
  rows.push(row('alone', await small.openLoop(world.path('small'), smallPerSecond, seconds)));
  const found = await beside(sender.child, `${world.ingest}${world.path('large')}`, () =>
    small.openLoop(world.path('small'), smallPerSecond, seconds),
  );
  rows.push(row('beside', found.sent), largeRow('beside', found.large));
  isWithin = percentile(found.sent.answerMs, 0.99) <= boundMs && found.sent.refused === 0;
  report(isKept === 1 ? 'large' : null, `${perSecond}/s of 25 MiB beside ${smallPerSecond}/s of 400 bytes, for ${seconds} s`, rows);
} finally {
  sender.child.kill();
  receiver.child.kill();
  await Promise.all([small.close(), bare.close()]);
  await world.stop();
  sink.close();
}
process.exitCode = isWithin ? 0 : 1;
