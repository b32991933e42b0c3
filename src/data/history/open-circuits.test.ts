import { expect, test } from '@jest/globals';
import { allPages } from '../../../test/support/all-pages.ts';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { delivered, settleAll } from '../../../test/support/queue-worker.ts';
import { Circuits } from '../queue/circuits.ts';

const suite = failoverSuite();

const waiting = (limit: number, cursor?: string) =>
  suite.reader.deliveries('org_a', { statuses: ['circuit_open'] }, { limit, ...(cursor === undefined ? {} : { cursor }) });

/** Messages that wait for the circuits of these destinations, each with one. */
async function cutOff(shard: number, ...destinationIds: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const destinationId of destinationIds) {
    ids.push(await suite.queues.send(destinationId, shard));
    await settleAll(suite.queues.of(shard), 'w1', await suite.queues.take(shard), { type: 'back' });
    await suite.queues.setCircuit(shard, destinationId, 'open');
  }
  return ids;
}

test('Deliveries that wait for an open circuit are listed from the indexes of their destinations alone.', async () => {
  const ids = [...(await cutOff(0, 'dst_a')), ...(await cutOff(1, 'dst_b', 'dst_c'))];
  for (let i = 0; i < 40; i++) await suite.queues.send('dst_d', i % 2);
  for (const shard of [0, 1]) await settleAll(suite.queues.of(shard), 'w1', await suite.queues.take(shard), delivered);
  const { items, scanned, nextCursor } = await waiting(10);
  expect([items.map(({ id }) => id).toSorted(), scanned, nextCursor]).toEqual([ids.toSorted(), 3, null]);
});

test('Deliveries that wait for the circuit of a failover destination are listed once, also while that of the first one is open.', async () => {
  const failover = { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: 1 };
  const id = await suite.queues.send('dst_a', 0);
  await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, { failover }), { type: 'back' });
  await suite.queues.setCircuit(0, 'dst_a', 'open');
  await suite.queues.take(0);
  await suite.queues.carry(0);
  await settleAll(suite.queues.of(1), 'w1', await suite.queues.take(1), { type: 'back' });
  await suite.queues.setCircuit(1, 'dst_b', 'open');
  const { items } = await waiting(10);
  expect(items.map((each) => [each.id, each.destinationId])).toEqual([[id, 'dst_b']]);
});

test('A list of deliveries that wait for open circuits continues at its cursor when some close, and when very many open.', async () => {
  const destinations = Array.from({ length: 70 }, (_, i) => `dst_${i}`);
  const few = await cutOff(0, ...destinations.slice(0, 6));
  const newest = await waiting(2);
  expect(newest.items.map(({ id }) => id)).toEqual(few.slice(4).toReversed());
  await new Circuits({ redis: suite.redis.client, prefix: suite.prefix, shards: () => 2 }).reset('org_a', 'rte_a', ['dst_3']);
  const second = await waiting(2, newest.nextCursor ?? '');
  expect(second.items.map(({ id }) => id)).toEqual([few[2], few[1]]);
  const all = [...few, ...(await cutOff(0, ...destinations.slice(6)))];
  expect((await waiting(2, second.nextCursor ?? '')).items.map(({ id }) => id)).toEqual([few[0]]);
  const listed = await allPages((page) => waiting(page.limit, page.cursor), 20);
  expect(listed.map(({ id }) => id)).toEqual(all.filter((id) => id !== few[3]).toReversed());
});
