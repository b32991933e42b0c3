import { beforeEach, describe, expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll, settleEverything, takeFrom } from '../../../test/support/queue-worker.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { checkShards } from '../check/shard-check.ts';
import { OrganizationPools } from '../pools/organization-pools.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { Outcome } from '../queue/delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { shardBase } from '../shard/shard-keys.ts';
import { ArchiveFailures } from './archive-failures.ts';
import { DueArchives } from './due-archives.ts';
import { type ArchiveBatch, MessageArchive } from './message-archive.ts';

const prefix = 'test:';
const base = shardBase(prefix, 0);
const org = 'org_a';
const place = { layout: 'jsonl', destinationId: 'dst_w' };
/** Everything is due. */
const due = { finishedMs: -1000, deadLettersMs: -1000 };
const hourMs = 3_600_000;
const forAWhile = { finishedMs: hourMs, deadLettersMs: hourMs };

const suite = messageQueueSuite(prefix);
let archive: MessageArchive;

beforeEach(async () => {
  archive = archiveOf({});
  await archive.set(org, place.destinationId);
});

function archiveOf(limits: Partial<{ records: number; bytes: number; ageMs: number }>, pool?: string): MessageArchive {
  return new MessageArchive({
    redis: suite.redis.client,
    prefix,
    ...(pool && { pool }),
    limits: { records: 1000, bytes: 1_000_000, ageMs: 0, ...limits },
  });
}

async function finish(count = 1, { owner = org, outcome = delivered as Outcome, payload = '{"a":1}' } = {}): Promise<string[]> {
  const events = Array.from({ length: count }, () => ({ ...newEvent({ payload: Buffer.from(payload) }), org: owner }));
  for (const event of events) await suite.acceptor.accept(event);
  await settleEverything(suite.queue, 'w1', outcome);
  return events.map(({ targets }) => targets[0]?.messageId ?? '');
}

async function taken(from = archive): Promise<ArchiveBatch | null> {
  const found = await from.take([]);
  return found === null ? null : await from.batch(found.org, 'w1', place);
}

async function idsOf(batch: ArchiveBatch | null): Promise<string[]> {
  const ids: string[] = [];
  if (batch !== null) for await (const { view } of archive.messages(org, batch)) ids.push(view.id);
  return ids;
}

async function leaseEnds(): Promise<void> {
  await suite.redis.client.hdel(`${base}ar:${org}`, hashFields.archive.leaseEndMs);
  await suite.redis.client.zadd(`${base}az`, 'XX', 0, org);
}

test('an archive is written by workers of the pool of its organization, and that of another pool holds nobody up', async () => {
  const pools = new OrganizationPools({ redis: suite.redis.client, prefix, shards: 1 });
  const there = archiveOf({}, 'x');
  const others = Array.from({ length: 150 }, (_, k) => `org_x${k}`);
  for (const each of others) {
    await pools.assign(each, 'x');
    await archive.set(each, place.destinationId);
    await suite.redis.client.zadd(`${base}az`, 0, each);
  }
  await finish();
  await archive.gather();
  expect((await archive.take([]))?.org).toBe(org);
  expect(await archive.take([])).toBeNull();
  await leaseEnds();
  await pools.assign(org, 'x');
  expect(await archive.take([])).toBeNull();
  const given: string[] = [];
  for (let found = await there.take([]); found !== null; found = await there.take([])) given.push(found.org);
  expect(given.sort()).toEqual([org, ...others].sort());
});

/** Archives of a pool, all of them due. */
async function makeDue(count: number, pool: string): Promise<string[]> {
  const names = Array.from({ length: count }, (_, k) => `org_${pool}${k}`);
  const pipeline = suite.redis.client.pipeline();
  for (const each of names) {
    pipeline
      .hset(`${base}o:${each}`, hashFields.organization.pool, `@${pool}`)
      .hset(`${base}arc`, each, place.destinationId)
      .zadd(`${base}az`, 0, each);
  }
  await pipeline.exec();
  return names;
}

test('a due archive is found in the end, however many of another pool are due, and no call reads all of them', async () => {
  await makeDue(700, 'x');
  await archive.set('org_b', place.destinationId);
  await suite.redis.client.zadd(`${base}az`, 1, 'org_b');
  expect(await archive.take([])).toBeNull();
  // Where the next call does not begin.
  await suite.redis.client.zadd(`${base}az`, 0, org);
  expect(await suite.redis.client.zrank(`${base}az`, org)).toBe(0);
  const found: string[] = [];
  for (let calls = 0; calls < 12; calls++) found.push((await archive.take([]))?.org ?? '');
  expect(found.filter((each) => each !== '')).toEqual(['org_b', org]);
});

test('an archive is counted for its pool while it is due and nobody writes it', async () => {
  const waiting = (pool?: string) => new DueArchives({ redis: suite.redis.client, prefix, ...(pool && { pool }) }).organizationsWaiting();
  await makeDue(700, 'x');
  const patient = archiveOf({ ageMs: hourMs });
  await finish();
  await patient.gather();
  expect([await waiting(), await waiting('x'), await waiting('y')]).toEqual([0, 700, 0]);
  await leaseEnds();
  expect(await waiting()).toBe(1);
  await archive.take([]);
  expect([await waiting(), await waiting('x')]).toEqual([0, 700]);
});

describe('a batch', () => {
  test('a batch stays the same until it is written, for every worker and whatever ends meanwhile', async () => {
    const first = await finish(3);
    await archive.gather();
    const batch = await taken();
    expect(await idsOf(batch)).toEqual(first);
    expect(await archive.take([])).toBeNull();
    const later = await finish(2);
    await archive.gather();
    await leaseEnds();
    expect(await taken()).toEqual(batch);
    expect(await idsOf(batch)).toEqual(first);
    expect(await archive.done(org, batch?.id ?? '', 3)).toBe(true);
    expect(await archive.done(org, batch?.id ?? '', 3)).toBe(false);
    const next = await taken();
    expect(next?.id).not.toBe(batch?.id);
    expect(await idsOf(next)).toEqual(later);
  });

  test('a batch has what its limits allow', async () => {
    const ids = await finish(3, { payload: JSON.stringify('x'.repeat(5000)) });
    await archive.gather();
    expect(await idsOf(await taken(archiveOf({ bytes: 14_000 })))).toEqual(ids.slice(0, 2));
  });

  test('a batch has at least one message, also one that is larger than its limit', async () => {
    const ids = await finish(2, { payload: JSON.stringify('x'.repeat(5000)) });
    await archive.gather();
    expect(await idsOf(await taken(archiveOf({ bytes: 100 })))).toEqual(ids.slice(0, 1));
  });

  test('a batch waits until it is complete or old enough', async () => {
    const patient = archiveOf({ records: 3, ageMs: hourMs });
    await finish(2);
    await patient.gather();
    expect(await patient.take([])).toBeNull();
    await finish(1);
    await patient.gather();
    expect(await patient.take([])).toEqual({ org, destinationId: 'dst_w' });
  });

  test('a batch keeps its layout at its destination, and takes that of another one when the archive moves', async () => {
    await finish(1);
    await archive.gather();
    await archive.take([]);
    const first = await archive.batch(org, 'w1', place);
    expect(await archive.batch(org, 'w2', { ...place, layout: 'json' })).toEqual(first);
    await archive.set(org, 'dst_other');
    expect(await archive.batch(org, 'w2', { layout: 'json', destinationId: 'dst_other' })).toEqual({ ...first, layout: 'json' });
  });

  test('a batch reports everything of a message: its end, its attempts and its event', async () => {
    const failing: Outcome = { type: 'retry', attempt: failure, delayMs: 0 };
    const event = newEvent();
    await suite.acceptor.accept(event);
    await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 1), failing);
    await suite.queue.promote();
    await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 1), delivered);
    await archive.gather();
    const batch = await taken();
    const found = [];
    if (batch !== null) for await (const message of archive.messages(org, batch)) found.push(message);
    expect(found).toMatchObject([
      {
        view: { id: event.targets[0]?.messageId, eventId: event.id, status: 'delivered', attempts: 2 },
        attempts: [
          { attemptNumber: 1, responseStatus: 500, errorMessage: 'status 500' },
          { attemptNumber: 2, responseStatus: 200, responseBody: 'ok' },
        ],
        event: { payload: Buffer.from('{"a":1}'), sourceSlug: 'shop' },
      },
    ]);
  });
});

describe('pruning', () => {
  test('pruning leaves what is not written, and takes it when it is', async () => {
    const [id = ''] = await finish(1);
    await archive.gather();
    expect(await suite.queue.prune(due)).toMatchObject({ removed: 0, lost: 0 });
    const batch = await taken();
    expect(await suite.queue.prune(due)).toMatchObject({ removed: 0, lost: 0 });
    expect(await suite.reader.delivery(org, id)).not.toBeNull();
    await archive.done(org, batch?.id ?? '', 1);
    expect(await suite.queue.prune(forAWhile)).toMatchObject({ removed: 0, lost: 0 });
    expect(await suite.queue.prune(due)).toMatchObject({ removed: 1, lost: 0 });
    expect(await suite.reader.delivery(org, id)).toBeNull();
  });

  test('pruning is not held up for others by an archive that is not written', async () => {
    await finish(3);
    const [other = ''] = await finish(1, { owner: 'org_b' });
    await finish(3);
    await archive.gather();
    expect(await suite.queue.prune(due)).toMatchObject({ removed: 1, lost: 0 });
    expect(await suite.reader.delivery('org_b', other)).toBeNull();
  });

  test('pruning lets history go that an archive cannot take while Redis is getting full, and says how much', async () => {
    await finish(2);
    await archive.gather();
    await archive.take([]);
    expect(await suite.queue.prune({ ...due, unwritten: 'goes where the archive fails' })).toMatchObject({ removed: 0, lost: 0 });
    await archive.failed(org, 'the store answered 503', { firstMs: 1, maxMs: 1 });
    expect(await suite.queue.prune({ ...due, unwritten: 'goes where the archive fails' })).toMatchObject({ removed: 2, lost: 2 });
    const troubles = await new ArchiveFailures({ redis: suite.redis.client, prefix }).all();
    expect(troubles.get(org)).toMatchObject({ failing: { message: 'the store answered 503' }, lost: { messages: 2 } });
  });

  test('pruning lets what is not written go when memory is scarce, dead letters too', async () => {
    await finish(1);
    await finish(1, { outcome: dead });
    await archive.gather();
    expect(await suite.queue.prune({ ...due, unwritten: 'goes' })).toMatchObject({ removed: 2, lost: 2 });
    expect(await suite.redis.client.keys(`${base}m:*`)).toEqual([]);
  });

  test('pruning waits 72 hours for an archive that fails', async () => {
    await finish(2);
    await archive.gather();
    const dayMs = 24 * hourMs;
    expect(await suite.queue.prune({ finishedMs: -2 * dayMs, deadLettersMs: dayMs })).toMatchObject({ removed: 0, lost: 0 });
    // Not due for long enough: the clock of Redis cannot be moved, so the retention is.
    expect(await suite.queue.prune({ finishedMs: -4 * dayMs, deadLettersMs: dayMs })).toMatchObject({ removed: 2, lost: 2 });
  });

  test('archives dead letters whose time is over, so that they are written as what they have become', async () => {
    const [id = ''] = await finish(1, { outcome: dead });
    await archive.gather();
    expect(await taken()).toBeNull();
    expect(await suite.queue.prune(due)).toMatchObject({ removed: 0, lost: 0 });
    await archive.gather();
    const batch = await taken();
    expect(await idsOf(batch)).toEqual([id]);
    expect(await suite.reader.delivery(org, id)).toMatchObject({ status: 'failed', deadLetterReason: 'max_retries_exceeded' });
    await archive.done(org, batch?.id ?? '', 1);
    expect(await suite.queue.prune(due)).toMatchObject({ removed: 1, lost: 0 });
  });

  test('pruning removes the older history first, written or not kept in an archive', async () => {
    const first = await finish(1);
    const others = await finish(1, { owner: 'org_b' });
    await archive.gather();
    await archive.done(org, (await taken())?.id ?? '', 1);
    await suite.redis.client.hset(`${base}ctl`, hashFields.control.newestIndexMs, Date.now() + 60_000);
    const last = await finish(1, { owner: 'org_b' });
    expect(await suite.queue.prune(due)).toMatchObject({ removed: 2 });
    expect(
      await Promise.all([...first, ...others, ...last].map(async (id) => (await suite.reader.delivery('org_b', id)) !== null)),
    ).toEqual([false, false, true]);
  });
});

describe('an archive', () => {
  test('an archive has the messages of webhooks, and neither alerts nor those of other organizations', async () => {
    await finish(1, { owner: `~${org}` });
    await finish(1, { owner: 'org_b' });
    const event = newWebhookEvent(org, [{ id: 'ep_a', applicationId: 'app_a' }]);
    await suite.acceptor.accept(event);
    await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 1), delivered);
    await archive.gather();
    expect(await idsOf(await taken())).toEqual([event.targets[0]?.messageId]);
    expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
  });

  test('an archive that begins has what was finished before it, and one that begins again nothing twice', async () => {
    await archive.set('org_b', place.destinationId);
    await archive.end(org);
    const [before = '', due = ''] = await finish(2);
    await archive.gather();
    expect(await archive.take([])).toBeNull();
    await archive.set(org, place.destinationId);
    await archive.gather();
    const batch = await taken();
    expect(await idsOf(batch)).toEqual([before, due]);
    await archive.done(org, batch?.id ?? '', 2);
    await archive.end(org);
    const [between = ''] = await finish(1);
    await archive.gather();
    await archive.set(org, place.destinationId);
    await archive.gather();
    expect(await idsOf(await taken())).toEqual([between]);
  });

  test('an archive that ends leaves nothing behind once the retention is over', async () => {
    await finish(2);
    await archive.gather();
    await taken();
    await archive.end(org);
    await finish(1);
    expect(await suite.queue.prune(due)).toMatchObject({ removed: 3, lost: 0 });
    const left = await suite.redis.client.keys(`${base}*`);
    expect(left.filter((key) => /:(fin|ar|arc|ah|az|arw|m|e)(:|$)/.test(key))).toEqual([]);
  });

  test('an archive of an organization that is purged leaves nothing', async () => {
    await finish(2);
    await archive.gather();
    await taken();
    await archive.failed(org, 'no', { firstMs: 1, maxMs: 1 });
    await new RedisMessagePurger({ redis: suite.redis.client, prefix }).purgeOrganization(org, new AbortController().signal);
    const left = await suite.redis.client.keys(`${base}*`);
    expect(left.filter((key) => /:(fin|ar|arc|ah|az|arw|m|e)(:|$)/.test(key))).toEqual([]);
  });

  test('an archive that fails is tried again after a growing while, up to a bound', async () => {
    await finish(1);
    await archive.gather();
    await archive.take([]);
    expect(await archive.failed(org, 'no', { firstMs: 60_000, maxMs: hourMs })).toBe(1);
    expect(await archive.take([])).toBeNull();
    for (let more = 0; more < 40; more++) await archive.failed(org, 'no', { firstMs: 60_000, maxMs: hourMs });
    const [, at] = await suite.redis.client.zrange(`${base}az`, '0', '0', 'WITHSCORES');
    expect(Number(at) - Date.now()).toBeLessThanOrEqual(hourMs + 1000);
    expect(Number(at) - Date.now()).toBeGreaterThan(hourMs / 2);
  });
});

test('pruning costs one more read where there are no archives, and nothing else', async () => {
  await archive.end(org);
  await finish(5);
  await suite.redis.client.config('RESETSTAT');
  expect(await suite.queue.prune(forAWhile)).toMatchObject({ removed: 0 });
  const stats = await suite.redis.client.info('commandstats');
  const calls = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, count]) => `${name} ${count}`);
  expect(calls.filter((each) => !/^(config|info|evalsha|eval|time)/.test(each)).sort()).toEqual(['exists 1', 'xrange 2']);
});
