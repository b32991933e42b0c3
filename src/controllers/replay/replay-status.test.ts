import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { replayIdentity } from '../../compile/replay.ts';
import { RedisReplayRuns } from '../../data/replays/redis-replay-runs.ts';
import { newReplayState, type ReplayState } from '../../data/replays/replay-state.ts';
import type { SpecInputOf } from '../../resources/kinds.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { createStoreMetrics } from '../../store/metrics.ts';
import { controllerCaches } from '../controller-caches.ts';
import type { ObjectEvent } from '../event-recorder.ts';
import { idOf } from '../held-ids.ts';
import { runReplayStatus } from './replay-status.ts';

const prefix = 'test:';
const startMs = Date.UTC(2026, 0, 31, 12);
const key = { namespace: 'acme', name: 'again' };
let redis: RedisServer;
let runs: RedisReplayRuns;
let store: MemoryStore;
let clock: FakeClock;
let org: string;
let events: ObjectEvent[];
let reads: string[];
let version: number;
let stopping: AbortController;
let running: Promise<unknown>;

beforeAll(async () => {
  redis = await startRedis();
  runs = new RedisReplayRuns({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  clock = new FakeClock(startMs);
  store = new MemoryStore(clock);
  events = [];
  reads = [];
  version = 0;
  await store.apply({ kind: 'Namespace', metadata: { name: 'acme' } }, { manager: 'test' });
  await store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, { manager: 'test' });
  org = idOf('Organization', await store.get('Organization', { name: 'acme' }));
  stopping = new AbortController();
  const shared = { store, logger: silentLogger, clock };
  const caches = controllerCaches({ servedInstallation: null, ...shared, metrics: createStoreMetrics(new Registry()) });
  const following = caches.run(stopping.signal);
  await caches.synced;
  const replayRuns = {
    find: (owner: string, identity: string) => {
      reads.push(identity);
      return runs.find(owner, identity);
    },
  };
  const recorder = { record: (event: ObjectEvent) => void events.push(event) };
  running = Promise.all([following, runReplayStatus({ ...shared, caches, replayRuns, recorder }, stopping.signal)]);
});
afterEach(async () => {
  stopping.abort();
  await running;
});

const apply = (spec: Partial<SpecInputOf<'Replay'>> = {}) =>
  store.apply(
    { kind: 'Replay', metadata: key, spec: { what: 'deliveries', ratePerSecond: 10, ...spec } },
    { manager: 'test', force: true },
  );
const replay = () => store.get('Replay', key);

/** A worker records this of the run of the object, which it began for that object or, if given, for another one. */
async function note(changes: Partial<ReplayState>): Promise<void> {
  const object = await replay();
  const began = newReplayState(
    { uid: object.metadata.uid, id: idOf('Replay', object), slug: object.metadata.name, what: 'deliveries', isDryRun: false },
    startMs,
  );
  const state = { ...began, ...changes };
  expect(await runs.save(org, replayIdentity(object, { id: org }), { version, state })).toBe('saved');
  version++;
}
const plan = { candidates: 100, isEstimate: false, bytes: 700, targets: 2, oldestMs: startMs - 1000 };
const ended = {
  plan,
  queued: 98,
  delivered: 90,
  failed: 8,
  skipped: { payload_not_found: 2 },
  queuedAtMs: startMs,
  endedAtMs: startMs + 60_000,
};

/** Time passes until the status shows it. */
const shows = (expected: object) =>
  eventually(async () => {
    await clock.advance(1000);
    expect((await replay()).status).toMatchObject(expected);
  });
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1000) await clock.advance(1000);
}
const condition = (type: string, status: string, reason: string, message: unknown = expect.any(String)) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: expect.any(String),
  observedGeneration: expect.any(Number),
});
const conditions = async () => (await replay()).status?.conditions?.map(({ type, status, reason }) => `${type}=${status} ${reason}`).sort();

describe('the status of a replay', () => {
  test('the status reports the plan, the counts and the times of the run while it continues', async () => {
    await apply();
    await note({ plan: { ...plan, candidates: 40 } });
    await shows({ phase: 'Planning', plan: { candidates: 40 }, conditions: [condition('Queued', 'False', 'Planning')] });
    await note({ phase: 'Running', plan, queued: 30, skipped: { target_not_found: 1, payload_not_found: 9 }, delivered: 20, failed: 1 });
    await shows({
      phase: 'Running',
      plan: { candidates: 100, isEstimate: false, bytes: 700, targets: 2, oldest: '2026-01-31T11:59:59Z', estimatedSeconds: 10 },
      queued: 30,
      skipped: 10,
      skippedBy: [
        { reason: 'payload_not_found', count: 9 },
        { reason: 'target_not_found', count: 1 },
      ],
      delivered: 20,
      failed: 1,
      endedOtherwise: 0,
      startTime: '2026-01-31T12:00:00Z',
      conditions: [condition('Queued', 'False', 'Queueing')],
    });
    const { status } = await replay();
    const leftMs = Date.parse(status?.estimatedCompletionTime ?? '') - clock.now();
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(6000);
    expect(status?.completionTime).toBeUndefined();
    await note({ phase: 'Running', ...ended, endedAtMs: null });
    await shows({ conditions: [condition('Queued', 'True', 'AllQueued')] });
    expect((await replay()).status?.estimatedCompletionTime).toBeUndefined();
  });

  test('what changes all the time is written once in five seconds, and what does not change is not written', async () => {
    await apply();
    const versions = new Set<string>();
    for (let queued = 0; queued < 60; queued++) {
      await note({ phase: 'Running', plan, queued });
      await pass(1000);
      versions.add((await replay()).metadata.resourceVersion);
    }
    expect(versions.size).toBeGreaterThanOrEqual(8);
    expect(versions.size).toBeLessThanOrEqual(13);
    await shows({ queued: 59 });
    const { metadata } = await replay();
    await pass(60_000);
    expect((await replay()).metadata.resourceVersion).toBe(metadata.resourceVersion);
  });

  test('a replay that waits has the reason in its status until it continues', async () => {
    await apply();
    await note({ phase: 'Running', plan, waiting: { reason: 'CircuitOpen', message: 'The circuit is open.', sinceMs: startMs } });
    await shows({ conditions: expect.arrayContaining([condition('Waiting', 'True', 'CircuitOpen', 'The circuit is open.')]) });
    expect((await replay()).status?.estimatedCompletionTime).toBeUndefined();
    const since = (await replay()).status?.conditions?.find(({ type }) => type === 'Waiting')?.lastTransitionTime;
    await pass(2000);
    await note({ phase: 'Running', plan, queued: 1, waiting: { reason: 'TargetFull', message: 'It has 200.', sinceMs: startMs } });
    await shows({ queued: 1 });
    expect((await replay()).status?.conditions).toContainEqual({
      ...condition('Waiting', 'True', 'TargetFull'),
      lastTransitionTime: since,
    });
    await note({ phase: 'Running', plan, queued: 2 });
    await shows({ queued: 2 });
    expect(await conditions()).toEqual(['Queued=False Queueing']);
    expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual(['Warning CircuitOpen', 'Warning TargetFull']);
  });

  test('a suspended replay is Suspended before it begins and while it runs, and continues where it was', async () => {
    await apply({ suspend: true });
    await shows({ phase: 'Suspended' });
    await apply();
    await eventually(async () => {
      await pass(1000);
      expect((await replay()).status?.phase).toBeUndefined();
    });
    await note({ phase: 'Running', plan, queued: 5 });
    await shows({ phase: 'Running' });
    await apply({ suspend: true });
    await shows({ phase: 'Suspended', queued: 5, conditions: [condition('Queued', 'False', 'Suspended')] });
    await apply();
    await shows({ phase: 'Running', conditions: [condition('Queued', 'False', 'Queueing')] });
  });

  test.each<[string, Partial<SpecInputOf<'Replay'>>, Partial<ReplayState>, string[], string]>([
    [
      'has ended',
      {},
      { ...ended, phase: 'Succeeded' },
      ['Complete=True AllEnded', 'Queued=True AllQueued'],
      '98 messages queued, 90 delivered, 8 failed, 0 ended otherwise; 2 originals skipped',
    ],
    [
      'was only planned',
      { dryRun: true },
      { plan, phase: 'Succeeded', endedAtMs: startMs },
      ['Complete=True Planned', 'Queued=False DryRun'],
      '100 messages are to be replayed',
    ],
    [
      'has failed',
      {},
      { ...ended, phase: 'Failed', queuedAtMs: null, failure: { reason: 'TooManyFailures', message: '8 of 98 failed.' } },
      ['Failed=True TooManyFailures', 'Queued=False Ended'],
      '8 of 98 failed. 98 messages queued',
    ],
    [
      'was cancelled',
      { cancel: true },
      { ...ended, phase: 'Cancelled', queuedAtMs: null },
      ['Failed=True Cancelled', 'Queued=False Ended'],
      'the replay was cancelled; 98 messages queued',
    ],
  ])('a replay that %s says how, once', async (_, spec, state, expected, message) => {
    await apply(spec);
    await note(state);
    await shows({ phase: state.phase, completionTime: expect.any(String) });
    expect(await conditions()).toEqual(expected);
    expect(events.map((event) => event.message)).toEqual([expect.stringContaining(message)]);
    // Its run is not read any more.
    await pass(20_000);
    reads.length = 0;
    await pass(60_000);
    expect(reads).toEqual([]);
  });

  test('an object that is made again shows what ran before, and reports it', async () => {
    await apply();
    await note({ ...ended, phase: 'Succeeded', uid: 'another' });
    await shows({
      phase: 'Succeeded',
      queued: 98,
      startTime: '2026-01-31T12:00:00Z',
      conditions: expect.arrayContaining([
        condition(
          'Complete',
          'True',
          'AlreadyRan',
          expect.stringMatching(/ran from 2026-01-31T12:00:00Z to 2026-01-31T12:01:00Z; .*98 messages queued/),
        ),
      ]),
    });
    await note({ ...ended, phase: 'Cancelled', uid: 'another' });
    await apply({ suspend: true });
    await shows({ phase: 'Cancelled', conditions: expect.arrayContaining([condition('Failed', 'True', 'AlreadyRan')]) });
  });

  test('a status stays when Redis has lost what is known of the run', async () => {
    await apply();
    await note({ ...ended, phase: 'Succeeded' });
    await shows({ phase: 'Succeeded' });
    const { status } = await replay();
    await redis.client.flushall();
    await apply({ suspend: true });
    await pass(20_000);
    expect((await replay()).status).toEqual(status);
  });
});

describe('a finished replay', () => {
  const isGone = async () => !(await store.list('Replay')).items.some(({ metadata }) => metadata.name === key.name);
  const becomesGone = () =>
    eventually(async () => {
      await pass(1000);
      expect(await isGone()).toBe(true);
    });

  test('a finished replay is deleted when its time is over', async () => {
    await apply({ ttlSecondsAfterFinished: 3600 });
    await note({ ...ended, phase: 'Failed', failure: { reason: 'TooManyFailures', message: '' } });
    await shows({ phase: 'Failed' });
    clock.jump(startMs + 60_000 + 3_590_000 - clock.now());
    await pass(5000);
    expect(await isGone()).toBe(false);
    await becomesGone();
  });

  test('a finished replay without such a time stays, and so does one that has not ended', async () => {
    await apply();
    await note({ ...ended, phase: 'Succeeded' });
    await store.apply(
      { kind: 'Replay', metadata: { ...key, name: 'runs' }, spec: { what: 'messages', ttlSecondsAfterFinished: 0 } },
      { manager: 'test' },
    );
    await shows({ phase: 'Succeeded' });
    clock.jump(10 * 365 * 86_400_000);
    await pass(20_000);
    expect((await store.list('Replay')).items).toHaveLength(2);
  });

  test('an object that is made again lives as long as a finished one, so that a loop of Git and its deletion has that period', async () => {
    clock.jump(86_400_000);
    await apply({ ttlSecondsAfterFinished: 3600 });
    await note({ ...ended, phase: 'Succeeded', uid: 'another' });
    await shows({ phase: 'Succeeded' });
    await pass(60_000);
    expect(await isGone()).toBe(false);
    clock.jump(3_600_000);
    await becomesGone();
  });
});
