// How fast events go from ingest to their receiver through one route:
//   node hack/bench/throughput.ts [events] [senders] [rounds]
// Payload 400 bytes, signed, attempts recorded; sender and receiver are this process, on the same cores. Each round measures the ceilings
// before it: the machine's own speed changes within a run. Medians of the rounds.
import { type Ceilings, ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { type Exactness, exactDelivery, exactnessRow, settled, sumOf } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { payloadBytes, Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [events = 20_000, senders = 64, rounds = 5] = process.argv.slice(2).map(Number);

const sink = await startSink();
const world = await startWorld({ lanes: [{ slug: 'orders', urls: [sink.origin] }] });
const sender = new Sender(world.ingest, senders);
const path = world.path('orders');
try {
  const warmUp = await sender.closedLoop(path, 2000, senders);
  const exact: Exactness[] = [await exactDelivery([{ sink, sent: [warmUp] }])];
  const ceilings: Ceilings[] = [];
  const of = { ingest: [] as number[], delivered: [] as number[], share: [] as number[], processor: [] as number[] };
  const allAnswerMs: number[] = [];
  let allRefused = 0;
  for (let round = 0; round < rounds; round++) {
    const ceiling = await measureCeilings(sink.origin, events, senders);
    sink.reset();
    const meter = world.meterProcessor();
    const begin = performance.now();
    const sent = await sender.closedLoop(path, events, senders);
    const { seconds, refused, accepted, answerMs } = sent;
    await settled(120_000, () => sink.arrivals.size >= accepted.length);
    const delivered = accepted.length / ((performance.now() - begin) / 1000);
    of.processor.push(meter(sink.arrivals.size));
    exact.push(await exactDelivery([{ sink, sent: [sent] }]));
    ceilings.push(ceiling);
    of.ingest.push(events / seconds);
    of.delivered.push(delivered);
    of.share.push((100 * delivered) / ceiling.undici);
    allAnswerMs.push(...answerMs);
    allRefused += refused;
  }
  const median = (values: readonly number[]): number => percentile(values, 0.5);
  const shares = of.share.map((share) => share.toFixed(0)).join(', ');
  report('throughput', `${rounds} × ${events} events, ${senders} senders, ${payloadBytes} bytes`, [
    ...ceilingRows({ undici: median(ceilings.map(({ undici }) => undici)), redis: median(ceilings.map(({ redis }) => redis)) }),
    ['ingest while delivering', perSecond(median(of.ingest))],
    ['answer of ingest p50 / p99', `${ms(percentile(allAnswerMs, 0.5))} / ${ms(percentile(allAnswerMs, 0.99))}`],
    ['ingest → delivered', `${perSecond(median(of.delivered))} (${median(of.share).toFixed(0)} % of the ceiling; rounds: ${shares})`],
    processorRow(median(of.processor)),
    ['refused', String(allRefused)],
    exactnessRow(sumOf(exact)),
  ]);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
