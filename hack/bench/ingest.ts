// Ingest alone, and what a source's settings cost it: events a second, and processor time of its process, which is the steadier figure:
//   node hack/bench/ingest.ts [events] [senders]
// Payload 400 bytes, one route whose deliveries wait; senders and ingest share the cores. Then a worker delivers everything.
import type { SourceRecord } from '../../src/core/records.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { exactDelivery, exactnessRow, settled } from './lib/exact-delivery.ts';
import { processorRow, processorSeconds } from './lib/processes.ts';
import { ms, percentile, perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { joined, Sender, type Sent } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [events = 10_000, senders = 64] = process.argv.slice(2).map(Number);

const settings: Record<string, Partial<SourceRecord>> = {
  plain: {},
  'with-a-rate': { rateLimitPerMinute: 1_000_000 },
  'with-a-quota': { monthlyMessages: 1_000_000_000 },
  'by-body': { dedup: { strategy: 'payload_hash', header: null, windowHours: 24 } },
};
const sink = await startSink();
const lanes = Object.entries(settings).map(([slug, source]) => ({ slug, source, urls: [sink.origin] }));
const world = await startWorld({ lanes, workers: 0 });
const sender = new Sender(world.ingest, senders);

try {
  const rows = ceilingRows(await measureCeilings(sink.origin, 20_000, senders));
  sink.reset();
  const sent: Sent[] = [];
  for (const { slug } of lanes) sent.push(await sender.closedLoop(world.path(slug), 2000, senders));
  for (const { slug } of lanes) {
    const before = processorSeconds(world.programs.ingest.pid);
    const ofLane = await sender.closedLoop(world.path(slug), events, senders);
    const { seconds, refused, answerMs } = ofLane;
    sent.push(ofLane);
    const microseconds = ((processorSeconds(world.programs.ingest.pid) - before) * 1e6) / events;
    rows.push([slug, `${perSecond(events / seconds)}, ${microseconds.toFixed(0)} µs of processor each, ${refused} refused`]);
    rows.push([`${slug}: answer p50 / p99`, `${ms(percentile(answerMs, 0.5))} / ${ms(percentile(answerMs, 0.99))}`]);
  }
  const meter = world.meterProcessor();
  await world.startDelivery();
  const accepted = joined(sent).accepted.length;
  await settled(300_000, () => sink.arrivals.size >= accepted);
  rows.push(processorRow(meter(sink.arrivals.size), 'delivery alone, with the start of the worker'));
  rows.push(exactnessRow(await exactDelivery([{ sink, sent }])));
  report('ingest', `${events} events, ${senders} senders`, rows);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
