// How exactly a throttle of 100/s is kept with a backlog and two workers, counted where the requests arrive:
//   node hack/bench/throttle.ts [seconds]
import { setTimeout as sleep } from 'node:timers/promises';
import { perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { bareCeiling, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [seconds = 30] = process.argv.slice(2).map(Number);
const rate = 100;
const windowSeconds = 10;

const sink = await startSink();
const throttle = { mode: 'rate', rateLimit: rate, rateUnit: 'second', maxConcurrency: null, queueLimit: null } as const;
const world = await startWorld({ lanes: [{ slug: 'orders', urls: [sink.origin], destination: { throttle } }], workers: 2 });
const sender = new Sender(world.api, 32);
try {
  const ceiling = await bareCeiling(sink.origin, 20_000, 64);
  await sender.closedLoop(world.path('orders'), rate * (seconds + windowSeconds) * 2, 32);
  await sleep(2000);
  sink.reset();
  await sleep(seconds * 1000);
  const times = [...sink.times];
  const windowMs = windowSeconds * 1000;
  let most = 0;
  let first = 0;
  for (const [last, at] of times.entries()) {
    while (at - (times[first] ?? 0) >= windowMs) first++;
    most = Math.max(most, last - first + 1);
  }
  const allowed = rate * windowSeconds + rate;
  report('throttle', `${rate}/s, backlog, two workers, ${seconds} s`, [
    ['bare undici loop', perSecond(ceiling)],
    ['delivered', `${perSecond(times.length / seconds)} (${((100 * times.length) / (rate * seconds)).toFixed(1)} % of the rate)`],
    [`most in any ${windowSeconds} s`, `${most} of at most ${allowed} (rate × T + burst)`],
  ]);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
