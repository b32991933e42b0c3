import { beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { BacklogReader } from './backlog-reader.ts';
import { BacklogScaler, type ScaleQuestion } from './backlog-scaler.ts';

let clock: FakeClock;
let scaler: BacklogScaler;
let current: number;
beforeEach(() => {
  clock = new FakeClock();
  scaler = new BacklogScaler(clock);
  current = 4;
});

/** The pool's replicas after this backlog has lasted; a check every 15 s. */
async function podsAfter(
  seconds: number,
  messages: number,
  more: Partial<ScaleQuestion> & { oldestAgeSeconds?: number } = {},
): Promise<number> {
  const { oldestAgeSeconds = 0, ...question } = more;
  for (let passed = 0; passed <= seconds; passed += 15) {
    const backlog = { messages, oldestAgeSeconds };
    current = scaler.decide('uid', { current, ready: current, min: 1, max: 50, targetBacklogPerPod: 100, backlog, ...question });
    await clock.advance(15_000);
  }
  return current;
}

describe('more pods', () => {
  test('more pods come at once, so many that each has its target', async () => {
    expect(await podsAfter(0, 700)).toBe(7);
  });

  test('more pods at most double at a time, and at most as many as may be', async () => {
    expect(await podsAfter(0, 100_000)).toBe(8);
    expect(await podsAfter(0, 100_000)).toBe(16);
    expect(await podsAfter(60, 100_000)).toBe(50);
  });

  test('more pods do not come for a tenth above the target', async () => {
    expect(await podsAfter(60, 440)).toBe(4);
    expect(await podsAfter(0, 441)).toBe(5);
  });

  test('more pods come one by one while messages get old although all pods work', async () => {
    expect(await podsAfter(0, 300, { oldestAgeSeconds: 45 })).toBe(5);
    expect(await podsAfter(30, 300, { oldestAgeSeconds: 45 })).toBe(5);
    expect(await podsAfter(0, 300, { oldestAgeSeconds: 45 })).toBe(6);
  });

  test('more pods do not come for old messages while pods are starting', async () => {
    expect(await podsAfter(120, 300, { oldestAgeSeconds: 45, ready: 3 })).toBe(4);
  });
});

describe('fewer pods', () => {
  test('fewer pods come only after five minutes in which no more were needed', async () => {
    await podsAfter(0, 400);
    expect(await podsAfter(270, 100)).toBe(4);
    expect(await podsAfter(60, 100)).toBe(2);
  });

  test('fewer pods are at most half of them at once, a minute apart', async () => {
    current = 40;
    expect(await podsAfter(300, 0)).toBe(20);
    expect(await podsAfter(45, 0)).toBe(10);
    expect(await podsAfter(30, 0)).toBe(10);
  });

  test('fewer pods never fall below the least', async () => {
    expect(await podsAfter(1200, 0, { min: 3 })).toBe(3);
    expect(await podsAfter(1200, 0, { min: 0 })).toBe(0);
  });

  test('fewer pods do not come while a peak comes back again and again', async () => {
    for (let i = 0; i < 6; i++) {
      await podsAfter(0, 400);
      expect(await podsAfter(120, 0)).toBe(4);
    }
  });
});

test('only the bounds change the size of a pool whose backlog is unknown', async () => {
  expect(await podsAfter(600, 0, { backlog: null })).toBe(4);
  expect(await podsAfter(0, 0, { backlog: null, min: 6 })).toBe(6);
  expect(await podsAfter(0, 0, { backlog: null, max: 5 })).toBe(5);
});

test.each(['a run of a cron job that waits', 'an archive that is due'])('%s brings the first pod of a pool that has none', async (what) => {
  let waiting = 0;
  const isArchive = what.includes('archive');
  const reader = new BacklogReader({
    queuesOf: () => [],
    cronRunsOf: () => ({ organizationsWaiting: async () => (isArchive ? 0 : waiting) }),
    archivesOf: () => ({ organizationsWaiting: async () => (isArchive ? waiting : 0) }),
    clock,
  });
  const pods = async () =>
    scaler.decide('uid', { current: 0, ready: 0, min: 0, max: 5, targetBacklogPerPod: 1000, backlog: await reader.read('eu') });
  expect(await pods()).toBe(0);
  await clock.advance(15_000);
  waiting = 1;
  expect(await pods()).toBe(1);
});
