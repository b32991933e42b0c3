import { afterEach, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { destinationPerShard } from '../../../test/support/destination-per-shard.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { checkShards } from '../../data/check/shard-check.ts';
import { workerKeys } from '../../data/membership/worker-directory.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { NewEvent } from '../../data/shard/messages.ts';

const shards = 4;
const suite = deliverySuite({ shards });
const { prefix, receiver, worker } = suite;

afterEach(async () => {
  expect((await checkShards({ redis: suite.redis.client, prefix, shards })).findings).toEqual([]);
});

/** A destination in each shard, and an event for all of them. */
const destinations = (url: string): NewEvent => destinationPerShard(suite.registry, shards, (shard) => `${url}/${shard}`)();

const isDelivered = (id: string) =>
  eventually(async () => expect(await suite.reader.event('org_a', id)).toMatchObject({ status: 'delivered' }));

test('a worker delivers from every shard', async () => {
  const to = await receiver();
  const event = destinations(to.url);
  worker();
  await new RedisMessageAcceptor({ redis: suite.redis.client, prefix, clock: lenientClock }).accept(event);
  await isDelivered(event.id);
  expect(to.requests.map(({ path }) => path).sort()).toEqual(['/0', '/1', '/2', '/3']);
});

test('a worker carries on what an accepting process left in the outbox when it died', async () => {
  const to = await receiver();
  const event = destinations(to.url);
  worker();
  await acceptOnly(suite.redis.client, prefix, event);
  await isDelivered(event.id);
  expect(to.requests).toHaveLength(shards);
});

test('a message fails over to a destination of another shard', async () => {
  const broken = await receiver((response) => response.writeHead(500).end());
  const spare = await receiver();
  suite.registry.put(
    'destination',
    destinationRecord(
      { url: broken.url },
      { id: 'dst_a', retryPolicy: { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 } },
    ),
  );
  suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_spare', shard: 3 }));
  suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_spare', shard: 3 }], afterAttempts: 10 } }));
  worker();
  const event = newEvent();
  await new RedisMessageAcceptor({ redis: suite.redis.client, prefix, clock: lenientClock }).accept(event);
  const [request] = await spare.arrived(1);
  expect(request?.headers).toMatchObject({
    'webhook-id': event.targets[0]?.messageId,
    'x-posthorn-failover': 'true',
    'x-posthorn-original-destination': 'dst_a',
    'x-posthorn-failure-reason': 'max_retries_exceeded',
    'x-posthorn-attempt': '2',
  });
  await isDelivered(event.id);
});

test('what a dead worker held in any shard is put back', async () => {
  const to = await receiver();
  const event = destinations(to.url);
  await new RedisMessageAcceptor({ redis: suite.redis.client, prefix, clock: lenientClock }).accept(event);
  const queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis: suite.redis.client, prefix, shard }));
  await eventually(async () =>
    expect((await Promise.all(queues.map((queue) => queue.figures()))).map(({ unfinished }) => unfinished)).toEqual([1, 1, 1, 1]),
  );
  for (const queue of queues) {
    for (const target of (await queue.dequeue('dead', 1)).unconfigured) await queue.configure(target, targetSetting());
    expect((await queue.dequeue('dead', 1)).jobs).toHaveLength(1);
  }
  await suite.redis.client.zadd(workerKeys(prefix).alive, 1, 'dead');
  worker();
  await isDelivered(event.id);
});

test('a full worker passes the doorbell on to one that is free', async () => {
  const hanging = await receiver(() => {});
  const to = await receiver();
  suite.registry.put('destination', destinationRecord({ url: hanging.url }, { id: 'dst_hanging' }));
  suite.registry.put('destination', destinationRecord({ url: to.url }, { id: 'dst_a' }));
  suite.registry.put('route', routeRecord({ destinations: ['dst_hanging', 'dst_a'].map((id) => ({ id, shard: 0 })) }));
  worker({ concurrency: 1 });
  await suite.acceptor.accept(newEvent({ destinations: ['dst_hanging'] }));
  await hanging.arrived(1);
  worker({ concurrency: 10 });
  await eventually(async () => expect(await suite.redis.client.zcard(workerKeys(prefix).alive)).toBe(2));
  const begin = performance.now();
  for (let i = 1; i <= 10; i++) {
    await suite.acceptor.accept(newEvent());
    await to.arrived(i);
  }
  // Without the doorbell it would be half a minute: a worker polls an idle shard every 30 s, and a busy one every 3 s.
  expect(performance.now() - begin).toBeLessThan(20_000);
});
