import type { ServerResponse } from 'node:http';
import { expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { newTimedId } from '../../core/ids.ts';
import type { TurnOrder } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';

const suite = deliverySuite();

/** Notes in which order each dequeue gives turns. */
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

const sent = { a: 0, b: 0 };
async function send(letter: 'a' | 'b'): Promise<void> {
  sent[letter]++;
  const messageId = newTimedId('msg_', 0, Date.now());
  const targets = [{ messageId, routeId: `rte_${letter}`, destinationId: `dst_${letter}`, shard: 0, maxAttempts: 3 }];
  await suite.acceptor.accept(newEvent({ org: `org_${letter}`, targets }));
}

test('while most attempts are of one organization all others go before it, and it has nothing of what is taken out of turn', async () => {
  const pending: ServerResponse[] = [];
  let isHolding = false;
  const of = {
    a: await suite.receiver((response) => void (isHolding ? pending.push(response) : response.end())),
    b: await suite.receiver(),
  };
  for (const letter of ['a', 'b'] as const) {
    const org = `org_${letter}`;
    suite.registry.put('organization', { ...organizationRecord(), id: org });
    suite.registry.put('destination', destinationRecord({ url: of[letter].url }, { id: `dst_${letter}`, org }));
    suite.registry.put('route', routeRecord({ id: `rte_${letter}`, org, destinations: [{ id: `dst_${letter}`, shard: 0 }] }));
  }
  const orders: (TurnOrder | undefined)[] = [];
  suite.worker({ wrapQueue: (queue) => noting(queue, orders) });
  // Attempts at targets that nothing was delivered to before count as slow.
  for (const letter of ['a', 'b'] as const) {
    await send(letter);
    await of[letter].arrived(1);
  }
  isHolding = true;
  for (let i = 0; i < 4; i++) await send('a');
  await of.a.arrived(5);
  await eventually(async () => {
    await send('a');
    await send('b');
    expect(orders).toContainEqual({ dominant: 'org_a', without: [] });
    expect(orders).toContainEqual({ dominant: 'org_a', without: ['org_a'] });
  });
  isHolding = false;
  for (const response of pending) response.end();
  for (const org of ['org_a', 'org_b'])
    await eventually(async () => expect((await suite.reader.deliveries(org, { statuses: ['pending'] }, { limit: 1 })).items).toEqual([]));
  orders.length = 0;
  await send('b');
  await eventually(() => expect(of.b.requests).toHaveLength(sent.b));
  expect(orders).toContainEqual({ dominant: null, without: [] });
});
