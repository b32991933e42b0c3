// How soon deliveries resume after Redis is killed (SIGKILL) and started again on the same disk while messages wait:
//   node hack/bench/recovery.ts [messages] [targets]
// A backlog is made, a worker delivers a fifth as much again, and Redis is killed. Times count from the first answer to PING, which Redis
// gives when it has read its file. Steady: the first second in which 80 % arrive of what arrives in the median second of the rest.
// What was settled in the second before the kill may not be on the disk (AOF everysec) and comes again.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { exactDelivery, exactnessRow, settled } from './lib/exact-delivery.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { joined, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [messages = 100_000, targets = 10] = process.argv.slice(2).map(Number);
const senders = 6;
const deliveredFirst = messages / 5;
const steadyShare = 0.8;
const stepMs = 50;

const sinks = await Promise.all(Array.from({ length: targets }, () => startSink()));
const lanes = sinks.map(({ origin }, i) => ({ slug: `s${i}`, urls: [origin] }));
const world = await startWorld({ lanes, workers: 0 });
const sender = new Sender(world.ingest, senders * targets);
const arrived = (): number => sinks.reduce((sum, { arrivals }) => sum + arrivals.size, 0);

/** Returns when, in ms of `performance.now()`. */
async function untilPong(port: number): Promise<number> {
  return await eventually('PING to be answered', 120_000, async () => {
    const socket = connect(port, '127.0.0.1');
    try {
      socket.write('PING\r\n');
      const [answer] = await once(socket, 'data');
      return String(answer).startsWith('+PONG') ? performance.now() : undefined;
    } finally {
      socket.destroy();
    }
  });
}

/** The earliest second, by its beginning, in which so many arrived; `times`: the earliest first. */
function firstSteadyMs(times: readonly number[], fromMs: number, perSecondAtLeast: number): number {
  const last = times.at(-1) ?? fromMs;
  for (let begin = fromMs; begin <= last; begin += stepMs) if (countIn(times, begin, begin + 1000) >= perSecondAtLeast) return begin;
  return Number.POSITIVE_INFINITY;
}

function countIn(times: readonly number[], fromMs: number, toMs: number): number {
  return times.filter((at) => at >= fromMs && at < toMs).length;
}

try {
  const [first] = sinks;
  if (first === undefined) throw new Error('there are no targets');
  const ceilings = await measureCeilings(first.origin, 20_000, 64);
  first.reset();
  const sent = await Promise.all(
    lanes.map(({ slug }) => sender.closedLoop(world.path(slug), (messages + deliveredFirst) / targets, senders)),
  );
  // Until all of it is on the disk.
  await sleep(2000);
  const worker = await world.startDelivery();
  await eventually('a fifth to be delivered', 120_000, () => arrived() >= deliveredFirst);
  await world.redis.kill('SIGKILL');
  const killed = performance.now();
  const arrivedBefore = arrived();
  await sleep(1000);
  const starting = performance.now();
  const [back] = await Promise.all([untilPong(world.redis.port), world.redis.start()]);
  const accepted = joined(sent).accepted.length;
  await settled(300_000, () => arrived() >= accepted);
  const exact = await exactDelivery(sinks.map((sink, i) => ({ sink, sent: sent.slice(i, i + 1) })));
  const times = sinks.flatMap((sink) => sink.times).toSorted((one, other) => one - other);
  const after = times.filter((at) => at >= starting);
  const firstMs = after[0] ?? Number.POSITIVE_INFINITY;
  const wholeSeconds = Math.floor(((times.at(-1) ?? firstMs) - firstMs) / 1000);
  const rates = Array.from({ length: wholeSeconds }, (_, i) => countIn(after, firstMs + i * 1000, firstMs + (i + 1) * 1000));
  const rate = percentile(rates, 0.5);
  report('recovery', `Redis killed while ${accepted - arrivedBefore} messages wait for ${targets} targets`, [
    ...ceilingRows(ceilings),
    ['arrivals in the second before the kill', perSecond(countIn(times, killed - 1000, killed))],
    ['Redis started until PING is answered', ms(back - starting)],
    ['PING answered until the first arrival', ms(firstMs - back)],
    ['PING answered until arrivals are steady', ms(firstSteadyMs(after, firstMs, steadyShare * rate) - back)],
    ['arrivals in the median second after', perSecond(rate)],
    [
      'the worker went on',
      worker.output() === '' ? 'without a line of log' : `with ${worker.output().trimEnd().split('\n').length} lines of log`,
    ],
    exactnessRow(exact),
  ]);
} finally {
  await sender.close();
  await world.stop();
  for (const sink of sinks) sink.close();
}
