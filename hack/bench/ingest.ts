// What a source's settings cost ingest: events a second, and processor time of the api process, which is the steadier figure:
//   node hack/bench/ingest.ts [events] [senders]
// Payload 400 bytes, one route whose deliveries wait (no worker runs); senders and api share the cores.
import type { SourceRecord } from '../../src/core/records.ts';
import { processorSeconds } from './lib/processes.ts';
import { perSecond, report } from './lib/report.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [events = 10_000, senders = 64] = process.argv.slice(2).map(Number);

const settings: Record<string, Partial<SourceRecord>> = {
  plain: {},
  'with-a-rate': { rateLimitPerMinute: 1_000_000 },
  'with-a-quota': { monthlyMessages: 1_000_000_000 },
  'by-body': { dedup: { strategy: 'payload_hash', header: null, windowHours: 24 } },
};
const lanes = Object.entries(settings).map(([slug, source]) => ({ slug, source, urls: ['http://127.0.0.1:9/'] }));
const world = await startWorld({ lanes, workers: 0 });
const sender = new Sender(world.api, senders);

try {
  for (const { slug } of lanes) await sender.closedLoop(world.path(slug), 2000, senders);
  const rows: [string, string][] = [];
  for (const { slug } of lanes) {
    const before = processorSeconds(world.programs.api.pid);
    const { seconds, refused } = await sender.closedLoop(world.path(slug), events, senders);
    const microseconds = ((processorSeconds(world.programs.api.pid) - before) * 1e6) / events;
    rows.push([slug, `${perSecond(events / seconds)}, ${microseconds.toFixed(0)} µs of processor each, ${refused} refused`]);
  }
  report('ingest', `${events} events, ${senders} senders`, rows);
} finally {
  await sender.close();
  await world.stop();
}
