// How exactly a throttle of 100/s is kept with a backlog and two workers, counted at dequeue and where the requests arrive:
//   node hack/bench/throttle.ts [seconds]
// When a message was dequeued is read from the record of its attempt, which begins when the worker has got it. The rate is that of
// `seconds` in which the backlog lasts; windows are measured until the last message.
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { exactDelivery, exactnessRow, settled } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [seconds = 30] = process.argv.slice(2).map(Number);
const rate = 100;
const windowSeconds = 10;

const sink = await startSink();
const throttle = { mode: 'rate', rateLimit: rate, rateUnit: 'second', maxConcurrency: null, queueLimit: null } as const;
const world = await startWorld({ lanes: [{ slug: 'orders', urls: [sink.origin], destination: { throttle } }], workers: 2 });
const sender = new Sender(world.ingest, 32);

/** When each attempt began, in ms, the earliest first. */
async function attemptsStartedAt(): Promise<number[]> {
  const reader = new RedisMessageReader({ redis: world.redis.client, prefix: world.prefix });
  const starts: number[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await reader.deliveries(
      'org_a',
      { destinationId: 'dst_orders0' },
      { limit: 100, ...(cursor !== undefined && { cursor }) },
    );
    const attempts = await Promise.all(page.items.map(({ id }) => reader.attempts('org_a', id)));
    starts.push(...attempts.flat().map(({ startedAtMs }) => startedAtMs));
    cursor = page.nextCursor;
  }
  return starts.toSorted((one, other) => one - other);
}

function maxInWindow(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  for (const [last, at] of times.entries()) {
    while (at - (times[first] ?? 0) >= windowSeconds * 1000) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Rate in the time in which the backlog lasts for certain, from two seconds after the first one on. */
function rateOf(times: readonly number[]): string {
  const begin = (times[0] ?? 0) + 2000;
  const count = times.filter((at) => at >= begin && at < begin + seconds * 1000).length;
  return `${perSecond(count / seconds)} (${((100 * count) / (rate * seconds)).toFixed(1)} % of the rate)`;
}

try {
  const ceilings = await measureCeilings(sink.origin, 20_000, 64);
  sink.reset();
  const meter = world.meterProcessor();
  const sent = await sender.closedLoop(world.path('orders'), rate * (seconds + windowSeconds), 32);
  await settled((seconds + 3 * windowSeconds) * 1000, () => sink.arrivals.size >= sent.accepted.length);
  const processor = meter(sink.arrivals.size);
  const exact = await exactDelivery([{ sink, sent: [sent] }]);
  const dequeued = await attemptsStartedAt();
  const allowed = rate * windowSeconds + rate;
  report('throttle', `${rate}/s, backlog, two workers, ${seconds} s`, [
    ...ceilingRows(ceilings),
    ['dequeued', rateOf(dequeued)],
    [`most dequeued in any ${windowSeconds} s`, `${maxInWindow(dequeued)} of at most ${allowed} (rate × T + burst)`],
    ['delivered', rateOf(sink.times)],
    [`most delivered in any ${windowSeconds} s`, `${maxInWindow(sink.times)} of at most ${allowed}`],
    ['attempts recorded', `${dequeued.length} of ${sent.accepted.length} messages`],
    processorRow(processor),
    exactnessRow(exact),
  ]);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
