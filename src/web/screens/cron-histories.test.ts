import { expect, test } from '@jest/globals';
import { type History, knownRuns } from './cron-histories.ts';

const week = { from: '2026-03-01T00:00:00.000Z', to: '2026-03-08T00:00:00.000Z', perJob: 28 };
const job = { id: 'cron_1', name: 'Heartbeat' };
/** One run each minute, back from a time. */
const minutely = (last: string, runs: number): History => ({
  job,
  executions: Array.from({ length: runs }, (_, i) => ({
    started_at: new Date(Date.parse(last) - i * 60_000).toISOString().replace('T', ' ').replace('Z', ''),
    status: 'success',
  })),
});

test('a full history reaches back to its oldest run only, and says how often the job ran at least', () => {
  expect(knownRuns([minutely('2026-03-07T12:00:00.000Z', 100)], week)).toEqual({
    runs: [],
    often: [{ job, total: 100, failed: 0, isAtLeast: true }],
    knownFrom: '2026-03-07T10:21:00.000Z',
  });
  const { runs, knownFrom } = knownRuns([minutely('2026-03-09T00:00:00.000Z', 100)], week);
  expect([runs, knownFrom]).toEqual([[], '2026-03-08T22:21:00.000Z']);
});

test('a history that is not full, or that reaches back before the time, is complete', () => {
  expect(knownRuns([minutely('2026-03-07T12:00:00.000Z', 99)], week)).toMatchObject({
    often: [{ total: 99, isAtLeast: false }],
    knownFrom: null,
  });
  expect(knownRuns([minutely('2026-03-01T00:30:00.000Z', 100)], week)).toMatchObject({
    often: [{ total: 31, isAtLeast: false }],
    knownFrom: null,
  });
});
