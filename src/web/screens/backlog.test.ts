import { expect, test } from '@jest/globals';
import type { Answer } from '../api/client.ts';
import { backlogWords, drainMs, recentQuery } from './backlog.ts';

type Series = Answer<'GET /analytics/series'>;

const from = '2026-03-01T12:00:00.000Z';
const readAtMs = Date.parse(from) + 600_000;
const series = (backlog: number | null, ended: Partial<Series['total']> = {}): Series => {
  const total = { delivered: 0, failed: 0, movedAway: 0, ...ended } as Series['total'];
  return { from, to: from, step: '5m', now: { backlog, oldestAgeMs: 90_000, scheduled: 0 }, total, points: [] };
};

test('a backlog drains at the pace at which messages have ended', () => {
  expect(drainMs({ backlog: 300, ended: 100, fromMs: 0, nowMs: 600_000 })).toBe(1_800_000);
  expect(drainMs({ backlog: 300, ended: 0, fromMs: 0, nowMs: 600_000 })).toBeNull();
});

test('the backlog is shown with its age and the time in which it is drained, also where messages fail or go to a failover', () => {
  const waiting = (value: Series | undefined, isHeld = false) => backlogWords(value, { readAtMs, isHeld });
  const ended = { delivered: 40, failed: 10, movedAway: 50 };
  expect(waiting(series(300, ended))).toBe('300, oldest 1 min 30 s; drained in about 30 min at the pace of the last 10 min');
  expect(waiting(series(300))).toBe('300, oldest 1 min 30 s; none has ended in 10 min');
  expect(waiting(series(300, ended), true)).toBe('300, oldest 1 min 30 s');
  expect(waiting(series(0, ended))).toBe('0, oldest 1 min 30 s');
  expect(waiting(series(null, ended))).toBe('–');
  expect(waiting(undefined)).toBe('–');
});

test('the pace is of the last ten to fifteen minutes', () => {
  expect(recentQuery(readAtMs + 299_999)).toEqual({ from, step: '5m' });
  expect(recentQuery(readAtMs + 300_000).from).toBe('2026-03-01T12:05:00.000Z');
});
