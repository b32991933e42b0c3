import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { comeDue } from '../../../test/support/come-due.ts';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { type MessageQueue, startMessageQueue } from '../../../test/support/message-queue.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, failure, settleEverything } from '../../../test/support/queue-worker.ts';
import { checkShards } from '../check/shard-check.ts';
import type { Outcome } from './delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const hourMs = 3_600_000;

let redis: MessageQueue['redis'];
let queue: MessageQueue['queue'];
let acceptor: MessageQueue['acceptor'];
let reset: MessageQueue['reset'];

beforeAll(async () => {
  ({ redis, queue, acceptor, reset } = await startMessageQueue(prefix));
});
afterAll(() => redis.stop());
beforeEach(() => reset());
afterEach(async () => {
  expect((await checkShards({ redis: redis.client, prefix, shards: 1 })).findings).toEqual([]);
});

async function accept(org: string, count: number, times: { notBeforeMs?: number; expiresAtMs?: number } = {}): Promise<string[]> {
  const events = Array.from({ length: count }, () => newEvent({ org, destinations: [`dst_${org}`] }));
  await Promise.all(
    events.map((event) => acceptor.accept({ ...event, ...times, targets: event.targets.map((target) => ({ ...target, ...times })) })),
  );
  return events.map(({ targets: [target] }) => target?.messageId ?? '');
}
const schedule = (org: string, count: number): Promise<string[]> => accept(org, count, { notBeforeMs: Date.now() + hourMs });
const waiting = (org: string): Promise<number> => redis.client.zcard(`${base}due:${org}`);
const numberOf = async (org: string): Promise<string> => (await redis.client.hget(`${base}tn:${org}`, `rte_a dst_${org}`)) ?? '';
const queued = async (org: string): Promise<number> => await redis.client.xlen(`${base}w:${await numberOf(org)}`);
const indexes = async (): Promise<string[]> => (await redis.client.keys(`${base}*`)).filter((key) => /:(due|exp|turns):/.test(key));

/** As the release before has left it: without an index. */
async function forgetIndex(): Promise<void> {
  await redis.client.hdel(`${base}ctl`, 'indexed:due', 'indexed:exp');
  const keys = await indexes();
  if (keys.length > 0) await redis.client.del(...keys);
}

const retryInAnHour: Outcome = { type: 'retry', attempt: failure, delayMs: hourMs };

test('messages of an organization that are due after a thousand of another one move with the first call', async () => {
  await schedule('org_a', 1000);
  await comeDue(redis.client, base, 'due');
  await schedule('org_b', 40);
  await comeDue(redis.client, base, 'due', await redis.client.zrange(`${base}due:org_b`, '0', '-1'));
  const { moved, nextDueMs } = await queue.promote();
  expect(moved).toBe(100);
  expect(nextDueMs).toBe(0);
  expect(await queued('org_b')).toBe(40);
  expect(await queued('org_a')).toBe(60);
});

test('retries of an organization move beside a thousand scheduled messages of another one', async () => {
  await accept('org_b', 20);
  await settleEverything(queue, 'w1', retryInAnHour);
  expect(await waiting('org_b')).toBe(20);
  await schedule('org_a', 1000);
  const ofB = await redis.client.zrange(`${base}due:org_b`, '0', '-1');
  await comeDue(redis.client, base, 'due', [...(await redis.client.zrange(`${base}due:org_a`, '0', '-1')), ...ofB]);
  await queue.promote();
  expect(await waiting('org_b')).toBe(0);
});

test('each of 200 organizations that have due messages has its turn within three calls', async () => {
  const organizations = Array.from({ length: 200 }, (_, i) => `org_${i}`);
  for (const org of organizations) await schedule(org, org === 'org_0' ? 400 : 3);
  await comeDue(redis.client, base, 'due');
  for (let call = 0; call < 3; call++) await queue.promote();
  for (const org of organizations) expect(await queued(org)).toBeGreaterThan(0);
}, 30_000);

test('messages of webhooks and alerts count to the share of their organization', async () => {
  await schedule('+org_a', 500);
  await schedule('~org_a', 500);
  await schedule('org_b', 40);
  await comeDue(redis.client, base, 'due');
  await queue.promote();
  expect(await redis.client.zrange(`${base}turns:due`, '0', '-1')).toEqual(['org_a']);
  expect(await queued('org_b')).toBe(40);
});

test('messages of an organization expire beside a thousand of another one', async () => {
  await accept('org_a', 1000, { expiresAtMs: Date.now() + hourMs });
  await accept('org_b', 20, { expiresAtMs: Date.now() + hourMs });
  await expireMessages(redis.client, base);
  const ofA = await redis.client.zrange(`${base}exp:org_a`, '0', '-1');
  await comeDue(redis.client, base, 'exp', [...ofA, ...(await redis.client.zrange(`${base}exp:org_b`, '0', '-1'))]);
  expect((await queue.promote()).moved).toBe(100);
  expect(await redis.client.zcard(`${base}exp:org_b`)).toBe(0);
}, 30_000);

test('messages of one organization move in the order of their time', async () => {
  await schedule('org_a', 250);
  await schedule('org_b', 250);
  const wanted = (await redis.client.zrange(`${base}due:org_a`, '0', '-1')).reverse();
  await comeDue(redis.client, base, 'due', [...(await redis.client.zrange(`${base}due:org_b`, '0', '-1')), ...wanted]);
  while ((await queue.promote()).moved > 0);
  const entries = await redis.client.xrange(`${base}w:${await numberOf('org_a')}`, '-', '+');
  expect(entries.map(([, fields]) => fields[1])).toEqual(wanted.map((member) => member.split(' ')[1]));
});

test('what the release before has planned moves at its time, and is shared once it is found', async () => {
  await schedule('org_a', 1000);
  await schedule('org_b', 40);
  await forgetIndex();
  for (let call = 0; call < 12; call++) await queue.promote();
  expect([await waiting('org_a'), await waiting('org_b')]).toEqual([1000, 40]);
  await comeDue(redis.client, base, 'due');
  await queue.promote();
  expect(await queued('org_b')).toBe(40);
});

test('what the release before plans meanwhile is looked for once one of it was found', async () => {
  await queue.promote();
  await schedule('org_a', 10);
  await redis.client.del(`${base}due:org_a`, `${base}turns:due`);
  const [first = ''] = await redis.client.zrange(`${base}due`, '0', '0');
  await comeDue(redis.client, base, 'due', [first]);
  expect(await waiting('org_a')).toBe(0);
  await queue.promote();
  expect(await queued('org_a')).toBe(1);
  await queue.promote();
  expect(await waiting('org_a')).toBe(9);
});

test('what the release before took and planned anew is not taken before its time', async () => {
  await queue.promote();
  await schedule('org_a', 2);
  const [gone = '', later = ''] = await redis.client.zrange(`${base}due:org_a`, '0', '-1');
  await comeDue(redis.client, base, 'due', [gone, later]);
  const number = await numberOf('org_a');
  await redis.client.zrem(`${base}due`, gone);
  await redis.client.hincrby(`${base}retries`, number, -1);
  await redis.client.xadd(`${base}w:${number}`, '1-1', 'i', gone.split(' ')[1] ?? '');
  const atMs = Date.now() + hourMs;
  await redis.client.zadd(`${base}due`, atMs, later);
  expect((await queue.promote()).moved).toBe(0);
  expect(await redis.client.zrange(`${base}due:org_a`, '0', '-1', 'WITHSCORES')).toEqual([later, String(atMs)]);
  expect(await redis.client.zrange(`${base}turns:due`, '0', '-1', 'WITHSCORES')).toEqual(['org_a', String(atMs)]);
  await redis.client.del(`${base}w:${number}`);
  await redis.client.flushall();
});

test('nothing of an index is left once what waited has left', async () => {
  await schedule('org_a', 150);
  await accept('org_b', 3, { expiresAtMs: Date.now() + hourMs });
  await comeDue(redis.client, base, 'due');
  while ((await queue.promote()).moved > 0);
  await settleEverything(queue, 'w1', dead);
  expect(await indexes()).toEqual([]);
});
