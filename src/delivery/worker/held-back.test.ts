import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { patientClock } from '../../../test/support/patient-clock.ts';
import { startReceiver } from '../../../test/support/receiver.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { startTestDelivery } from '../../../test/support/test-delivery.ts';
import { newTimedId } from '../../core/ids.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import type { TurnOrder } from '../../data/queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';

const prefix = 'test:';
let redis: RedisServer;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Records the order of each dequeue. */
function noting(queue: RedisDeliveryQueue, orders: (TurnOrder | undefined)[]): RedisDeliveryQueue {
  return new Proxy(queue, {
    get(target, name) {
      const original: unknown = Reflect.get(target, name);
      if (typeof original !== 'function') return original;
      return (...args: unknown[]) => {
        if (name === 'dequeue') orders.push(args[3] as TurnOrder | undefined);
        return original.apply(target, args);
      };
    },
  });
}

test('beside others the busiest organization has nothing of what is taken out of turn, and has all in the end', async () => {
  const to = await startReceiver();
  ends.push(() => to.close());
  const registry = new RecordRegistry();
  for (const letter of ['a', 'b']) {
    const org = `org_${letter}`;
    registry.put('organization', { ...organizationRecord(), id: org });
    registry.put('destination', destinationRecord({ url: to.url }, { id: `dst_${letter}`, org }));
    registry.put('route', routeRecord({ id: `rte_${letter}`, org, destinations: [{ id: `dst_${letter}`, shard: 0 }] }));
  }
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock });
  const sent = { a: 0, b: 0 };
  const send = async (letter: 'a' | 'b', count: number): Promise<void> => {
    sent[letter] += count;
    const target = { routeId: `rte_${letter}`, destinationId: `dst_${letter}`, shard: 0, maxAttempts: 3 };
    for (let i = 0; i < count; i++)
      await acceptor.accept(newEvent({ org: `org_${letter}`, targets: [{ messageId: newTimedId('msg_', 0, Date.now()), ...target }] }));
  };
  const orders: (TurnOrder | undefined)[] = [];
  const delivery = startTestDelivery(redis, { prefix, registry, wrapQueue: (queue) => noting(queue, orders) });
  ends.push(() => delivery.stop(1000));
  await send('a', 200);
  expect(orders.some((order) => order?.without?.includes('org_a'))).toBe(false);
  await eventually(async () => {
    await send('a', 8);
    await send('b', 1);
    expect(orders).toContainEqual({ busiest: 'org_a', without: ['org_a'] });
  });
  const reader = new RedisMessageReader({ redis: redis.client, prefix });
  const unfinished = async (letter: string): Promise<number> =>
    (await reader.deliveries(`org_${letter}`, { statuses: ['pending'] }, { limit: 100 })).items.length;
  await eventually(async () => {
    expect(to.requests).toHaveLength(sent.a + sent.b);
    expect([await unfinished('a'), await unfinished('b')]).toEqual([0, 0]);
  });
});
