/** A line of JSON as it is shown: a value, the opening of an object or array, or its closing. Offsets are into the text, which keeps what was written. */
export interface JsonLine {
  kind: 'value' | 'open' | 'close';
  depth: number;
  /** Start of the key with its quotes; -1 where there is none. */
  keyStart: number;
  keyEnd: number;
  valueStart: number;
  /** After the value; of an opening: after the character that closes it. */
  valueEnd: number;
  /** The opening that this line is in; -1 for the outermost. */
  parent: number;
  /** Position among its siblings. */
  index: number;
  /** Number of members of an opening. */
  members: number;
  /** Closing line of an opening, or the number of lines where the text ends before. */
  end: number;
  hasComma: boolean;
}

export interface JsonLines {
  lines: JsonLine[];
  /** Where the text is not JSON, as an offset; null: all of it is. */
  faultAt: number | null;
}

const tokensPerTurn = 512;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
/** Characters that end a string or escape in it, and forbidden line ends. */
const stringEnd = /["\\\n\r]/g;

/** Lays a JSON text out in lines without reading its values, so numbers and repeated keys stay as written. Yields the offset it has come to. */
export function* jsonLines(text: string): Generator<number, JsonLines> {
  const lines: JsonLine[] = [];
  const open: number[] = [];
  let at = 0;
  let tokens = 0;
  const done = (faultAt: number | null): JsonLines => {
    for (const each of open) closeAt(lines, each, lines.length, text.length);
    return { lines, faultAt };
  };
  for (;;) {
    tokens += 1;
    if (tokens % tokensPerTurn === 0) yield at;
    const parent = open.at(-1) ?? -1;
    const container = lines[parent];
    at = skipBlanks(text, at);
    if (container === undefined && lines.length > 0) return done(at < text.length ? at : null);
    const isObject = container !== undefined && text[container.valueStart] === '{';
    let keyStart = -1;
    let keyEnd = -1;
    if (isObject) {
      keyStart = at;
      keyEnd = endOfString(text, at);
      if (keyEnd < 0) return done(at);
      at = skipBlanks(text, keyEnd);
      if (text[at] !== ':') return done(at);
      at = skipBlanks(text, at + 1);
    }
    const start = at;
    const isOpening = text[at] === '{' || text[at] === '[';
    at = isOpening ? at + 1 : endOfScalar(text, at);
    if (at < 0) return done(start);
    lines.push({
      kind: isOpening ? 'open' : 'value',
      depth: open.length,
      keyStart,
      keyEnd,
      valueStart: start,
      valueEnd: at,
      parent,
      index: container?.members ?? 0,
      members: 0,
      end: -1,
      hasComma: false,
    });
    if (container !== undefined) container.members += 1;
    if (isOpening) {
      open.push(lines.length - 1);
      at = skipBlanks(text, at);
      // Only an empty one closes here; after a comma a value has to come.
      if (!isClosing(text, at, text[start])) continue;
    }
    const after = closeAndComma(text, at, lines, open);
    if (after < 0) return done(skipBlanks(text, -after - 1));
    at = after;
  }
}

/** Closes what the text closes here, and passes the comma. Returns the offset of what comes next, or -1 less that of what cannot. */
function closeAndComma(text: string, from: number, lines: JsonLine[], open: number[]): number {
  let at = from;
  for (;;) {
    const top = open.at(-1);
    const container = top === undefined ? undefined : lines[top];
    if (top === undefined || container === undefined) return at;
    at = skipBlanks(text, at);
    if (text[at] === ',' && container.members > 0) {
      const last = lastMember(lines, container);
      if (last !== undefined) last.hasComma = true;
      return at + 1;
    }
    if (!isClosing(text, at, text[container.valueStart])) return -at - 1;
    at += 1;
    open.pop();
    closeAt(lines, top, lines.length, at);
    lines.push({ ...container, kind: 'close', keyStart: -1, keyEnd: -1, valueStart: at - 1, valueEnd: at, end: -1 });
  }
}

function closeAt(lines: JsonLine[], opening: number, end: number, valueEnd: number): void {
  const line = lines[opening];
  if (line === undefined) return;
  line.end = end;
  line.valueEnd = valueEnd;
}

/** The line that a comma follows: a value, or a closing. */
function lastMember(lines: readonly JsonLine[], container: JsonLine): JsonLine | undefined {
  const last = lines.at(-1);
  return last === container ? undefined : last;
}

function isClosing(text: string, at: number, opening: string | undefined): boolean {
  return text[at] === (opening === '{' ? '}' : ']');
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at += 1;
  }
}

/** -1: there is no value. */
function endOfScalar(text: string, at: number): number {
  if (text[at] === '"') return endOfString(text, at);
  scalar.lastIndex = at;
  return scalar.test(text) ? scalar.lastIndex : -1;
}

/** -1: there is no whole string. */
function endOfString(text: string, at: number): number {
  if (text[at] !== '"') return -1;
  stringEnd.lastIndex = at + 1;
  for (let found = stringEnd.exec(text); found !== null; found = stringEnd.exec(text)) {
    if (found[0] === '"') return found.index + 1;
    if (found[0] !== '\\') return -1;
    stringEnd.lastIndex = found.index + 2;
  }
  return -1;
}

const largeMembers = 100;
const deepLevel = 4;

/** The openings that are collapsed at first: large ones and deep ones, but not the outermost. */
export function collapsedAtFirst(lines: readonly JsonLine[]): Set<number> {
  const collapsed = new Set<number>();
  lines.forEach(({ kind, depth, members }, at) => {
    if (kind === 'open' && depth > 0 && members > 0 && (members > largeMembers || depth > deepLevel)) collapsed.add(at);
  });
  return collapsed;
}

/** Positions of the lines to show. A collapsed branch, and one without members, is one line. */
export function visibleLines(lines: readonly JsonLine[], collapsed: ReadonlySet<number>): number[] {
  const visible: number[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    visible.push(at);
    const line = lines[at];
    if (line?.kind === 'open' && (collapsed.has(at) || line.members === 0)) at = line.end;
  }
  return visible;
}

/** `collapsed` without the branches that a line is in. */
export function opened(lines: readonly JsonLine[], collapsed: ReadonlySet<number>, at: number): Set<number> {
  const next = new Set(collapsed);
  for (let above = lines[at]?.parent ?? -1; above >= 0; above = lines[above]?.parent ?? -1) next.delete(above);
  return next;
}

/** The path of a line as a filter names it, such as `payload.items[3].sku`. */
export function pathOf(text: string, lines: readonly JsonLine[], at: number, root = 'payload'): string {
  const line = lines[at];
  if (line === undefined || line.parent < 0) return root;
  const segment = line.keyStart < 0 ? `[${line.index}]` : nameSegment(text.slice(line.keyStart, line.keyEnd));
  return `${pathOf(text, lines, line.parent, root)}${segment}`;
}

/** What a filter reads between dots. */
const plainName = /^[^.[\]\\]+$/;
const needsQuotes = /^[\s'"`]|[\s'"`]$/;

function nameSegment(quoted: string): string {
  const name = stringIn(quoted);
  if (plainName.test(name) && !needsQuotes.test(name)) return `.${name}`;
  return `['${JSON.stringify(name).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}']`;
}

/** The value of a line to copy: the text of a string, anything else as written. */
export function copiedValue(text: string, { valueStart, valueEnd }: JsonLine): string {
  const written = text.slice(valueStart, valueEnd);
  return written.startsWith('"') ? stringIn(written) : written;
}

/** The text of a JSON string; as written where it is none. */
function stringIn(quoted: string): string {
  try {
    const value: unknown = JSON.parse(quoted);
    return typeof value === 'string' ? value : quoted;
  } catch {
    return quoted;
  }
}
