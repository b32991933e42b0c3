import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { dead } from '../../../test/support/queue-worker.ts';
import { carryOn, replayParts, replayRecord, startReplayWorld } from '../../../test/support/replays.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { shardOf } from '../../core/shard-of.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { FeedReader } from '../feed/feed-reader.ts';
import { parseFeedRow, type ReplayRow } from '../feed/feed-row.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import type { ReplaySteps } from './replay-steps.ts';

const prefix = 'test:';
const record = replayRecord();
const home = shardOf(record.id, 2);
const feedKey = shardKeys(prefix, home).feed;
let world: Awaited<ReturnType<typeof startReplayWorld>>;
let reader: FeedReader;
let clock: FakeClock;
let steps: ReplaySteps;

beforeAll(async () => {
  world = await startReplayWorld(prefix);
  const blocking = world.redis.client.duplicate({ commandTimeout: undefined });
  reader = new FeedReader({ redis: world.redis.client, blocking, prefix, shards: () => world.shards, clock: systemClock });
});
afterAll(async () => {
  reader.close();
  await world.redis.stop();
});
beforeEach(() => world.empty());

/** Starts a worker with a stopped clock, after the originals. */
async function begin(originals: readonly number[]): Promise<void> {
  await world.endedMessages(originals);
  clock = new FakeClock(Date.now());
  steps = worker();
  await reader.watch();
}

const worker = (): ReplaySteps => replayParts(world.redis.client, { prefix, shards: world.shards, clock }).steps;

/** The rows of replays, as `<phase> <candidates> <queued> <skipped> <delivered> <failed> <reason>`. */
async function rows(): Promise<string[]> {
  const entries = await world.redis.client.xrange(feedKey, '-', '+');
  const found = entries.map(([id, [, text = '']]) => parseFeedRow(home, id, text));
  return found
    .filter((row): row is ReplayRow => row?.kind === 'replay')
    .map((row) => {
      expect([row.org, row.replayId, row.endedOtherwise]).toEqual([record.org, record.id, 0]);
      return [row.status, row.candidates, row.queued, row.skipped, row.delivered, row.failed, row.reason ?? '-'].join(' ');
    });
}

async function toTheEnd(replay: ReplayRecord = record): Promise<void> {
  while ((await carryOn(steps, replay)) !== 'ended') await world.endAll();
}

test('each phase of a replay has a row with its counts, whatever happens within a second', async () => {
  await begin([0, 1, 0]);
  expect(await carryOn(steps, record, { most: 1 })).toBe('idle');
  expect(await carryOn(steps, { ...record, isSuspended: true })).toBe('idle');
  expect(await carryOn(steps, record)).toBe('idle');
  await world.endAll(dead);
  await toTheEnd();
  await steps.advance(record, { most: 1, monthlyMessages: null });
  expect(await rows()).toEqual([
    'Planning 0 0 0 0 0 -',
    'Running 3 0 0 0 0 -',
    'Suspended 3 3 0 0 0 -',
    'Running 3 3 0 0 0 -',
    'Succeeded 3 3 0 0 3 -',
  ]);
});

test('within a phase a row comes once a second, with what was reached by then', async () => {
  await begin([0, 0, 0, 0]);
  await carryOn(steps, record);
  expect((await rows()).at(-1)).toBe('Running 4 0 0 0 0 -');
  await clock.advance(999);
  await carryOn(steps, record);
  expect(await rows()).toHaveLength(2);
  await clock.advance(1);
  for (let i = 0; i < 3; i++) await carryOn(steps, record);
  expect((await rows()).slice(2)).toEqual(['Running 4 4 0 0 0 -']);
  await clock.advance(60_000);
  await carryOn(steps, record);
  expect(await rows()).toHaveLength(3);
});

test('a row has what the replay waits for, until it is suspended', async () => {
  await begin([0]);
  await world.configure(0, { revision: '2', paused: true });
  await carryOn(steps, record, { most: 0 });
  await clock.advance(1000);
  await steps.advance(record, { most: 1, monthlyMessages: null });
  await carryOn(steps, { ...record, isSuspended: true });
  expect((await rows()).slice(-2)).toEqual(['Running 1 0 0 0 0 TargetDisabled', 'Suspended 1 0 0 0 0 -']);
});

test.each<[string, string, Partial<ReplayRecord>]>([
  ['fails', 'Failed 0 0 0 0 0 InvalidFilter', { filter: { statuses: ['dlq'], where: 'payload.a ==' } }],
  ['is cancelled', 'Cancelled 0 0 0 0 0 -', { isCancelled: true }],
])('a replay that %s has a last row that reports it', async (_, last, changes) => {
  await begin([0]);
  await toTheEnd({ ...record, ...changes });
  expect((await rows()).at(-1)).toBe(last);
});

test('another worker reports once where it finds the replay, and nothing of one that has ended', async () => {
  await begin([0]);
  await carryOn(steps, record);
  const before = (await rows()).length;
  steps = worker();
  await carryOn(steps, record);
  expect((await rows()).slice(before)).toEqual(['Running 1 1 0 0 0 -']);
  await toTheEnd();
  const all = await rows();
  expect(await carryOn(worker(), record)).toBe('ended');
  expect(await rows()).toEqual(all);
});

test('nothing is written while nobody watches', async () => {
  await begin([0]);
  // The feed outlives the flag.
  await world.redis.client.del(`${prefix}{s${home}}:watch`);
  await toTheEnd();
  expect(await rows()).toEqual([]);
});

test('a row is written while Redis is full', async () => {
  await begin([0]);
  await carryOn(steps, record);
  const before = (await rows()).length;
  await world.redis.client.config('SET', 'maxmemory', '1');
  try {
    await carryOn(steps, { ...record, isSuspended: true });
  } finally {
    await world.redis.client.config('SET', 'maxmemory', '0');
  }
  expect((await rows()).slice(before)).toEqual(['Suspended 1 1 0 0 0 -']);
});

test('a feed that takes no row holds up no replay', async () => {
  await begin([0]);
  await world.redis.client.set(feedKey, 'no stream');
  await toTheEnd();
  expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', delivered: 1 });
});
