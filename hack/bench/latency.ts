// How long an event takes from its sender to its receiver at fixed rates, open loop (from the intended time):
//   node hack/bench/latency.ts [seconds]
import { eventually } from '../../test/support/eventually.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { exactDelivery, exactnessRow, settled } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { ms, percentile, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [seconds = 30] = process.argv.slice(2).map(Number);

const sink = await startSink();
const world = await startWorld({ lanes: [{ slug: 'orders', urls: [sink.origin] }] });
const sender = new Sender(world.ingest, 64);
try {
  const rows = ceilingRows(await measureCeilings(sink.origin, 20_000, 64));
  await sender.closedLoop(world.path('orders'), 2000, 16);
  for (const rate of [200, 1000]) {
    await eventually('quiet', 10_000, () => performance.now() - (sink.times.at(-1) ?? 0) > 1000);
    sink.reset();
    const meter = world.meterProcessor();
    const sent = await sender.openLoop(world.path('orders'), rate, seconds);
    await settled(30_000, () => sink.arrivals.size >= sent.accepted.length);
    const processor = meter(sink.arrivals.size);
    const exact = await exactDelivery([{ sink, sent: [sent] }]);
    const { latenciesMs } = sink;
    rows.push([`ingest → receiver at ${rate}/s: p50 / p99`, `${ms(percentile(latenciesMs, 0.5))} / ${ms(percentile(latenciesMs, 0.99))}`]);
    rows.push(processorRow(processor, `at ${rate}/s`));
    rows.push([`refused at ${rate}/s`, String(sent.refused)], exactnessRow(exact, `at ${rate}/s`));
  }
  report('latency', `${seconds} s each`, rows);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
