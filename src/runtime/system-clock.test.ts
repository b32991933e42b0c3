import { afterEach, expect, jest, test } from '@jest/globals';
import { systemClock } from './system-clock.ts';

afterEach(() => {
  jest.useRealTimers();
});

const thirtyDaysMs = 30 * 24 * 3_600_000;

test('a delay longer than setTimeout takes fires when it is over and not before', () => {
  jest.useFakeTimers();
  let fired = 0;
  systemClock.after(thirtyDaysMs, () => fired++);
  jest.advanceTimersByTime(thirtyDaysMs - 1);
  expect(fired).toBe(0);
  jest.advanceTimersByTime(1);
  expect(fired).toBe(1);
});

test('a cancelled long delay leaves no timer behind', () => {
  jest.useFakeTimers();
  const cancel = systemClock.after(thirtyDaysMs, () => {});
  jest.advanceTimersByTime(2 ** 31);
  cancel();
  expect(jest.getTimerCount()).toBe(0);
});

test('an aborted sleep resolves at once', async () => {
  const abort = new AbortController();
  const asleep = systemClock.sleep(60_000, abort.signal);
  abort.abort();
  await asleep;
  await systemClock.sleep(60_000, abort.signal);
});
