import { expect, test } from '@jest/globals';
import { dayAfter, isDay, runsByDay, weekFrom } from './cron-days.ts';

test('a week goes over the ends of months and years', () => {
  expect(weekFrom('2026-12-28')).toEqual([
    '2026-12-28',
    '2026-12-29',
    '2026-12-30',
    '2026-12-31',
    '2027-01-01',
    '2027-01-02',
    '2027-01-03',
  ]);
  expect(dayAfter('2028-03-01', -1)).toBe('2028-02-29');
});

test('only what names a day is one', () => {
  expect(['2026-01-31', '2026-02-30', '9999-12-31', '2026-13-01', '2026-1-1', 'x', '', undefined].map(isDay)).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
    false,
    false,
  ]);
});

test('runs of several jobs are listed by day and in the order of time', () => {
  const daily = { name: 'daily', runs: ['2026-01-01T12:00:00.000Z', '2026-01-02T12:00:00.000Z'] };
  const early = { name: 'early', runs: ['2026-01-02T06:00:00.000Z'] };
  const days = runsByDay([daily, early], (at) => at.slice(0, 10));
  expect([...days].map(([day, runs]) => [day, runs.map(({ job }) => job.name)])).toEqual([
    ['2026-01-01', ['daily']],
    ['2026-01-02', ['early', 'daily']],
  ]);
});
