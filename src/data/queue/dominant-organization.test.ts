import { expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { settleEverything } from '../../../test/support/queue-worker.ts';
import { blockingConnection } from '../../redis/connection.ts';
import type { Job } from './delivery-queue.ts';
import { Doorbell, doorbellBlockSeconds } from './doorbell.ts';

const prefix = 'test:';
const slowAttempts = { slots: 1000, held: 0, byAccount: new Map() };
const suite = messageQueueSuite(prefix);

const accept = async (org: string, destinations: string[]): Promise<void> => {
  for (const destination of destinations) await suite.acceptor.accept(newEvent({ org, destinations: [destination] }));
};
const named = (name: string, count: number): string[] => Array.from({ length: count }, (_, i) => `dst_${name}${i}`);
const organizationsOf = (jobs: readonly Job[]): string[] => jobs.map(({ target }) => target.org);

/** Targets that have been delivered to before. */
async function known(org: string, destinations: string[]): Promise<void> {
  await accept(org, destinations);
  await settleEverything(suite.queue, 'w1');
}

test('other organizations go before the dominant one, and the reply reports whether more of theirs waits', async () => {
  await known('org_dominant', named('b', 20));
  await known('org_a', named('a', 6));
  await accept('org_dominant', named('b', 20));
  await accept('org_a', named('a', 6));
  const first = await suite.queue.dequeue('w1', 4, slowAttempts, { dominant: 'org_dominant' });
  expect(organizationsOf(first.jobs)).toEqual(['org_a', 'org_a', 'org_a', 'org_a']);
  expect(first).toMatchObject({ hasReadyWork: true, hasWorkOfOthers: true });
  const second = await suite.queue.dequeue('w1', 4, slowAttempts, { dominant: 'org_dominant' });
  expect(organizationsOf(second.jobs)).toEqual(['org_a', 'org_a', 'org_dominant', 'org_dominant']);
  expect(second).toMatchObject({ hasReadyWork: true, hasWorkOfOthers: false });
});

test('a dequeue without the dominant organization gets none of its messages, and reports that it has work', async () => {
  await known('org_dominant', named('b', 4));
  await known('org_a', named('a', 2));
  await accept('org_dominant', named('b', 4));
  const forOthers = { dominant: 'org_dominant', without: ['org_dominant'] };
  expect(await suite.queue.dequeue('w1', 4, slowAttempts, forOthers)).toMatchObject({
    jobs: [],
    hasReadyWork: true,
    hasWorkOfOthers: false,
  });
  await accept('org_a', named('a', 2));
  const { jobs } = await suite.queue.dequeue('w1', 4, slowAttempts, forOthers);
  expect(organizationsOf(jobs)).toEqual(['org_a', 'org_a']);
  expect(organizationsOf((await suite.queue.dequeue('w1', 4, slowAttempts, { dominant: 'org_dominant' })).jobs)).toHaveLength(4);
});

test('what was passed over has no claim on the turns that it lost', async () => {
  await known('org_dominant', named('b', 20));
  await known('org_a', named('a', 12));
  await accept('org_dominant', named('b', 20));
  await accept('org_a', named('a', 12));
  await suite.queue.dequeue('w1', 8, slowAttempts, { dominant: 'org_dominant' });
  const { jobs } = await suite.queue.dequeue('w1', 4, slowAttempts);
  expect(organizationsOf(jobs).sort()).toEqual(['org_a', 'org_a', 'org_dominant', 'org_dominant']);
});

test('targets that cannot be served hold up no other organization', async () => {
  await known('org_z', ['dst_z']);
  await accept('org_new', named('n', 100));
  await accept('org_z', ['dst_z']);
  const { jobs, unconfigured } = await suite.queue.dequeue('w1', 16, slowAttempts);
  expect(organizationsOf(jobs)).toEqual(['org_z']);
  expect(unconfigured.length).toBeGreaterThan(0);
});

test('a target is not visited again to find out that it has nothing more', async () => {
  await known('org_a', named('a', 30));
  await accept('org_a', named('a', 30));
  const { jobs, hasReadyWork } = await suite.queue.dequeue('w1', 30, slowAttempts);
  expect(jobs).toHaveLength(30);
  expect(hasReadyWork).toBe(false);
});

test('the doorbell says where an organization has its first work', async () => {
  const blocking = blockingConnection(suite.redis.url, { blockMs: doorbellBlockSeconds * 1000 });
  const bell = new Doorbell({ redis: blocking, prefix });
  const rings = async (): Promise<number> => await suite.redis.client.llen(`${prefix}{s0}:bell`);
  try {
    await known('org_dominant', named('b', 2));
    await known('org_a', ['dst_a']);
    while ((await rings()) > 0) await bell.wait();
    await accept('org_dominant', ['dst_b0']);
    expect(await bell.wait()).toEqual({ shard: 0, isFirst: true });
    await accept('org_dominant', ['dst_b1']);
    expect(await bell.wait()).toEqual({ shard: 0, isFirst: false });
    await accept('org_dominant', ['dst_b2']);
    await accept('org_a', ['dst_a']);
    expect(await bell.wait()).toEqual({ shard: 0, isFirst: false });
    expect(await bell.wait()).toEqual({ shard: 0, isFirst: true });
    expect(await rings()).toBe(0);
  } finally {
    bell.close();
  }
});
