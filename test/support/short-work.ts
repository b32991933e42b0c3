import { appendFileSync } from 'node:fs';
import { expect } from '@jest/globals';
import { longestTurnMs, processorMs } from './longest-turn.ts';

/** Input of `hack/bench/turns`: one line of JSON for each measurement. */
export interface Measured {
  test: string;
  goalMs: number;
  /** Processor time, of the best run. */
  ms: number;
}

/** Where `hack/bench/turns` expects its measurements. It runs on a quiet machine, and alone; any other run of the tests does not. */
const file = process.env['POSTHORN_TURNS_FILE'];

/**
 * Work that does not grow with its input as it should takes many times its goal. Work that other programs slow down takes a few times its goal.
 * A test separates the first from the second, and `hack/bench/turns` shows the figures themselves.
 */
const slack = file === undefined ? 10 : 1;
const runs = 6;

/** Fails when `run` has a turn of the event loop that takes far longer than `goalMs` of processor time. Runs it up to six times. */
export async function expectShortTurns(goalMs: number, run: () => Promise<unknown>): Promise<void> {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs && bestMs >= goalMs * slack; i++) bestMs = Math.min(bestMs, await longestTurnMs(run));
  judge(bestMs, goalMs);
}

/** What `run` returns. Fails when it takes far longer than `goalMs` of processor time. Runs it up to six times. */
export function withinProcessorTime<T>(run: () => T, goalMs = 50): T {
  let best = timed(run);
  for (let i = 1; i < runs && best.ms >= goalMs * slack; i++) {
    const next = timed(run);
    if (next.ms < best.ms) best = next;
  }
  judge(best.ms, goalMs);
  return best.result;
}

/** Fails when a piece of the work takes far longer than `goalMs` of processor time; what the work throws ends it. Goes through it up to six times. */
export function expectShortPieces(goalMs: number, work: () => Iterator<unknown>): void {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs && bestMs >= goalMs * slack; i++) bestMs = Math.min(bestMs, longestPieceMs(work()));
  judge(bestMs, goalMs);
}

function judge(ms: number, goalMs: number): void {
  if (file === undefined) {
    expect(ms).toBeLessThan(goalMs * slack);
    return;
  }
  const measured: Measured = { test: expect.getState().currentTestName ?? '', goalMs, ms };
  appendFileSync(file, `${JSON.stringify(measured)}\n`);
}

function longestPieceMs(pieces: Iterator<unknown>): number {
  let longest = 0;
  for (let isDone = false; !isDone; ) {
    const { ms, result } = timed(() => {
      try {
        return pieces.next().done === true;
      } catch {
        return true;
      }
    });
    longest = Math.max(longest, ms);
    isDone = result;
  }
  return longest;
}

function timed<T>(run: () => T): { result: T; ms: number } {
  const before = process.threadCpuUsage();
  const result = run();
  return { result, ms: processorMs(before) };
}
