// How many messages a second ingest makes of events for many destinations:
//   node hack/bench/fan-out.ts [events] [targets]
// What is measured is the way from the sender into the queues; then a worker delivers everything.
import { eventually } from '../../test/support/eventually.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { startEndpoints } from './lib/endpoints.ts';
import { exactDeliveryOf, exactnessRow, settled } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { payloadBytes, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [events = 3000, targets = 100] = process.argv.slice(2).map(Number);

const endpoints = await startEndpoints();
const paths = new Set(Array.from({ length: targets }, (_, i) => `/${i}`));
const urls = [...paths].map((path) => `${endpoints.sink.origin}${path}`);
const world = await startWorld({ lanes: [{ slug: 'orders', urls }], workers: 0 });
const sender = new Sender(world.ingest, 64);
const unfinished = async (): Promise<number> => Number(await world.redis.client.hget(`${world.prefix}{s0}:ctl`, 'open'));
try {
  const ceilings = await measureCeilings(endpoints.sink.origin, 20_000, 64);
  endpoints.reset();
  const warmUp = await sender.closedLoop(world.path('orders'), 100, 64);
  const before = await unfinished();
  const meter = world.meterProcessor();
  const begin = performance.now();
  const sent = await sender.closedLoop(world.path('orders'), events, 64);
  const { seconds, refused, answerMs } = sent;
  const expected = before + (events - refused) * targets;
  await eventually('all messages to be queued', 60_000, async () => (await unfinished()) >= expected);
  const messages = ((events - refused) * targets) / ((performance.now() - begin) / 1000);
  const queuedTooMany = (await unfinished()) - expected;
  await world.startDelivery();
  const accepted = warmUp.accepted.length + sent.accepted.length;
  await settled(300_000, () => endpoints.deliveries() >= accepted * targets);
  // The few of the warm-up were stored before and are delivered with them.
  const processor = meter(endpoints.deliveries());
  const exact = await exactDeliveryOf(() => endpoints.compare([warmUp, sent], () => paths));
  report('fan-out', `${events} events for ${targets} targets each, 64 senders, ${payloadBytes} bytes`, [
    ...ceilingRows(ceilings),
    ['events', perSecond(events / seconds)],
    ['messages', perSecond(messages)],
    ['answer of ingest p50 / p99', `${ms(percentile(answerMs, 0.5))} / ${ms(percentile(answerMs, 0.99))}`],
    processorRow(processor, 'each message'),
    ['refused / queued too many', `${refused} / ${queuedTooMany}`],
    exactnessRow(exact),
  ]);
} finally {
  await sender.close();
  await world.stop();
  endpoints.sink.close();
}
