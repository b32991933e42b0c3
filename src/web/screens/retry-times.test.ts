import { expect, test } from '@jest/globals';
import { delaysOf, plannedAttempts } from './retry-times.ts';

const waiting = { attempts: 2, maxAttempts: 5, nextAttemptAt: '2026-01-31T12:00:00.000Z', expiresAt: null };
const growing = delaysOf({ maxRetries: 4, delays: null, initialDelay: 1000, maxDelay: 5000, backoffMultiplier: 2 });
const times = (planned: readonly { number: number; at: string }[]) => planned.map(({ number, at }) => `${number} ${at.slice(14, 19)}`);

test('waits grow from the next attempt on, up to the longest one', () => {
  expect(times(plannedAttempts(waiting, growing))).toEqual(['3 00:00', '4 00:04', '5 00:09']);
});

test('waits that are listed count by the number of the retry', () => {
  expect(times(plannedAttempts(waiting, [1000, 2000, 60_000, 120_000]))).toEqual(['3 00:00', '4 01:00', '5 03:00']);
});

test('no attempt is planned after the message expires, nor after the last one', () => {
  expect(times(plannedAttempts({ ...waiting, expiresAt: '2026-01-31T12:00:05.000Z' }, growing))).toEqual(['3 00:00', '4 00:04']);
  expect(times(plannedAttempts({ ...waiting, attempts: 4 }, growing))).toEqual(['5 00:00']);
});
