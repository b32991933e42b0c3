import { expect, test } from '@jest/globals';
import { clusterSuite } from '../../../test/support/cluster-suite.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { eventForShards } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { OutboxCarrier } from '../queue/outbox-carrier.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { RedisMessageCanceller } from './message-canceller.ts';
import { RedisMessageReader } from './message-reader.ts';

const prefix = 'test:';
const shards = 6;
const suite = clusterSuite();

test('messages of an event are cancelled in a Cluster, whichever shards they are in; those that are not made yet have no id', async () => {
  const { redis } = suite;
  const queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis, prefix, shard }));
  for (const queue of queues) await queue.refreshShard('w1', 1000);
  const canceller = new RedisMessageCanceller({ redis, prefix, shards: () => shards });
  const reader = new RedisMessageReader({ redis, prefix, shards: () => shards });
  const event = eventForShards(Array.from({ length: shards }, (_, shard) => shard));
  const ids = event.targets.map(({ messageId }) => messageId);
  await new RedisMessageAcceptor({ redis, prefix, clock: lenientClock, shards: () => shards }).accept(event);
  for (let shard = 0; shard < shards; shard++) await new OutboxCarrier({ redis, prefix }).carry(shard);
  const first = await takeFrom(queues[0] ?? missing(), 'w1', 1);
  const second = await takeFrom(queues[1] ?? missing(), 'w1', 1);
  await settleAll(queues[1] ?? missing(), 'w1', second, { type: 'retry', attempt: failure, delayMs: 3_600_000 });
  const results = await canceller.cancel('org_a', [...ids, eventForShards([3]).targets[0]?.messageId ?? ''], 'ann');
  expect([...results.values()]).toEqual(['cancelling', ...Array.from({ length: shards - 1 }, () => 'cancelled'), 'not_found']);
  await settleAll(queues[0] ?? missing(), 'w1', first, delivered);
  const views = await Promise.all(ids.map((id) => reader.delivery('org_a', id)));
  expect(views.map((view) => view?.deadLetterReason)).toEqual([null, ...Array.from({ length: shards - 1 }, () => 'cancelled')]);
  expect(await checkShards({ redis, prefix, shards })).toMatchObject({ findings: [], unfinished: 0 });
  expect(Math.abs((await canceller.now()) - Date.now())).toBeLessThan(60_000);
});

function missing(): never {
  throw new Error('there is no such shard');
}
