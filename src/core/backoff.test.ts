import { describe, expect, test } from '@jest/globals';
import { retryCount, retryDelayMs } from './backoff.ts';
import { defaultWebhookRetryDelaysMs } from './webhook.ts';

const policy = { maxRetries: 10, initialDelayMs: 1000, maxDelayMs: 3_600_000, backoffMultiplier: 4 };
const middle = (): number => 0.5;

describe('the delay before the next attempt', () => {
  test('the delay before the next attempt grows by the multiplier up to the largest', () => {
    expect([1, 2, 3, 6, 7, 8, 25].map((made) => retryDelayMs(policy, made, middle))).toEqual([
      1000, 4000, 16_000, 1_024_000, 3_600_000, 3_600_000, 3_600_000,
    ]);
  });

  test('the delay before the next attempt of the default policy adds up to about five hours', () => {
    const total = Array.from({ length: 10 }, (_, i) => retryDelayMs(policy, i + 1, middle)).reduce((sum, ms) => sum + ms);
    expect(total / 3_600_000).toBeCloseTo(4.4, 0);
  });

  test('the delay before the next attempt varies by a fifth to either side', () => {
    expect(retryDelayMs(policy, 1, () => 0)).toBe(800);
    expect(retryDelayMs(policy, 1, () => 0.999_999)).toBe(1200);
  });

  test('the delay before the next attempt of a schedule is its own, and there are as many retries as it has', () => {
    const schedule = { delaysMs: defaultWebhookRetryDelaysMs };
    expect(retryCount(schedule) + 1).toBe(8);
    expect([1, 2, 3, 4, 5, 6, 7].map((made) => retryDelayMs(schedule, made, middle) / 1000)).toEqual([
      5, 300, 1800, 7200, 18_000, 36_000, 36_000,
    ]);
    expect(retryDelayMs(schedule, 1, () => 0)).toBe(4000);
  });

  test('the delay before the next attempt of a policy with a schedule is that of the schedule', () => {
    const own = { ...policy, maxRetries: 2, delaysMs: [7000, 500] };
    expect(retryCount(own)).toBe(2);
    expect([1, 2].map((made) => retryDelayMs(own, made, middle))).toEqual([7000, 500]);
  });
});
