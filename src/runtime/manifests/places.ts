import { type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, type Pair } from 'yaml';

/** Where something is written in a file; both count from 1. */
export interface Place {
  line: number;
  column: number;
}

/** Returns the position of an offset of the text whose lines `lines` has counted. */
export function placeAt(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

/**
 * Returns the offset of a field in its document: of the name of a member, or of an item of a list. For a field that is not written there it is that of the nearest
 * part around it. `field`: a path such as `spec.http.headers[0].name` or `spec.http.headers[x-shop].value`; empty: the root.
 */
export function offsetOf(document: Document.Parsed, field: string): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? document.range[0];
  for (let rest = field; rest !== ''; ) {
    const step = stepInto(isAlias(node) ? node.resolve(document) : node, rest);
    if (step === null) break;
    offset = step.offset ?? offset;
    ({ node, rest } = step);
  }
  return offset;
}

interface Step {
  node: unknown;
  offset: number | undefined;
  /** The path from there on. */
  rest: string;
}

function stepInto(node: unknown, path: string): Step | null {
  if (isMap(node)) return stepIntoMap(node.items, path);
  const [whole, selector = ''] = /^\[([^\]]+)\]\.?/.exec(path) ?? [];
  if (!isSeq(node) || whole === undefined) return null;
  const item = /^\d+$/.test(selector)
    ? node.items[Number(selector)]
    : node.items.find((each) => isMap(each) && each.get('name') === selector);
  return item === undefined ? null : { node: item, offset: startOf(item), rest: path.slice(whole.length) };
}

/** Names may have dots and brackets themselves, such as those of annotations: the longest one that fits counts. */
function stepIntoMap(pairs: readonly Pair[], path: string): Step | null {
  let found: Step | null = null;
  let longest = -1;
  for (const { key, value } of pairs) {
    const name = isScalar(key) ? String(key.value) : '';
    const next = path[name.length];
    if (name.length <= longest || !path.startsWith(name) || (next !== undefined && next !== '.' && next !== '[')) continue;
    longest = name.length;
    found = { node: value, offset: startOf(key), rest: path.slice(next === '.' ? name.length + 1 : name.length) };
  }
  return found;
}

function startOf(node: unknown): number | undefined {
  return (isMap(node) || isSeq(node) || isScalar(node) || isAlias(node)) && node.range != null ? node.range[0] : undefined;
}
