import { describe, expect, test } from '@jest/globals';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { failure, settleAll } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Job, Target } from './delivery-queue.ts';

/** Losses of scripts that move messages when an error ends them in the middle: none. After each test the check of the shards has no findings. */
const suite = failoverSuite({ shards: 2 });
const spare = { id: 'dst_b', shard: 0 };
const failover = { destinations: [spare], afterAttempts: null };
const hourMs = 3_600_000;

/** Puts a text where a script expects something else, so that it fails there. Returns what restores it. */
async function breakKey(name: string): Promise<() => Promise<void>> {
  const { client } = suite.redis;
  const key = `${suite.queues.base(0)}${name}`;
  const isThere = (await client.exists(key)) === 1;
  if (isThere) await client.rename(key, `${key}:whole`);
  await client.set(key, 'broken');
  return async () => void (isThere ? await client.rename(`${key}:whole`, key) : await client.del(key));
}

async function targetOf(destinationId: string): Promise<Target> {
  const { targets } = await suite.queues.of(0).targets(1);
  const target = targets.find((each) => each.destinationId === destinationId);
  if (target === undefined) throw new Error(`there is no target of ${destinationId}`);
  return target;
}

const idsOf = (jobs: readonly Job[]): string[] => jobs.map(({ messageId }) => messageId).sort();

async function cancel(ids: string[]): Promise<void> {
  await new RedisMessageCanceller({ redis: suite.redis.client, prefix: suite.prefix, shards: () => 2 }).cancel('org_a', ids, 'ops');
}

/** The failover destination, with a target that has been configured. */
async function withSpare(): Promise<string> {
  const id = await suite.queues.send('dst_b', 0);
  await suite.queues.take(0);
  return id;
}

/** What ends the stay of messages at their target, and what is done first. */
const ways: Record<string, { before: () => Promise<void>; leave: () => Promise<unknown> }> = {
  'of a destination that is gone': {
    before: async () => undefined,
    leave: async () => suite.queues.of(0).drop({ target: await targetOf('dst_a'), reason: 'destination_not_found', failover: [spare] }),
  },
  'of a destination that does not serve': {
    before: () => suite.queues.put(0, 'dst_a', { revision: '2', movesOn: 'all', failover }),
    leave: () => suite.queues.of(0).dequeue('w1', 64),
  },
  'of a destination with an open circuit': {
    before: async () => {
      await suite.queues.put(0, 'dst_a', { failover });
      await suite.queues.setCircuit(0, 'dst_a', 'open');
    },
    leave: () => suite.queues.of(0).dequeue('w1', 64),
  },
};

describe.each(Object.entries(ways))('messages %s', (_, { before, leave }) => {
  test('stay in their lane when an error keeps one of them from moving', async () => {
    const spareId = await withSpare();
    const tried = await suite.queues.send('dst_a', 0);
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), { type: 'retry', attempt: failure, delayMs: 0 });
    await suite.queues.of(0).promote();
    const ids = [tried, await suite.queues.send('dst_a', 0), await suite.queues.send('dst_a', 0)];
    await before();
    // The index of failures, where a message that was tried is noted when it moves.
    const repair = await breakKey('i:bad:org_a');
    await expect(leave()).rejects.toThrow();
    await repair();
    await leave();
    await suite.queues.of(0).reclaim(['w1']);
    const jobs = (await suite.queues.take(0)).filter(({ messageId }) => messageId !== spareId);
    expect(idsOf(jobs)).toEqual([...ids].sort());
    expect(new Set(jobs.map(({ target }) => target.destinationId))).toEqual(new Set(['dst_b']));
  });
});

test('a message does not move to a destination whose lane takes none, and moves once it does', async () => {
  await withSpare();
  const id = await suite.queues.send('dst_a', 0);
  await suite.queues.put(0, 'dst_a', { failover });
  await suite.queues.setCircuit(0, 'dst_a', 'open');
  const repair = await breakKey(`w:${(await targetOf('dst_b')).number}`);
  expect((await suite.queues.of(0).dequeue('w1', 64)).jobs).toEqual([]);
  await repair();
  expect(idsOf(await suite.queues.looks())).toEqual([id]);
});

test('a retry stays due when an error keeps it from leaving a destination that is gone, and others leave', async () => {
  const ids = [await suite.queues.send('dst_a', 0), await suite.queues.send('dst_a', 0)];
  const queue = suite.queues.of(0);
  await settleAll(queue, 'w1', await suite.queues.take(0), { type: 'retry', attempt: failure, delayMs: hourMs });
  const gone = [{ target: await targetOf('dst_a'), reason: 'destination_not_found', failover: null } as const];
  const repair = await breakKey('dead');
  await expect(queue.dropRetries(gone, '0')).rejects.toThrow();
  await repair();
  await queue.dropRetries(gone, '0');
  const reader = (id: string) => suite.reader.delivery('org_a', id);
  expect((await Promise.all(ids.map(reader))).map((each) => each?.status)).toEqual(['dlq', 'dlq']);
  expect(await suite.redis.client.xlen(`${suite.queues.base(0)}dead`)).toBe(2);
});

test('a message that an error keeps from ending counts as unfinished, beside another one of its event', async () => {
  await suite.queues.sendToAll(['dst_a', 'dst_b'], 0);
  const drop = async () => suite.queues.of(0).drop({ target: await targetOf('dst_a'), reason: 'destination_not_found', failover: null });
  const repair = await breakKey('dead');
  await expect(drop()).rejects.toThrow();
  await repair();
  const { findings, unfinished } = await checkShards({ redis: suite.redis.client, prefix: suite.prefix, shards: 2 });
  expect([findings, unfinished]).toEqual([[], 2]);
  await drop();
  const tallies = await suite.redis.client.keys(`${suite.queues.base(0)}st:org_a:t*:0`);
  const counted = await Promise.all(tallies.map((key) => suite.redis.client.hgetall(key)));
  expect(counted).toEqual([{ [`${(await targetOf('dst_a')).number} ${hashFields.tally.failed}`]: '1' }]);
});

test('what a worker was given before an error is requeued when its lease is over', async () => {
  const [first, guest, last] = [
    await suite.queues.send('dst_a', 0),
    await suite.queues.send('dst_c', 0),
    await suite.queues.send('dst_a', 0),
  ];
  await suite.queues.put(0, 'dst_a', { failover: { destinations: [], afterAttempts: null } });
  // The second one fails over to the first one's destination, which its route then names no more.
  await suite.queues.put(0, 'dst_c', {
    revision: '2',
    movesOn: 'all',
    failover: { destinations: [{ id: 'dst_a', shard: 0 }], afterAttempts: null },
  });
  await suite.queues.of(0).dequeue('w2', 1);
  const repair = await breakKey(`m:${last.slice(-25)}`);
  await expect(suite.queues.of(0).dequeue('w1', 64)).rejects.toThrow();
  await repair();
  await suite.queues.of(0).reclaim(['w1', 'w2']);
  expect(idsOf(await suite.queues.looks())).toEqual([first, guest, last].sort());
});

test('a lease that an error keeps from being requeued stays, and others are requeued', async () => {
  const ids = [await suite.queues.send('dst_a', 0), await suite.queues.send('dst_a', 0)];
  await suite.queues.take(0);
  const repair = await breakKey(`m:${ids[0]?.slice(-25)}`);
  await expect(suite.queues.of(0).reclaim(['w1'])).rejects.toThrow();
  await repair();
  expect(idsOf((await suite.queues.of(0).dequeue('w2', 64)).jobs)).toEqual([ids[1]]);
  await suite.queues.of(0).reclaim(['w1']);
  expect(idsOf((await suite.queues.of(0).dequeue('w2', 64)).jobs)).toEqual([ids[0]]);
});

test.each(['dead', 'i:bad:org_a'])('a message whose cancel an error at the key %s cuts short ends once', async (name) => {
  const queued = await suite.queues.send('dst_a', 0);
  await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), { type: 'retry', attempt: failure, delayMs: hourMs });
  const fresh = await suite.queues.send('dst_a', 0);
  const repair = await breakKey(name);
  await cancel([queued, fresh]).catch(() => undefined);
  await repair();
  await cancel([queued, fresh]);
  expect(await suite.redis.client.xlen(`${suite.queues.base(0)}dead`)).toBe(2);
  expect(await suite.redis.client.keys(`${suite.queues.base(0)}w:*`)).toEqual([]);
});

test('a setting whose script an error ends is not in force, and is stored again', async () => {
  await suite.queues.send('dst_a', 0);
  const target = await targetOf('dst_a');
  const repair = await breakKey('ordered');
  await expect(suite.queues.of(0).configure(target, targetSetting({ inOrder: true }))).rejects.toThrow();
  await repair();
  expect(await suite.redis.client.hexists(`${suite.queues.base(0)}t:${target.number}`, hashFields.target.revision)).toBe(0);
  expect((await suite.queues.of(0).dequeue('w1', 64)).unconfigured).toMatchObject([{ destinationId: 'dst_a' }]);
});
