// How fast events go from ingest to their receiver through one route:
//   node hack/bench/throughput.ts [events] [senders] [rounds]
// Payload 400 bytes, signed, attempts recorded; sender and receiver are this process, on the same cores. Each round measures the ceiling
// before it: the machine's own speed changes within a run. Medians of the rounds.
import { waitUntil } from '../../test/support/wait-until.ts';
import { exactDelivery, ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { bareCeiling, payloadBytes, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [events = 20_000, senders = 64, rounds = 5] = process.argv.slice(2).map(Number);

const sink = await startSink();
const world = await startWorld({ lanes: [{ slug: 'orders', urls: [sink.origin] }] });
const sender = new Sender(world.api, senders);
const path = world.path('orders');
try {
  await sender.closedLoop(path, 2000, senders);
  await waitUntil('the warm-up', 30_000, () => (sink.arrivals.size >= 2000 ? true : undefined));
  const of = { ceiling: [] as number[], ingest: [] as number[], delivered: [] as number[], share: [] as number[] };
  const allAnswerMs: number[] = [];
  const sum = { refused: 0, lost: 0, duplicated: 0 };
  for (let round = 0; round < rounds; round++) {
    const ceiling = await bareCeiling(sink.origin, events, senders);
    sink.reset();
    const begin = performance.now();
    const { seconds, refused, answerMs } = await sender.closedLoop(path, events, senders);
    await waitUntil('all deliveries', 120_000, () => (sink.arrivals.size >= events - refused ? true : undefined));
    const delivered = (events - refused) / ((performance.now() - begin) / 1000);
    const { lost, duplicated } = exactDelivery([sink], events - refused);
    of.ceiling.push(ceiling);
    of.ingest.push(events / seconds);
    of.delivered.push(delivered);
    of.share.push((100 * delivered) / ceiling);
    allAnswerMs.push(...answerMs);
    sum.refused += refused;
    sum.lost += lost;
    sum.duplicated += duplicated;
  }
  const median = (values: readonly number[]): number => percentile(values, 0.5);
  const shares = of.share.map((share) => share.toFixed(0)).join(', ');
  report('throughput', `${rounds} × ${events} events, ${senders} senders, ${payloadBytes} bytes`, [
    ['bare undici loop', perSecond(median(of.ceiling))],
    ['ingest while delivering', perSecond(median(of.ingest))],
    ['answer of ingest p50 / p99', `${ms(percentile(allAnswerMs, 0.5))} / ${ms(percentile(allAnswerMs, 0.99))}`],
    ['ingest → delivered', `${perSecond(median(of.delivered))} (${median(of.share).toFixed(0)} % of the ceiling; rounds: ${shares})`],
    ['refused / lost / duplicated', `${sum.refused} / ${sum.lost} / ${sum.duplicated}`],
  ]);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
