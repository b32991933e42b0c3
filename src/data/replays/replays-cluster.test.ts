import { expect, test } from '@jest/globals';
import { allPages } from '../../../test/support/all-pages.ts';
import { clusterSuite } from '../../../test/support/cluster-suite.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { dead, settleEverything } from '../../../test/support/queue-worker.ts';
import { carryOn, replayParts, replayRecord } from '../../../test/support/replays.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { newTimedId } from '../../core/ids.ts';
import { shardOf } from '../../core/shard-of.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { FeedReader } from '../feed/feed-reader.ts';
import { parseFeedRow } from '../feed/feed-row.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { OutboxCarrier } from '../queue/outbox-carrier.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';

const prefix = 'test:';
const shards = 6;
const suite = clusterSuite();

test('messages to the endpoints of one application are replayed in a Cluster, whichever shards they are in', async () => {
  const { redis } = suite;
  const org = webhookOrganization('org_a');
  const queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis, prefix, shard }));
  for (const queue of queues) await queue.refreshShard('w1', 1000);
  const acceptor = new RedisMessageAcceptor({ redis, prefix, clock: lenientClock, shards: () => shards });
  for (const application of ['app_a', 'app_b']) {
    const event = newWebhookEvent('org_a', []);
    event.targets = Array.from({ length: shards }, (_, shard) => ({
      messageId: newTimedId('msg_', shard, event.receivedAtMs),
      routeId: application,
      destinationId: `ep_${application}_${shard}`,
      shard,
      maxAttempts: 8,
      subscription: { id: `sub_${shard}`, transformId: null },
    }));
    await acceptor.accept(event);
  }
  for (let shard = 0; shard < shards; shard++) await new OutboxCarrier({ redis, prefix }).carry(shard);
  for (const queue of queues) await settleEverything(queue, 'w1', dead);
  const record = replayRecord({ what: 'messages', filter: { statuses: ['dlq'], applicationId: 'app_a' } });
  const { steps, runs } = replayParts(redis, { prefix, shards });
  const feed = new FeedReader({ redis, blocking: redis, prefix, shards: () => shards, clock: systemClock });
  const { rows: from } = await feed.watch();
  while ((await carryOn(steps, record)) !== 'ended') for (const queue of queues) await settleEverything(queue, 'w1');
  expect(await runs.find('org_a', record.identity)).toMatchObject({ phase: 'Succeeded', queued: shards, delivered: shards, skipped: {} });
  const reader = new RedisMessageReader({ redis, prefix, shards: () => shards });
  const replays = (await allPages((page) => reader.deliveries(org, {}, page), 100)).filter(({ replayedFrom }) => replayedFrom !== null);
  expect(replays.map(({ routeId, status }) => `${routeId} ${status}`)).toEqual(Array.from({ length: shards }, () => 'app_a delivered'));
  expect(new Set(replays.map(({ replayedFrom }) => replayedFrom)).size).toBe(shards);
  const home = shardOf(record.id, shards);
  const rows = ((await feed.between(home, from[home] ?? '', '+', 'org_a')) ?? []).map(({ shard, id, text }) =>
    parseFeedRow(shard, id, text),
  );
  const last = rows.findLast((row) => row?.kind === 'replay');
  expect(last).toMatchObject({ org: 'org_a', replayId: record.id, status: 'Succeeded', queued: shards, delivered: shards });
});
