import { expect, test } from '@jest/globals';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { forgetStaleNames, makeDue } from '../../../test/support/make-due.ts';
import { checkedMessageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, failure, settleEverything } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Outcome, TargetSetting } from './delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const hourMs = 3_600_000;

const suite = checkedMessageQueueSuite(prefix);
async function accept(org: string, count: number, times: { notBeforeMs?: number; expiresAtMs?: number } = {}): Promise<string[]> {
  const events = Array.from({ length: count }, () => newEvent({ org, destinations: [`dst_${org}`] }));
  await Promise.all(
    events.map((event) => suite.acceptor.accept({ ...event, ...times, targets: event.targets.map((target) => ({ ...target, ...times })) })),
  );
  return events.map(({ targets: [target] }) => target?.messageId ?? '');
}
const schedule = (org: string, count: number): Promise<string[]> => accept(org, count, { notBeforeMs: Date.now() + hourMs });
const waiting = (org: string): Promise<number> => suite.redis.client.zcard(`${base}due:${org}`);
const numberOf = async (org: string): Promise<string> => (await suite.redis.client.hget(`${base}tn:${org}`, `rte_a dst_${org}`)) ?? '';
const queued = async (org: string): Promise<number> => await suite.redis.client.xlen(`${base}w:${await numberOf(org)}`);
const indexes = async (): Promise<string[]> =>
  (await suite.redis.client.keys(`${base}*`)).filter((key) => /:(due|exp|waiting|turns):/.test(key));

/** As the release before has left it: without an index. */
async function forgetIndex(): Promise<void> {
  await suite.redis.client.hdel(`${base}ctl`, 'indexed:due', 'indexed:exp');
  const keys = await indexes();
  if (keys.length > 0) await suite.redis.client.del(...keys);
}

const retryInAnHour: Outcome = { type: 'retry', attempt: failure, delayMs: hourMs };

test('messages of an organization that are due after a thousand of another one move with the first call', async () => {
  await schedule('org_a', 1000);
  await makeDue(suite.redis.client, base, 'due');
  await schedule('org_b', 40);
  await makeDue(suite.redis.client, base, 'due', await suite.redis.client.zrange(`${base}due:org_b`, '0', '-1'));
  const { moved, nextDueMs } = await suite.queue.promote();
  expect(moved).toBe(100);
  expect(nextDueMs).toBe(0);
  expect(await queued('org_b')).toBe(40);
  expect(await queued('org_a')).toBe(60);
});

test('retries of an organization move beside a thousand scheduled messages of another one', async () => {
  await accept('org_b', 20);
  await settleEverything(suite.queue, 'w1', retryInAnHour);
  expect(await waiting('org_b')).toBe(20);
  await schedule('org_a', 1000);
  const ofB = await suite.redis.client.zrange(`${base}due:org_b`, '0', '-1');
  await makeDue(suite.redis.client, base, 'due', [...(await suite.redis.client.zrange(`${base}due:org_a`, '0', '-1')), ...ofB]);
  await suite.queue.promote();
  expect(await waiting('org_b')).toBe(0);
});

test('each of 200 organizations that have due messages has its turn within three calls', async () => {
  const organizations = Array.from({ length: 200 }, (_, i) => `org_${i}`);
  for (const org of organizations) await schedule(org, org === 'org_0' ? 400 : 3);
  await makeDue(suite.redis.client, base, 'due');
  for (let call = 0; call < 3; call++) await suite.queue.promote();
  for (const org of organizations) expect(await queued(org)).toBeGreaterThan(0);
}, 30_000);

test('messages of webhooks and alerts count to the share of their organization', async () => {
  await schedule('+org_a', 500);
  await schedule('~org_a', 500);
  await schedule('org_b', 40);
  await makeDue(suite.redis.client, base, 'due');
  await suite.queue.promote();
  expect(await suite.redis.client.zrange(`${base}turns:due`, '0', '-1')).toEqual(['org_a']);
  expect(await queued('org_b')).toBe(40);
});

test('messages of an organization expire beside a thousand of another one', async () => {
  await accept('org_a', 1000, { expiresAtMs: Date.now() + hourMs });
  await accept('org_b', 20, { expiresAtMs: Date.now() + hourMs });
  await expireMessages(suite.redis.client, base);
  const ofA = await suite.redis.client.zrange(`${base}exp:org_a`, '0', '-1');
  await makeDue(suite.redis.client, base, 'exp', [...ofA, ...(await suite.redis.client.zrange(`${base}exp:org_b`, '0', '-1'))]);
  expect((await suite.queue.promote()).moved).toBe(100);
  expect(await suite.redis.client.zcard(`${base}exp:org_b`)).toBe(0);
}, 30_000);

/** Names under which targets of the organization wait. */
async function namesOf(org: string): Promise<string[]> {
  const waiting = new Set(await suite.redis.client.zrange(`${base}waiting`, '0', '-1'));
  return (await suite.redis.client.zrange(`${base}waiting:${org}`, '0', '-1')).filter((name) => waiting.has(name));
}

/** Lets targets of the organization wait under a limiter each; `setting`: what they are configured with. */
async function park(org: string, count: number, setting: Partial<TargetSetting> | null): Promise<void> {
  const targets = Array.from({ length: count }, (_, i) => `dst_${org}_${i}`);
  for (let first = 0; first < count; first += 50) {
    const destinations = targets.slice(first, first + 50);
    await suite.acceptor.accept(newEvent({ org, destinations }));
    // As after a message of this hour.
    for (const destination of destinations) await suite.redis.client.set(`${base}rate:${destination}`, (Date.now() + hourMs) * 1000);
  }
  while ((await suite.redis.client.exists(`${base}ready:${org}`)) === 1) {
    const { unconfigured } = await suite.queue.dequeue('w1', 64);
    if (setting !== null) for (const target of unconfigured) await suite.queue.configure(target, targetSetting(setting));
  }
}

const oneAnHour = { mode: 'rate', rateLimit: 1, rateUnit: 'hour', maxConcurrency: null, queueLimit: null } as const;

test.each<[string, Partial<TargetSetting> | null]>([
  ['for their setting', null],
  ['for their rate', { throttle: oneAnHour }],
])(
  'targets of an organization that wait %s behind 500 of another one are read with the first call',
  async (_, setting) => {
    await park('org_a', 500, setting);
    await park('org_b', 3, setting);
    const ofA = await namesOf('org_a');
    expect(ofA).toHaveLength(500);
    const ofB = await namesOf('org_b');
    expect(ofB).toHaveLength(3);
    await makeDue(suite.redis.client, base, 'waiting', [...ofA, ...ofB]);
    await suite.queue.promote();
    const left = await suite.redis.client.zrangebyscore(`${base}waiting`, '-inf', Date.now());
    expect(left.filter((name) => ofB.includes(name))).toEqual([]);
    expect(left).toHaveLength(500 - 13);
  },
  30_000,
);

test('messages of an organization expire while 500 targets of another one wait to be read', async () => {
  await park('org_a', 500, null);
  await accept('org_b', 20, { expiresAtMs: Date.now() + hourMs });
  await expireMessages(suite.redis.client, base);
  await makeDue(suite.redis.client, base, 'waiting', [...(await namesOf('org_a')), '~x']);
  await suite.queue.promote();
  expect(await suite.redis.client.zcard(`${base}exp`)).toBe(0);
}, 30_000);

test('what the release before lets wait is read, and is shared once it is found', async () => {
  await park('org_a', 100, null);
  await park('org_b', 3, null);
  const ofB = await namesOf('org_b');
  const all = [...(await namesOf('org_a')), ...ofB];
  await suite.redis.client.del(`${base}waiting:org_a`, `${base}waiting:org_b`, `${base}turns:waiting`);
  await suite.redis.client.hdel(`${base}ctl`, 'indexed:waiting');
  await makeDue(suite.redis.client, base, 'waiting', all);
  for (let call = 0; call < 3; call++) await suite.queue.promote();
  expect((await suite.redis.client.zrange(`${base}waiting`, '0', '-1')).filter((name) => ofB.includes(name))).toEqual([]);
  while ((await suite.redis.client.zcard(`${base}waiting`)) > 0) await suite.queue.promote();
  expect(await indexes()).toEqual([]);
});

test('messages of one organization move in the order of their time', async () => {
  await schedule('org_a', 250);
  await schedule('org_b', 250);
  const wanted = (await suite.redis.client.zrange(`${base}due:org_a`, '0', '-1')).reverse();
  await makeDue(suite.redis.client, base, 'due', [...(await suite.redis.client.zrange(`${base}due:org_b`, '0', '-1')), ...wanted]);
  while ((await suite.queue.promote()).moved > 0);
  const entries = await suite.redis.client.xrange(`${base}w:${await numberOf('org_a')}`, '-', '+');
  expect(entries.map(([, fields]) => fields[1])).toEqual(wanted.map((member) => member.split(' ')[1]));
});

test('what the release before has planned moves at its time, and is shared once it is found', async () => {
  await schedule('org_a', 1000);
  await schedule('org_b', 40);
  await forgetIndex();
  for (let call = 0; call < 12; call++) await suite.queue.promote();
  expect([await waiting('org_a'), await waiting('org_b')]).toEqual([1000, 40]);
  await makeDue(suite.redis.client, base, 'due');
  await suite.queue.promote();
  expect(await queued('org_b')).toBe(40);
});

test('what the release before plans meanwhile is searched for once one of it was found', async () => {
  await suite.queue.promote();
  await schedule('org_a', 10);
  await suite.redis.client.del(`${base}due:org_a`, `${base}turns:due`);
  const [first = ''] = await suite.redis.client.zrange(`${base}due`, '0', '0');
  await makeDue(suite.redis.client, base, 'due', [first]);
  expect(await waiting('org_a')).toBe(0);
  await suite.queue.promote();
  expect(await queued('org_a')).toBe(1);
  await suite.queue.promote();
  expect(await waiting('org_a')).toBe(9);
});

test('what the release before took and planned again is not taken before its time', async () => {
  await suite.queue.promote();
  await schedule('org_a', 2);
  const [gone = '', later = ''] = await suite.redis.client.zrange(`${base}due:org_a`, '0', '-1');
  await makeDue(suite.redis.client, base, 'due', [gone, later]);
  const number = await numberOf('org_a');
  await suite.redis.client.zrem(`${base}due`, gone);
  await suite.redis.client.hincrby(`${base}retries`, number, -1);
  await suite.redis.client.xadd(`${base}w:${number}`, '1-1', hashFields.entry.message, gone.split(' ')[1] ?? '');
  const atMs = Date.now() + hourMs;
  await suite.redis.client.zadd(`${base}due`, atMs, later);
  expect((await suite.queue.promote()).moved).toBe(0);
  expect(await suite.redis.client.zrange(`${base}due:org_a`, '0', '-1', 'WITHSCORES')).toEqual([later, String(atMs)]);
  expect(await suite.redis.client.zrange(`${base}turns:due`, '0', '-1', 'WITHSCORES')).toEqual(['org_a', String(atMs)]);
  await suite.redis.client.del(`${base}w:${number}`);
  await suite.redis.client.flushall();
});

test('nothing of an index is left once what waited has left', async () => {
  await schedule('org_a', 150);
  await accept('org_b', 3, { expiresAtMs: Date.now() + hourMs });
  await makeDue(suite.redis.client, base, 'due');
  while ((await suite.queue.promote()).moved > 0);
  await settleEverything(suite.queue, 'w1', dead);
  await forgetStaleNames(suite.redis.client, base, suite.queue);
  expect(await indexes()).toEqual([]);
});
