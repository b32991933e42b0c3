import type { Answer } from '../api/client.ts';
import { count, duration } from '../ui/format.ts';

type Series = Answer<'GET /analytics/series'>;

const stepMs = 300_000;
const recentMs = 600_000;

/** Query of the series for the drain rate of a target: the last ten to fifteen minutes. */
export function recentQuery(nowMs: number): { from: string; step: '5m' } {
  return { from: new Date(Math.floor((nowMs - recentMs) / stepMs) * stepMs).toISOString(), step: '5m' };
}

/** How long a backlog takes to drain at the pace at which messages have ended since `fromMs`; null: none has. */
export function drainMs({
  backlog,
  ended,
  fromMs,
  nowMs,
}: {
  backlog: number;
  ended: number;
  fromMs: number;
  nowMs: number;
}): number | null {
  return ended === 0 ? null : (backlog / ended) * Math.max(0, nowMs - fromMs);
}

/** Backlog of a target, its start and its end. `isHeld`: by an open circuit, so that nothing drains. */
export function backlogWords(series: Series | undefined, { readAtMs, isHeld }: { readAtMs: number; isHeld: boolean }): string {
  const backlog = series?.now?.backlog ?? null;
  if (series === undefined || backlog === null) return '–';
  const oldestAgeMs = series.now?.oldestAgeMs ?? null;
  const waits = `${count(backlog)}${oldestAgeMs === null ? '' : `, oldest ${duration(oldestAgeMs)}`}`;
  if (backlog === 0 || isHeld) return waits;
  const { delivered, failed, movedAway } = series.total;
  const ended = (delivered ?? 0) + (failed ?? 0) + (movedAway ?? 0);
  const fromMs = Date.parse(series.from);
  const left = drainMs({ backlog, ended, fromMs, nowMs: readAtMs });
  const pace = duration(readAtMs - fromMs);
  return left === null
    ? `${waits}; none has ended in ${pace}`
    : `${waits}; drained in about ${duration(left)} at the pace of the last ${pace}`;
}
