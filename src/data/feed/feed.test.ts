import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { attempt, dead, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { Circuits } from '../queue/circuits.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { FeedReader, interestMs } from './feed-reader.ts';
import { type FeedRow, organizationOfRow, parseFeedRow } from './feed-row.ts';

const prefix = 'test:';
const feedKey = `${prefix}{s0}:feed`;
const oldKey = `${feedKey}-old`;
const watchKey = `${prefix}{s0}:watch`;
let redis: RedisServer;
let queue: RedisDeliveryQueue;
let acceptor: RedisMessageAcceptor;
let reader: FeedReader;

beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  const blocking = redis.client.duplicate({ commandTimeout: undefined });
  reader = new FeedReader({ redis: redis.client, blocking, prefix, shards: () => 1, clock: systemClock });
});
afterAll(async () => {
  reader.close();
  await redis.stop();
});
beforeEach(async () => {
  await redis.client.flushall();
  await queue.refreshShard('w1', 1000);
});

/** The rows that `act` has written. */
async function rowsOf(act: () => Promise<unknown>): Promise<(FeedRow | null)[]> {
  const { rows: from } = await reader.watch();
  await act();
  const { rows: to } = await reader.watch();
  const found = await reader.between(0, from[0] ?? '', to[0] ?? '', '');
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

test.each([false, true])('the feed gets commands only while a client watches, as MONITOR shows (%s)', async (isWatched) => {
  if (isWatched) await reader.watch();
  const monitor = await redis.client.monitor();
  const ofFeed: string[] = [];
  let hasEnded = false;
  monitor.on('monitor', (_, [command = '', key = '']: string[]) => {
    if (command.toLowerCase() === 'echo') hasEnded = true;
    else if (key === watchKey || key.startsWith(feedKey)) ofFeed.push(`${command.toLowerCase()} ${key}`);
  });
  try {
    await accept();
    const circuit = { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 };
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1, { circuit }), dead);
    await redis.client.echo('the end');
    await eventually(() => expect(hasEnded).toBe(true));
  } finally {
    monitor.disconnect();
  }
  expect(ofFeed).toContain(`exists ${watchKey}`);
  const others = [...new Set(ofFeed)].filter((each) => each !== `exists ${watchKey}`);
  expect(others.filter((each) => each === `xadd ${feedKey}`)).toHaveLength(isWatched ? 1 : 0);
  if (!isWatched) expect(others).toEqual([]);
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
  const { rows: from } = await reader.watch();
  await accept();
  const [row] = (await reader.between(0, from[0] ?? '', '+', 'org_a')) ?? [];
  expect(organizationOfRow(row?.text ?? '')).toBe('org_a');
});

/** Writes rows of an organization, as its events do, until so many of the oldest have left the feed. */
async function crowd(org: string, leaving: number): Promise<void> {
  const [before, chain] = [await redis.client.xlen(feedKey), redis.client.pipeline()];
  for (let i = before; i < 10_000 + leaving; i++) chain.xadd(feedKey, '*', '', `e p ${org} x y`);
  await chain.exec();
  while ((await redis.client.xlen(feedKey)) >= 10_100) await accept({ org });
}
const sizes = (): Promise<number[]> => Promise.all([feedKey, oldKey].map((key) => redis.client.xlen(key)));

test('a shard keeps about 10,000 rows, and those of an organization with few while another one writes many', async () => {
  const { rows: from } = await reader.watch();
  const [first = ''] = from;
  const few = await accept({ org: 'org_b' });
  await crowd('org_a', 3000);
  await accept({ org: webhookOrganization('org_b') });
  const [size = 0, old] = await sizes();
  expect(size).toBeLessThan(10_100);
  expect(old).toBe(501);
  expect(await reader.between(0, first, '+', 'org_a')).toBeNull();
  const found: (FeedRow | null)[] = [];
  for (let after = first, count = -1; count !== 0; ) {
    const rows = (await reader.between(0, after, '+', 'org_b')) ?? [];
    found.push(...rows.filter(({ text }) => text.includes('org_b')).map(({ shard, id, text }) => parseFeedRow(shard, id, text)));
    after = rows.at(-1)?.id ?? after;
    count = rows.length;
  }
  expect(found).toMatchObject([{ org: 'org_b', eventId: few.id }, { org: '+org_b' }]);
});

test('a reader that is behind is notified which organizations have lost rows, once', async () => {
  const { rows } = await reader.watch();
  await accept({ org: 'org_b' });
  await crowd('org_a', 3000);
  const told: (readonly string[])[] = [];
  let seen = 0;
  for (let at = rows; seen < 10_500; ) {
    const page = await reader.after(at, new AbortController().signal);
    expect(page.losers).not.toBeNull();
    if (page.losers?.length !== 0) told.push(page.losers ?? []);
    if (seen === 0) expect(organizationOfRow(page.rows[0]?.text ?? '')).toBe('org_b');
    seen += page.rows.length;
    at = [page.rows.at(-1)?.id ?? ''];
  }
  expect(told).toEqual([['org_a']]);
});

test('rows that have left the feed are bounded, and an organization has its share again after a while', async () => {
  const { rows: from } = await reader.watch();
  for (let i = 0; i < 60; i++) await crowd(`org_${i}`, 400);
  const [, old = 0] = await sizes();
  expect(old).toBeGreaterThan(9000);
  expect(old).toBeLessThanOrEqual(10_200);
  expect(await reader.between(0, from[0] ?? '', '+', 'org_59')).toBeNull();
  const [oldest] = await redis.client.xrange(oldKey, '-', '+', 'COUNT', 1);
  expect(await reader.between(0, oldest?.[0] ?? '', '+', 'org_59')).toHaveLength(200);
}, 60_000);

test('no row counts as kept when a worker of the release before has trimmed the feed', async () => {
  const { rows: from } = await reader.watch();
  await accept({ org: 'org_b' });
  await crowd('org_a', 3000);
  expect(await reader.between(0, from[0] ?? '', '+', 'org_b')).not.toBeNull();
  await redis.client.xtrim(feedKey, 'MAXLEN', '=', 9000);
  expect(await reader.between(0, from[0] ?? '', '+', 'org_b')).toBeNull();
  await crowd('org_a', 1000);
  expect(await reader.between(0, from[0] ?? '', '+', 'org_b')).toBeNull();
});

test('interest ends by itself, and the feed with it', async () => {
  await reader.watch();
  const [flag, feed] = [await redis.client.pttl(watchKey), await redis.client.pttl(feedKey)];
  expect(flag).toBeGreaterThan(interestMs / 2);
  expect(flag).toBeLessThanOrEqual(interestMs);
  expect(feed).toBeGreaterThan(flag);
});

test('a client that joins another one is in the same epoch, and after a pause in another one', async () => {
  const first = await reader.watch();
  await accept();
  expect((await reader.watch()).epoch).toBe(first.epoch);
  await redis.client.del(watchKey);
  const second = await reader.watch();
  expect(second.epoch).not.toBe(first.epoch);
  expect(await reader.between(0, second.rows[0] ?? '', '+', 'org_a')).toEqual([]);
});

test('a feed is watched and written while Redis is full', async () => {
  await reader.watch();
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
