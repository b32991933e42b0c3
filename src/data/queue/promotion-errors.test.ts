import { describe, expect, test } from '@jest/globals';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { makeDue } from '../../../test/support/make-due.ts';
import { checkedMessageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { hashFields } from '../shard/hash-fields.ts';

/** Losses of `promote` and `expirePaused` when an error ends their work on one of the things whose time has come: none. */
const prefix = 'test:';
const base = `${prefix}{s0}:`;
const hourMs = 3_600_000;

const suite = checkedMessageQueueSuite(prefix);
/** Puts a text where a script expects something else, so that it fails there. Returns what puts the first back. */
async function breakKey(name: string): Promise<() => Promise<void>> {
  const key = `${base}${name}`;
  await suite.redis.client.rename(key, `${key}:whole`);
  await suite.redis.client.set(key, 'broken');
  return async () => void (await suite.redis.client.rename(`${key}:whole`, key));
}

const messageKey = (messageId = ''): string => messageId.slice(-25);
const due = (name: string): Promise<string[]> => suite.redis.client.zrangebyscore(`${base}${name}`, '-inf', Date.now());

test('an error at one limiter leaves the targets that wait under others awake, and its own to be woken later', async () => {
  const destinations = ['dst_a', 'dst_b', 'dst_c', 'dst_d'];
  await suite.acceptor.accept(newEvent({ destinations }));
  for (const destination of destinations) await suite.redis.client.set(`${base}rate:${destination}`, (Date.now() + hourMs) * 1000);
  const throttle = { mode: 'rate', rateLimit: 1, rateUnit: 'hour', maxConcurrency: null, queueLimit: null } as const;
  while ((await suite.redis.client.exists(`${base}ready`)) === 1)
    for (const target of (await suite.queue.dequeue('w1', 64)).unconfigured)
      await suite.queue.configure(target, targetSetting({ throttle }));
  for (const destination of destinations) await suite.redis.client.del(`${base}rate:${destination}`);
  const repair = await breakKey('l:dst_b');
  await makeDue(suite.redis.client, base, 'waiting', destinations);
  await expect(suite.queue.promote()).rejects.toThrow();
  expect(await suite.redis.client.zcard(`${base}ready:org_a`)).toBe(3);
  expect(await due('waiting')).toEqual([]);
  await repair();
  await makeDue(suite.redis.client, base, 'waiting', ['dst_b']);
  await suite.queue.promote();
  expect(await suite.redis.client.zcard(`${base}ready:org_a`)).toBe(4);
});

test('an error at one target leaves others that wait under the same limiter awake, and that one to be woken later', async () => {
  const organizations = ['org_a', 'org_b', 'org_c'];
  for (const org of organizations) await suite.acceptor.accept(newEvent({ org }));
  const { unconfigured } = await suite.queue.dequeue('w1', 64);
  expect(unconfigured).toHaveLength(3);
  const numbers = await Promise.all(organizations.map((org) => suite.redis.client.hget(`${base}tn:${org}`, 'rte_a dst_a')));
  for (const n of numbers) {
    await suite.redis.client.del(`${base}wait:?${n}`);
    await suite.redis.client.hset(`${base}t:${n}`, hashFields.target.blockedBy, 'dst_x');
    await suite.redis.client.zadd(`${base}wait:dst_x`, Number(n), n ?? '');
  }
  await suite.redis.client.del(`${base}waiting`);
  await suite.redis.client.zadd(`${base}waiting`, 1, 'dst_x');
  const repair = await breakKey(`t:${numbers[1]}`);
  await expect(suite.queue.promote()).rejects.toThrow();
  await repair();
  expect(await suite.redis.client.zrange(`${base}ready`, '0', '-1')).toEqual(['org_a', 'org_c']);
  await makeDue(suite.redis.client, base, 'waiting', ['dst_x']);
  await suite.queue.promote();
  expect((await suite.redis.client.zrange(`${base}ready`, '0', '-1')).toSorted()).toEqual(organizations);
});

test('an error at one message that is due leaves the others moved, and that one to be moved later', async () => {
  const events = Array.from({ length: 5 }, () => newEvent());
  const notBeforeMs = Date.now() + hourMs;
  for (const event of events)
    await suite.acceptor.accept({ ...event, notBeforeMs, targets: event.targets.map((each) => ({ ...each, notBeforeMs })) });
  await makeDue(suite.redis.client, base, 'due');
  const repair = await breakKey(`m:${messageKey(events[1]?.targets[0]?.messageId)}`);
  await expect(suite.queue.promote()).rejects.toThrow();
  await repair();
  const lane = `${base}w:${await suite.redis.client.hget(`${base}tn:org_a`, 'rte_a dst_a')}`;
  expect([await suite.redis.client.xlen(lane), await suite.redis.client.zcard(`${base}due`), await due('due')]).toEqual([4, 1, []]);
  expect([await suite.redis.client.hvals(`${base}retries`), await suite.redis.client.hvals(`${base}scheduled`)]).toEqual([['1'], ['1']]);
  await makeDue(suite.redis.client, base, 'due');
  expect((await suite.queue.promote()).moved).toBe(1);
  expect(await suite.redis.client.xlen(lane)).toBe(5);
  expect(await suite.redis.client.exists(`${base}retries`, `${base}scheduled`)).toBe(0);
});

test('an error while a message that expires is put into its lane leaves it out of the lane, so that it is there once', async () => {
  const event = newEvent();
  const [notBeforeMs, expiresAtMs] = [Date.now() + hourMs, Date.now() + 2 * hourMs];
  await suite.acceptor.accept({ ...event, notBeforeMs, targets: event.targets.map((each) => ({ ...each, notBeforeMs, expiresAtMs })) });
  await makeDue(suite.redis.client, base, 'due');
  const repair = await breakKey('exp');
  await expect(suite.queue.promote()).rejects.toThrow();
  await repair();
  await makeDue(suite.redis.client, base, 'due');
  expect((await suite.queue.promote()).moved).toBe(1);
  const lane = `${base}w:${await suite.redis.client.hget(`${base}tn:org_a`, 'rte_a dst_a')}`;
  expect(await suite.redis.client.xlen(lane)).toBe(1);
});

test('an error while the lane of retries of a target is made lets its retries be found later', async () => {
  for (let i = 0; i < 2; i++) await suite.acceptor.accept(newEvent());
  const jobs = await takeFrom(suite.queue, 'w1', 2);
  await settleAll(suite.queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: hourMs });
  await makeDue(suite.redis.client, base, 'due');
  const repair = await breakKey(`t:${await suite.redis.client.hget(`${base}tn:org_a`, 'rte_a dst_a')}`);
  await expect(suite.queue.promote()).rejects.toThrow();
  await repair();
  await makeDue(suite.redis.client, base, 'due');
  expect((await suite.queue.promote()).moved).toBe(2);
  expect(await takeFrom(suite.queue, 'w1', 2)).toHaveLength(2);
});

describe('messages that have waited too long', () => {
  const dayMs = 24 * hourMs;

  /** They wait at paused targets, one of each organization. Returns the keys of the messages. */
  async function waitLong(organizations: readonly string[]): Promise<string[]> {
    const events = organizations.map((org) => newEvent({ org }));
    for (const event of events) await suite.acceptor.accept(event);
    for (const target of (await suite.queue.targets(0)).targets) await suite.queue.configure(target, targetSetting({ paused: true }));
    const began = Date.now() - 8 * dayMs;
    for (const key of await suite.redis.client.keys(`${base}m:*`))
      await suite.redis.client.hset(key, hashFields.message.indexStamp, `${began}-1`);
    for (const key of await suite.redis.client.keys(`${base}t:*`))
      await suite.redis.client.hset(key, hashFields.target.pausedSinceMs, began);
    return events.map(({ targets }) => `m:${messageKey(targets[0]?.messageId)}`);
  }
  const expirePaused = () => suite.queue.expirePaused(7 * dayMs);

  test('an error before the end of one leaves it in its lane, and those of other targets ended', async () => {
    const [, second = ''] = await waitLong(['org_a', 'org_b', 'org_c']);
    const repair = await breakKey(second);
    await expect(expirePaused()).rejects.toThrow();
    await repair();
    expect(await suite.redis.client.xlen(`${base}dead`)).toBe(2);
    expect(await expirePaused()).toEqual({ expired: 1, hasMore: false });
    expect(await suite.redis.client.xlen(`${base}dead`)).toBe(3);
  });

  test.each(['dead', 'i:bad:org_a'])('an error at the key %s during the end of one lets it end once', async (name) => {
    await waitLong(['org_a', 'org_a']);
    await suite.redis.client.set(`${base}${name}`, 'broken');
    await expect(expirePaused()).rejects.toThrow();
    await suite.redis.client.del(`${base}${name}`);
    await expirePaused();
    expect(await suite.redis.client.xlen(`${base}dead`)).toBe(2);
    expect(await suite.redis.client.keys(`${base}w:*`)).toEqual([]);
  });
});

test('an error at one message that has expired leaves the others ended, and that one to be ended later', async () => {
  const events = Array.from({ length: 5 }, () => newEvent());
  const expiresAtMs = Date.now() + hourMs;
  for (const event of events) await suite.acceptor.accept({ ...event, targets: event.targets.map((each) => ({ ...each, expiresAtMs })) });
  await expireMessages(suite.redis.client, base);
  const repair = await breakKey(`m:${messageKey(events[1]?.targets[0]?.messageId)}`);
  await expect(suite.queue.promote()).rejects.toThrow();
  await repair();
  expect([await suite.redis.client.zcard(`${base}exp`), await due('exp')]).toEqual([1, []]);
  await expireMessages(suite.redis.client, base);
  await suite.queue.promote();
  expect(await suite.redis.client.zcard(`${base}exp`)).toBe(0);
});

test('an error in the middle of the end of messages that have expired lets each of them end once', async () => {
  const event = newEvent({ destinations: ['dst_a', 'dst_b'] });
  const expiresAtMs = Date.now() + hourMs;
  await suite.acceptor.accept({ ...event, targets: event.targets.map((each) => ({ ...each, expiresAtMs })) });
  await expireMessages(suite.redis.client, base);
  await suite.redis.client.set(`${base}i:bad:org_a`, 'broken');
  await expect(suite.queue.promote()).rejects.toThrow();
  await suite.redis.client.del(`${base}i:bad:org_a`);
  await makeDue(suite.redis.client, base, 'exp');
  await makeDue(suite.redis.client, base, 'waiting');
  await suite.queue.promote();
  expect([await suite.redis.client.xlen(`${base}dead`), await suite.redis.client.zcard(`${base}exp`)]).toEqual([2, 0]);
});
