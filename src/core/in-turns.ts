import { inParts } from './in-parts.ts';
import type { LoopTurn } from './loop-turns.ts';

/** So many items are ordered, or merged, before others may have a turn. */
const orderedAtOnce = 50;
/** Results that are waited for at a time. */
const pendingAtOnce = 16;

/**
 * `run` of each item, in their order, for lists of any length: others have turns of the event loop between two items. At most 16 results are pending at a time.
 * Rejects with the first error.
 */
export async function mapInTurns<T, R>(turn: LoopTurn, items: readonly T[], run: (item: T) => R | Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const part of inParts(items, pendingAtOnce)) {
    const pending: Promise<R>[] = [];
    for (const item of part) {
      await turn.rest();
      const result = (async () => run(item))();
      // An error is thrown below, when those that began before have ended.
      result.catch(() => undefined);
      pending.push(result);
    }
    results.push(...(await Promise.all(pending)));
  }
  return results;
}

/** The items in the order of `compare`, as `toSorted`, with turns of others between, as `mapInTurns`. */
export async function sortInTurns<T>(turn: LoopTurn, items: readonly T[], compare: (one: T, other: T) => number): Promise<T[]> {
  let runs: T[][] = [];
  for (const part of inParts(items, orderedAtOnce)) {
    await turn.rest();
    runs.push(part.sort(compare));
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      await turn.rest();
      merged.push(await turn.run(mergedInPieces(runs[i] ?? [], runs[i + 1] ?? [], compare)));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergedInPieces<T>(ones: readonly T[], others: readonly T[], compare: (one: T, other: T) => number): Generator<undefined, T[]> {
  const merged: T[] = [];
  let [i, j] = [0, 0];
  while (i < ones.length || j < others.length) {
    const [one, other] = [ones[i], others[j]];
    const isOne = j >= others.length || (i < ones.length && compare(one as T, other as T) <= 0);
    merged.push((isOne ? one : other) as T);
    if (isOne) i++;
    else j++;
    if (merged.length % orderedAtOnce === 0) yield;
  }
  return merged;
}
