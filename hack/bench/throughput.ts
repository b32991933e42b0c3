// How fast events go from ingest to their receiver through one route:
//   node hack/bench/throughput.ts [events] [senders]
// Payload 400 bytes, signed, attempts recorded; sender and receiver are this process, on the same cores.
import { waitUntil } from '../../test/support/wait-until.ts';
import { exactDelivery, ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { bareCeiling, payloadBytes, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [events = 20_000, senders = 64] = process.argv.slice(2).map(Number);

const sink = await startSink();
const world = await startWorld({ lanes: [{ slug: 'orders', urls: [sink.origin] }] });
const sender = new Sender(world.api, senders);
const path = world.path('orders');
try {
  const ceiling = await bareCeiling(sink.origin, events, senders);
  sink.reset();
  await sender.closedLoop(path, 2000, senders);
  await waitUntil('the warm-up', 30_000, () => (sink.arrivals.size >= 2000 ? true : undefined));
  sink.reset();
  const begin = performance.now();
  const { seconds, refused, answerMs } = await sender.closedLoop(path, events, senders);
  await waitUntil('all deliveries', 120_000, () => (sink.arrivals.size >= events - refused ? true : undefined));
  const delivered = events / ((performance.now() - begin) / 1000);
  const { lost, duplicated } = exactDelivery([sink], events - refused);
  report('throughput', `${events} events, ${senders} senders, ${payloadBytes} bytes`, [
    ['bare undici loop', perSecond(ceiling)],
    ['ingest while delivering', perSecond(events / seconds)],
    ['answer of ingest p50 / p99', `${ms(percentile(answerMs, 0.5))} / ${ms(percentile(answerMs, 0.99))}`],
    ['ingest → delivered', `${perSecond(delivered)} (${((100 * delivered) / ceiling).toFixed(0)} % of the ceiling)`],
    ['refused / lost / duplicated', `${refused} / ${lost} / ${duplicated}`],
  ]);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
