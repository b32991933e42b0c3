import { expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { supervise } from './supervisor.ts';

function crashing(clock: FakeClock, stop: AbortController, runMs: number) {
  const startsMs: number[] = [];
  const done = supervise(
    {
      name: 'crashing',
      run: async (signal) => {
        startsMs.push(clock.now());
        await clock.sleep(runMs, signal);
        throw new Error('crash');
      },
    },
    { clock, logger: silentLogger, signal: stop.signal },
  );
  return { startsMs, done };
}

test('a component that crashes is started again, each time after a longer wait up to half a minute', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const { startsMs, done } = crashing(clock, stop, 0);
  await clock.advance(600_000);
  const waits = startsMs.slice(1).map((atMs, i) => atMs - (startsMs[i] ?? 0));
  expect(waits[0]).toBeLessThanOrEqual(300);
  expect(Math.max(...waits)).toBeLessThanOrEqual(36_000);
  expect(Math.max(...waits)).toBeGreaterThanOrEqual(24_000);
  expect(startsMs.length).toBeGreaterThan(15);
  stop.abort();
  await done;
});

test('a component that ran for a while starts again soon', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const { startsMs, done } = crashing(clock, stop, 61_000);
  await clock.advance(20 * 62_000);
  const waits = startsMs.slice(1).map((atMs, i) => atMs - (startsMs[i] ?? 0) - 61_000);
  expect(Math.max(...waits)).toBeLessThanOrEqual(300);
  stop.abort();
  await done;
});

test('stopping ends a component and starts it no more', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const { startsMs, done } = crashing(clock, stop, 3_600_000);
  await clock.advance(1000);
  stop.abort();
  await done;
  expect(startsMs).toHaveLength(1);
});
