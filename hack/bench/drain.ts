// How fast a backlog drains, and how fast ingest alone is:
//   node hack/bench/drain.ts [messages] [targets]
// First ingest alone with 64 senders and a fan-out over all targets, then one worker delivers everything.
import { eventually } from '../../test/support/eventually.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { exactDelivery, exactnessRow, settled } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { joined, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [messages = 100_000, targets = 10] = process.argv.slice(2).map(Number);
const senders = 64;

const sinks = await Promise.all(Array.from({ length: targets }, () => startSink()));
const lanes = sinks.map(({ origin }, i) => ({ slug: `s${i}`, urls: [origin] }));
const world = await startWorld({ lanes, workers: 0 });
const sender = new Sender(world.ingest, senders);
try {
  const [first] = sinks;
  if (first === undefined) throw new Error('there are no targets');
  const ceilings = await measureCeilings(first.origin, 20_000, senders);
  first.reset();
  const [ofAll, begin] = [world.meterProcessor(), performance.now()];
  const share = (i: number): number => Math.floor((i * senders) / targets);
  const sent = await Promise.all(
    lanes.map(({ slug }, i) => sender.closedLoop(world.path(slug), messages / targets, Math.max(1, share(i + 1) - share(i)))),
  );
  const ingest = messages / ((performance.now() - begin) / 1000);
  const { refused, answerMs } = joined(sent);
  const queuedBytes = Number(/used_memory:(\d+)/.exec(await world.redis.client.info('memory'))?.[1]);
  const arrived = (): number => sinks.reduce((sum, { arrivals }) => sum + arrivals.size, 0);
  await world.startDelivery();
  await eventually('the first delivery', 30_000, () => arrived() > 0);
  const [ofDrain, beginDrain] = [world.meterProcessor(), performance.now()];
  const already = arrived();
  await settled(300_000, () => arrived() >= messages - refused);
  const drained = (messages - refused - already) / ((performance.now() - beginDrain) / 1000);
  const processor = { all: ofAll(arrived()), drain: ofDrain(arrived() - already) };
  const exact = await exactDelivery(sinks.map((sink, i) => ({ sink, sent: sent.slice(i, i + 1) })));
  report('drain', `${messages} messages, ${targets} targets`, [
    ...ceilingRows(ceilings),
    ['ingest alone', perSecond(ingest)],
    ['answer of ingest p50 / p99', `${ms(percentile(answerMs, 0.5))} / ${ms(percentile(answerMs, 0.99))}`],
    ['Redis bytes per queued message (all of Redis)', (queuedBytes / messages).toFixed(0)],
    ['drain', `${perSecond(drained)} (${((100 * drained) / ceilings.undici).toFixed(0)} % of the ceiling)`],
    processorRow(processor.all, 'ingest and drain, with the start of the worker'),
    processorRow(processor.drain, 'drain alone'),
    ['refused', String(refused)],
    exactnessRow(exact),
  ]);
} finally {
  await sender.close();
  await world.stop();
  for (const sink of sinks) sink.close();
}
