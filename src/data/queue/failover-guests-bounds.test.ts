import { describe, expect, test } from '@jest/globals';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { inBatches } from '../../../test/support/in-batches.ts';
import { dead, failure, settleAll } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Outcome, Target, TargetSetting } from './delivery-queue.ts';

const later: Outcome = { type: 'retry', attempt: failure, delayMs: 3_600_000 };
const looksPerScript = 100;
/** Reads of a visit, and of the script, that are not of messages. */
const otherReads = 12;
const failover = { destinations: [{ id: 'dst_w', shard: 0 }], afterAttempts: null };

const suite = failoverSuite({ shards: 1 });
const { prefix } = suite;

const base = `${prefix}{s0}:`;
const keyOf = (id: string): string => `${base}m:${id.slice('msg_00'.length)}`;
const sendMany = (destinationId: string, count: number): Promise<string[]> => inBatches(count, () => suite.queues.send(destinationId, 0));
const destinationOf = async (id: string): Promise<string | null | undefined> => (await suite.reader.delivery('org_a', id))?.destinationId;

/** How many hashes a step reads. */
async function reads(step: () => Promise<unknown>): Promise<number> {
  await suite.redis.client.config('RESETSTAT');
  await step();
  return Number(/^cmdstat_hmget:calls=(\d+)/m.exec(await suite.redis.client.info('commandstats'))?.[1] ?? '0');
}

/** The reads of each dequeue until no work is ready. */
async function visits(): Promise<number[]> {
  const counts: number[] = [];
  do counts.push(await reads(() => suite.queues.take(0)));
  while ((await suite.queues.of(0).refreshShard('w1', 1000)).hasReadyWork && counts.length < 200);
  return counts;
}

/** Lets the targets be visited again, as a message that comes does it. */
async function visitAgain(destinationIds: readonly string[]): Promise<number> {
  for (const id of destinationIds) {
    const n = await numberOf(id);
    await suite.redis.client.hdel(`${base}t:${n}`, hashFields.target.blockedBy);
    await suite.redis.client.zadd(`${base}ready:org_a`, 0, n);
    await suite.redis.client.zadd(`${base}ready`, 0, 'org_a');
  }
  return await reads(() => suite.queues.take(0));
}

async function numberOf(destinationId: string): Promise<string> {
  return (await suite.redis.client.hget(`${base}tn:org_a`, `rte_a ${destinationId}`)) ?? '';
}

async function targetOf(destinationId: string): Promise<Target[]> {
  return (await suite.queues.of(0).targets(1)).targets.filter((each) => each.destinationId === destinationId);
}

const rate = { mode: 'rate', rateLimit: 1, rateUnit: 'hour', maxConcurrency: null, queueLimit: null } as const;
const oneAtOnce = { mode: 'concurrency', rateLimit: null, rateUnit: null, maxConcurrency: 1, queueLimit: null } as const;
/** Obstacles of a target. */
const blocks: Record<string, { setting: Partial<TargetSetting>; begin: () => Promise<unknown> }> = {
  circuit: { setting: {}, begin: () => suite.queues.setCircuit(0, 'dst_w', 'open') },
  rate: { setting: { throttle: rate }, begin: async () => settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), later) },
  concurrency: { setting: { throttle: oneAtOnce }, begin: () => suite.queues.take(0) },
};

describe.each(Object.entries(blocks))(
  'of a destination that its route names no more and that its %s keeps from sending',
  (_, { setting, begin }) => {
    test('each message is read once, so many per dequeue, and those from elsewhere leave behind however many others', async () => {
      await sendMany('dst_w', 1150);
      await suite.queues.put(0, 'dst_w', { paused: true });
      const guests = await sendMany('dst_a', 2);
      await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, { failover }), dead);
      await suite.queues.put(0, 'dst_w', setting);
      await begin();
      for (const id of guests) expect(await destinationOf(id)).toBe('dst_w');
      await suite.queues.put(0, 'dst_w', { ...setting, movesOn: 'guests' });
      const counts = await visits();
      for (const id of guests) expect(await destinationOf(id)).toBe('dst_a');
      expect(counts.length).toBeGreaterThan(10);
      expect(Math.max(...counts)).toBeLessThanOrEqual(looksPerScript + otherReads);
      expect(await visitAgain(['dst_w'])).toBeLessThanOrEqual(otherReads);
    });
  },
);

test('many destinations that their route names no more share the looks of a dequeue', async () => {
  const names = Array.from({ length: 12 }, (_, k) => `dst_${k}`);
  for (const name of names) await sendMany(name, 30);
  for (const name of names) {
    await suite.queues.setCircuit(0, name, 'open');
    await suite.queues.put(0, name, { movesOn: 'guests' });
  }
  const counts = await visits();
  expect(Math.max(...counts)).toBeLessThanOrEqual(looksPerScript + names.length * otherReads);
  expect(counts.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(12 * 30);
  expect(await visitAgain(names)).toBeLessThanOrEqual(names.length * otherReads);
});

describe('of batches', () => {
  const members = 300;
  const batch = { layout: '{}', records: members, bytes: 100_000_000, ageMs: 3_600_000 };

  /** So many batches of messages for dst_w, each changed before, wait for their next attempt. */
  async function waiting(count: number, change: (id: string) => Promise<unknown>): Promise<string[]> {
    const ids = await sendMany('dst_w', count * members);
    for (const id of ids) await change(id);
    for (let jobs = await suite.queues.take(0, { batch }); jobs.length > 0; jobs = await suite.queues.take(0))
      await settleAll(suite.queues.of(0), 'w1', jobs, later);
    expect(await suite.redis.client.zcard(`${base}due`)).toBe(count);
    return ids;
  }

  /** Makes the retries due while the circuit is open. */
  async function queueThem(): Promise<void> {
    await suite.queues.setCircuit(0, 'dst_w', 'open');
    for (const member of await suite.redis.client.zrange(`${base}due`, '0', '-1')) await suite.redis.client.zadd(`${base}due`, 1, member);
    await suite.queues.of(0).promote();
  }

  const own: [whose: string, change: (id: string) => Promise<unknown>][] = [
    ['were sent there', async () => {}],
    ['have come back there', (id) => suite.redis.client.hset(keyOf(id), hashFields.message.moves, 2)],
  ];

  test.each(own)('whose members %s no member is read when their route names the destination no more, and they stay', async (_, change) => {
    await waiting(4, change);
    const setting = { batch, movesOn: 'guests' } as const;
    const targets = await targetOf('dst_w');
    for (const each of targets) await suite.queues.of(0).configure(each, targetSetting(setting));
    expect(await reads(() => suite.queues.of(0).endWaits(targets, '0'))).toBeLessThanOrEqual(4 + otherReads);
    expect(await suite.redis.client.zcard(`${base}due`)).toBe(4);
    await queueThem();
    await suite.queues.put(0, 'dst_w', setting);
    for (const count of await visits()) expect(count).toBeLessThanOrEqual(4 + otherReads);
    expect(await suite.redis.client.xlen(`${base}w:${await numberOf('dst_w')}r`)).toBe(4);
  });

  test.each([
    ['at its begin', [true, true, false, false], [true, false]],
    ['at its end', [false, false, true, true], [false, true]],
    ['on both sides', [true, false, false, true], [true, true]],
    ['nowhere', [false, false, false, false], [false, false]],
  ])('one that is cut, with messages from elsewhere %s: each part records whether it has some', async (_, fromElsewhere, expected) => {
    const setting = { batch: { ...batch, records: 4 } };
    const ids = await sendMany('dst_w', 4);
    for (const [i, id] of ids.entries())
      if (fromElsewhere[i])
        await suite.redis.client.hset(keyOf(id), { [hashFields.message.firstDestination]: 'dst_a', [hashFields.message.moves]: 1 });
    await suite.queues.put(0, 'dst_w', setting);
    const [job] = (await suite.queues.take(0)).filter((each) => each.isBatch);
    const whole = job && (await suite.queues.of(0).batch(job));
    const [, last, first] = whole?.members ?? [];
    if (job === undefined || last === undefined || first === undefined) throw new Error('there is no batch');
    expect(await suite.queues.of(0).cut('w1', job, { last, first })).toBe(true);
    const [cut] = await suite.queues.take(0);
    const flags = [job, cut].map((each) => suite.redis.client.hget(`${base}m:${each?.messageKey}`, hashFields.message.hasGuests));
    expect((await Promise.all(flags)).map((flag) => flag === '1')).toEqual(expected);
  });
});
