// What alerts cost: deliveries through a route without them, with alerts about failures, and with alerts about every success:
//   node hack/bench/alerts.ts [events] [senders]
// Sender and receiver are this process, on the same cores. There is no channel that an alert would go to.
import type { NotificationsRecord } from '../../src/core/records.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { routeRecord } from '../../test/support/records.ts';
import { ceilingRows, measureCeilings } from './lib/ceilings.ts';
import { exactDelivery, exactnessRow, settled } from './lib/exact-delivery.ts';
import { processorRow } from './lib/processes.ts';
import { perSecond, report } from './lib/report.ts';
import { startSink } from './lib/sink.ts';
import { Sender } from './lib/traffic.ts';
import { startWorld } from './lib/world.ts';

const [events = 20_000, senders = 64] = process.argv.slice(2).map(Number);
const asked: Record<string, Partial<NotificationsRecord> | null> = {
  none: null,
  failures: { onFailure: true, onRecovery: true },
  successes: { onFailure: true, onRecovery: true, onSuccess: true },
};

const sink = await startSink();
const world = await startWorld({ lanes: Object.keys(asked).map((slug) => ({ slug, urls: [sink.origin] })) });
const sender = new Sender(world.ingest, senders);
try {
  const publisher = new RedisRegistryPublisher(world.redis.client, world.prefix);
  const epoch = await publisher.mintEpoch();
  for (const [slug, flags] of Object.entries(asked)) {
    if (flags === null) continue;
    const route = routeRecord({ id: `rte_${slug}`, slug, sourceId: `src_${slug}`, destinations: [{ id: `dst_${slug}0`, shard: 0 }] });
    const none = { onFailure: false, onSuccess: false, onRecovery: false, failureThreshold: 3, channelIds: [], emails: [] };
    await publisher.publish(epoch, 'route', { ...route, generation: 2, notifications: { ...none, ...flags } });
  }
  const rows = ceilingRows(await measureCeilings(sink.origin, 20_000, senders));
  sink.reset();
  for (const slug of Object.keys(asked)) {
    const warmUp = await sender.closedLoop(world.path(slug), 2000, senders);
    await settled(30_000, () => sink.arrivals.size >= warmUp.accepted.length);
    const [meter, before, begin] = [world.meterProcessor(), sink.arrivals.size, performance.now()];
    const sent = await sender.closedLoop(world.path(slug), events, senders);
    await settled(120_000, () => sink.arrivals.size >= warmUp.accepted.length + sent.accepted.length);
    rows.push([`alerts: ${slug}`, perSecond(sent.accepted.length / ((performance.now() - begin) / 1000))]);
    rows.push(processorRow(meter(sink.arrivals.size - before), slug));
    rows.push(exactnessRow(await exactDelivery([{ sink, sent: [warmUp, sent] }]), slug));
    sink.reset();
  }
  report('alerts', `${events} events, ${senders} senders`, rows);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
