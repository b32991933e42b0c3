import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { newEvent } from '../../../test/support/new-event.ts';
import { patientClock } from '../../../test/support/patient-clock.ts';
import { attempt, dead, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/clock.ts';
import { Circuits } from '../queue/circuits.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { FeedReader, interestMs } from './feed-reader.ts';
import { type FeedRow, organizationOfRow, parseFeedRow } from './feed-row.ts';

const prefix = 'test:';
const feedKey = `${prefix}{s0}:feed`;
const watchKey = `${prefix}{s0}:watch`;
let redis: RedisServer;
let queue: RedisDeliveryQueue;
let acceptor: RedisMessageAcceptor;
let reader: FeedReader;

beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock });
  const blocking = redis.client.duplicate({ commandTimeout: undefined });
  reader = new FeedReader({ redis: redis.client, blocking, prefix, shards: () => 1, clock: systemClock });
});
afterAll(async () => {
  reader.close();
  await redis.stop();
});
beforeEach(async () => {
  await redis.client.flushall();
  await queue.tend('w1', 1000);
});

/** The rows that `act` has written. */
async function rowsOf(act: () => Promise<unknown>): Promise<(FeedRow | null)[]> {
  const { rows: from } = await reader.watch(null);
  await act();
  const { rows: to } = await reader.watch(null);
  const found = await reader.between(0, from[0] ?? '', to[0] ?? '');
  return (found ?? []).map(({ shard, id, text }) => parseFeedRow(shard, id, text));
}

async function accept(changes: Parameters<typeof newEvent>[0] = {}): Promise<ReturnType<typeof newEvent>> {
  const event = newEvent(changes);
  await acceptor.accept(event);
  return event;
}

test('nothing is written while nobody watches', async () => {
  await accept({ invalidRoutes: { rte_v: 'wrong' } });
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), dead);
  expect(await redis.client.exists(feedKey, watchKey)).toBe(0);
});

test('an event has a row when it is stored, with what becomes of it at once', async () => {
  const rows = await rowsOf(async () => {
    await accept();
    await accept({ destinations: [], filteredRoutes: ['rte_f'] });
    await accept({ destinations: [] });
    await accept({ destinations: [], invalidRoutes: { rte_v: 'wrong' } });
  });
  const events = rows.filter((row) => row?.kind === 'event');
  expect(events.map((row) => row?.status)).toEqual(['pending', 'filtered', 'no_routes', 'failed']);
  expect(events[0]).toMatchObject({ org: 'org_a', source: 'src_a' });
  expect(rows.find((row) => row?.kind === 'message')).toMatchObject({
    status: 'schema_failed',
    route: 'rte_v',
    destination: null,
    attempts: null,
  });
});

test('an event that is sent again has no second row', async () => {
  const event = newEvent();
  expect(await rowsOf(async () => [await acceptor.accept(event), await acceptor.accept(event)])).toHaveLength(1);
});

test('each end of an attempt has a row with the ids of its message, the attempt and the answer', async () => {
  const event = await accept({ maxAttempts: 3 });
  const [first] = await takeFrom(queue, 'w1', 1, { circuit: { failureThreshold: 5, cooldownSeconds: 60, probeSuccessThreshold: 1 } });
  const ids = {
    org: 'org_a',
    eventId: event.id,
    messageId: event.targets[0]?.messageId,
    source: 'src_a',
    route: 'rte_a',
    destination: 'dst_a',
  };
  expect(
    await rowsOf(() => settleAll(queue, 'w1', first === undefined ? [] : [first], { type: 'retry', attempt: failure, delayMs: 0 })),
  ).toEqual([
    {
      kind: 'message',
      status: 'retrying',
      ...ids,
      attempts: 1,
      responseStatus: 500,
      errorType: 'http_error',
      reason: null,
      atMs: expect.any(Number),
    },
  ]);
  await queue.promote();
  const jobs = await takeFrom(queue, 'w1', 1);
  expect(await rowsOf(() => settleAll(queue, 'w1', jobs, { type: 'delivered', attempt }))).toMatchObject([
    { status: 'delivered', ...ids, attempts: 2, responseStatus: 200, errorType: null },
  ]);
});

test('a dead letter has a row with its reason, and the circuit that it opens another', async () => {
  await accept();
  const jobs = await takeFrom(queue, 'w1', 1, { circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 } });
  expect(await rowsOf(() => settleAll(queue, 'w1', jobs, dead))).toMatchObject([
    { kind: 'circuit', status: 'open', org: 'org_a', route: 'rte_a', destination: 'dst_a' },
    { kind: 'message', status: 'dlq', reason: 'max_retries_exceeded', responseStatus: 500 },
  ]);
  const circuits = new Circuits({ redis: redis.client, prefix });
  expect(await rowsOf(() => circuits.reset('org_a', 'rte_a', ['dst_a']))).toMatchObject([{ kind: 'circuit', status: 'closed' }]);
});

test('a message that a filter or a transform ends has a row without an attempt', async () => {
  await accept();
  await accept();
  const [one, other] = await takeFrom(queue, 'w1', 2);
  if (one === undefined || other === undefined) throw new Error('there is no work');
  const unsent = (status: 'filtered' | 'transform_failed') => ({ type: 'unsent' as const, status, reason: 'why', tookMs: 1 });
  expect(await rowsOf(() => settleAll(queue, 'w1', [one], unsent('filtered')))).toMatchObject([
    { status: 'filtered', route: 'rte_a', attempts: 0 },
  ]);
  expect(await rowsOf(() => settleAll(queue, 'w1', [other], unsent('transform_failed')))).toMatchObject([{ status: 'transform_failed' }]);
});

test('rows of webhooks name the organization behind them, and alerts have none', async () => {
  const rows = await rowsOf(async () => {
    await accept({ org: webhookOrganization('org_a') });
    await accept({ org: '~org_a' });
  });
  expect(rows).toMatchObject([{ kind: 'event', org: '+org_a' }]);
});

test('the organization of a row is read without the rest', async () => {
  const { rows: from } = await reader.watch(null);
  await accept();
  const [row] = (await reader.between(0, from[0] ?? '', '+')) ?? [];
  expect(organizationOfRow(row?.text ?? '')).toBe('org_a');
});

test('a shard keeps about 10,000 rows', async () => {
  const { rows: from } = await reader.watch(null);
  const chain = redis.client.pipeline();
  for (let i = 0; i < 10_500; i++) chain.xadd(feedKey, '*', '', 'x');
  await chain.exec();
  await accept();
  expect(await redis.client.xlen(feedKey)).toBeLessThanOrEqual(10_100);
  expect(await reader.between(0, from[0] ?? '', '+')).toBeNull();
});

test('interest ends by itself, and the feed with it', async () => {
  await reader.watch(null);
  const [flag, feed] = [await redis.client.pttl(watchKey), await redis.client.pttl(feedKey)];
  expect(flag).toBeGreaterThan(interestMs / 2);
  expect(flag).toBeLessThanOrEqual(interestMs);
  expect(feed).toBeGreaterThan(flag);
});

test('who watches while somebody does is in the same epoch, and after a pause in another one', async () => {
  const first = await reader.watch(null);
  await accept();
  expect(await reader.watch(first)).toMatchObject({ epoch: first.epoch, hasAll: true });
  await redis.client.del(watchKey);
  const second = await reader.watch(first);
  expect(second.hasAll).toBe(false);
  expect(second.epoch).not.toBe(first.epoch);
  expect(await reader.between(0, second.rows[0] ?? '', '+')).toEqual([]);
});

test('a feed is watched and written while Redis is full', async () => {
  await reader.watch(null);
  await accept();
  const taken = await takeFrom(queue, 'w1', 1);
  await redis.client.config('SET', 'maxmemory', '1');
  try {
    const rows = await rowsOf(async () => {
      await settleAll(queue, 'w1', taken, dead);
      await expect(accept()).rejects.toThrow();
    });
    expect(rows).toMatchObject([{ kind: 'message', status: 'dlq' }]);
  } finally {
    await redis.client.config('SET', 'maxmemory', '0');
  }
});
