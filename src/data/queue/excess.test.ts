import { expect, test } from '@jest/globals';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { delivered, settleAll } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { hashFields } from '../shard/hash-fields.ts';

const suite = failoverSuite({ shards: 2 });

const settingWith = (shard: number) =>
  targetSetting({
    failover: { destinations: [{ id: 'dst_b', shard }], afterAttempts: null },
    throttle: { ...targetSetting().throttle, mode: 'concurrency', maxConcurrency: 5, queueLimit: 1 },
  });
const placeOf = async (id: string) => (await suite.reader.delivery('org_a', id))?.destinationId;

test('messages that a worker holds do not move when their target gets a smaller queue limit after its deletion', async () => {
  const queue = suite.queues.of(0);
  const held = [await suite.queues.send('dst_a', 0), await suite.queues.send('dst_a', 0), await suite.queues.send('dst_a', 0)];
  const jobs = await suite.queues.take(0);
  const [target] = jobs.map((job) => job.target);
  if (target === undefined) throw new Error('the worker has no job');
  await queue.drop({ target, reason: 'destination_not_found', failover: null });
  const waiting = [await suite.queues.send('dst_a', 0), await suite.queues.send('dst_a', 0)];
  await queue.configure(target, settingWith(0));
  expect(await Promise.all(held.map(placeOf))).toEqual(['dst_a', 'dst_a', 'dst_a']);
  expect(await Promise.all(waiting.map(placeOf))).toEqual(['dst_b', 'dst_b']);
  expect(await settleAll(queue, 'w1', jobs, delivered)).toEqual([true, true, true]);
});

test('messages that move to another shard when their target is configured are reported as work of the outbox', async () => {
  await suite.queues.send('dst_a', 0);
  await suite.queues.send('dst_a', 0);
  const { targets } = await suite.queues.of(0).targets(1);
  const [target] = targets;
  if (target === undefined) throw new Error('there is no target');
  expect(await suite.queues.of(0).configure(target, settingWith(1))).toMatchObject({ hasOutbox: true, hasRetries: false });
});

test('a message whose move an error cuts short is in one place', async () => {
  const ids = [await suite.queues.send('dst_a', 0), await suite.queues.send('dst_a', 0)];
  const { client } = suite.redis;
  const base = suite.queues.base(0);
  const { targets } = await suite.queues.of(0).targets(1);
  const [target] = targets;
  if (target === undefined) throw new Error('there is no target');
  await client.rename(`${base}ready:org_a`, `${base}whole`);
  await client.set(`${base}ready:org_a`, 'broken');
  await expect(suite.queues.of(0).configure(target, settingWith(0))).rejects.toThrow();
  await client.rename(`${base}whole`, `${base}ready:org_a`);
  await client.hdel(`${base}t:${target.number}`, hashFields.target.revision);
  // Wakes its new target.
  const sibling = await suite.queues.send('dst_b', 0);
  const jobs = await suite.queues.looks();
  expect(jobs.map(({ messageId }) => messageId).sort()).toEqual([...ids, sibling].sort());
});
