/** What two things have under one name. */
export interface DiffRow {
  name: string;
  before: string | null;
  after: string | null;
  isEqual: boolean;
}

/** Comparisons of two lines, at most; above, what lies between the equal beginning and end is all shown as changed. */
const maxComparisons = 1_000_000;

/** Two texts line by line: equal lines are side by side, and changed ones beside those that they replace. */
export function lineDiff(before: readonly string[], after: readonly string[]): DiffRow[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const pairs: [string | null, string | null][] = [];
  const middle = matched(before.slice(start, before.length - end), after.slice(start, after.length - end));
  for (const line of before.slice(0, start)) pairs.push([line, line]);
  pairs.push(...middle);
  for (const line of before.slice(before.length - end)) pairs.push([line, line]);
  return pairs.map(([one, other], index) => ({ name: String(index + 1), before: one, after: other, isEqual: one === other }));
}

function matched(before: readonly string[], after: readonly string[]): [string | null, string | null][] {
  if (before.length * after.length > maxComparisons) return beside(before, after);
  const width = after.length + 1;
  // The length of the longest common part of what follows two positions.
  const common = new Uint32Array((before.length + 1) * width);
  const at = (one: number, other: number): number => common[one * width + other] ?? 0;
  for (let one = before.length - 1; one >= 0; one -= 1)
    for (let other = after.length - 1; other >= 0; other -= 1)
      common[one * width + other] =
        before[one] === after[other] ? at(one + 1, other + 1) + 1 : Math.max(at(one + 1, other), at(one, other + 1));
  const pairs: [string | null, string | null][] = [];
  let [one, other, oneFrom, otherFrom] = [0, 0, 0, 0];
  while (one < before.length && other < after.length) {
    const line = before[one] ?? null;
    if (line === after[other]) {
      pairs.push(...beside(before.slice(oneFrom, one), after.slice(otherFrom, other)), [line, line]);
      one += 1;
      other += 1;
      [oneFrom, otherFrom] = [one, other];
    } else if (at(one + 1, other) >= at(one, other + 1)) one += 1;
    else other += 1;
  }
  pairs.push(...beside(before.slice(oneFrom), after.slice(otherFrom)));
  return pairs;
}

/** Changed lines, the first beside the first. */
function beside(before: readonly string[], after: readonly string[]): [string | null, string | null][] {
  return Array.from({ length: Math.max(before.length, after.length) }, (_, index) => [before[index] ?? null, after[index] ?? null]);
}
