/** A line of a text, from `start` to before `end`. */
export interface Span {
  start: number;
  end: number;
}

const longest = 500;

/** The lines of a text; one that is longer than 500 characters is several. */
export function textLines(text: string): Span[] {
  const lines: Span[] = [];
  for (let start = 0; start <= text.length; ) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    for (let from = start; from === start || from < end; from += longest) lines.push({ start: from, end: Math.min(from + longest, end) });
    start = end + 1;
  }
  return lines;
}

export const hitLimit = 10_000;

/** Positions of the spans that have `wanted` in them, in any case, at most `hitLimit`. Spans are in their order; what is between them is not searched. */
export function hitsIn(text: string, spans: readonly Span[], wanted: string): number[] {
  const hits: number[] = [];
  if (wanted === '') return hits;
  const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'), 'gi');
  let at = 0;
  for (let found = pattern.exec(text); found !== null && hits.length < hitLimit; found = pattern.exec(text)) {
    while (at < spans.length && (spans[at]?.end ?? 0) <= found.index) at += 1;
    const span = spans[at];
    if (span === undefined) break;
    if (span.start > found.index) {
      pattern.lastIndex = span.start;
      continue;
    }
    hits.push(at);
    // One hit for a line.
    pattern.lastIndex = Math.max(span.end, found.index + 1);
  }
  return hits;
}
