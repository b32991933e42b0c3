// What alerts cost: deliveries through a route without them, with alerts about failures, and with alerts about every success:
//   node hack/bench/alerts.ts [events] [senders]
// Sender and receiver are this process, on the same cores. The channel is the receiver, too.
import type { NotificationsRecord } from '../../src/core/records.ts';
import { RedisRegistryPublisher } from '../../src/data/registry-publisher.ts';
import { routeRecord } from '../../test/support/record-registry.ts';
import { waitUntil } from '../../test/support/wait-until.ts';
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
const sender = new Sender(world.api, senders);
try {
  const publisher = new RedisRegistryPublisher(world.redis.client, world.prefix);
  const epoch = await publisher.mintEpoch();
  for (const [slug, flags] of Object.entries(asked)) {
    if (flags === null) continue;
    const route = routeRecord({ id: `rte_${slug}`, slug, sourceId: `src_${slug}`, destinations: [{ id: `dst_${slug}0`, shard: 0 }] });
    const none = { onFailure: false, onSuccess: false, onRecovery: false, failureThreshold: 3, channelIds: [], emails: [] };
    await publisher.publish(epoch, 'route', { ...route, generation: 2, notifications: { ...none, ...flags } });
  }
  const rows: [string, string][] = [];
  for (const slug of Object.keys(asked)) {
    await sender.closedLoop(world.path(slug), 2000, senders);
    await waitUntil('the warm-up', 30_000, () => (sink.arrivals.size >= 2000 ? true : undefined));
    sink.reset();
    const begin = performance.now();
    const { refused } = await sender.closedLoop(world.path(slug), events, senders);
    await waitUntil('all deliveries', 120_000, () => (sink.arrivals.size >= events - refused ? true : undefined));
    rows.push([`alerts: ${slug}`, perSecond(events / ((performance.now() - begin) / 1000))]);
    sink.reset();
  }
  report('alerts', `${events} events, ${senders} senders`, rows);
} finally {
  await sender.close();
  await world.stop();
  sink.close();
}
