import { type JsonLine, jsonLines } from './json-lines.ts';

/** A line of YAML, and the JSON Pointer of what it shows. */
export interface YamlLine {
  text: string;
  pointer: string;
}

/** A JSON object as YAML in block style, its numbers as they are written. Empty where the text is no JSON object or list. */
export function yamlLines(json: string): YamlLine[] {
  const work = jsonLines(json);
  for (;;) {
    const { done, value } = work.next();
    if (done !== true) continue;
    return value.faultAt === null ? membersOf({ json, lines: value.lines }, 0, '', '') : [];
  }
}

export function yamlText(json: string): string {
  return yamlLines(json)
    .map(({ text }) => `${text}\n`)
    .join('');
}

interface Source {
  json: string;
  lines: readonly JsonLine[];
}

/** The members of the object or the items of the list that opens in the line `at`. */
function membersOf(source: Source, at: number, indent: string, pointer: string): YamlLine[] {
  const { json, lines } = source;
  const found: YamlLine[] = [];
  const container = lines[at];
  if (container?.kind !== 'open') return found;
  let next = at + 1;
  while (next < container.end) {
    const line = lines[next];
    if (line === undefined) return found;
    if (line.keyStart < 0) found.push(...item(source, next, line, indent, pointer));
    else {
      const key = json.slice(line.keyStart, line.keyEnd);
      const below = `${pointer}/${String(JSON.parse(key)).replaceAll('~', '~0').replaceAll('/', '~1')}`;
      found.push(...linesOf(source, next, line, { head: `${indent}${scalar(key)}:`, indent, pointer: below }));
    }
    next = line.kind === 'open' ? line.end + 1 : next + 1;
  }
  return found;
}

/** An item begins at the position of its first member. */
function item(source: Source, at: number, line: JsonLine, indent: string, pointer: string): YamlLine[] {
  const below = `${pointer}/${line.index}`;
  if (line.kind !== 'open' || line.members === 0) return linesOf(source, at, line, { head: `${indent}-`, indent, pointer: below });
  const [first, ...rest] = membersOf(source, at, `${indent}  `, below);
  return first === undefined ? [] : [{ ...first, text: `${indent}- ${first.text.slice(indent.length + 2)}` }, ...rest];
}

function linesOf(
  source: Source,
  at: number,
  line: JsonLine,
  { head, indent, pointer }: { head: string; indent: string; pointer: string },
): YamlLine[] {
  const { json } = source;
  if (line.kind === 'open') {
    if (line.members === 0) return [{ text: `${head} ${json[line.valueStart] === '{' ? '{}' : '[]'}`, pointer }];
    return [{ text: head, pointer }, ...membersOf(source, at, `${indent}  `, pointer)];
  }
  const written = json.slice(line.valueStart, line.valueEnd);
  const block = written.startsWith('"') ? literalBlock(String(JSON.parse(written))) : null;
  if (block === null) return [{ text: `${head} ${scalar(written)}`, pointer }];
  return [
    { text: `${head} ${block.head}`, pointer },
    ...block.lines.map((text) => ({ text: text === '' ? '' : `${indent}  ${text}`, pointer })),
  ];
}

/** Unprintable characters of YAML in a text: control characters, its line separators, the byte order mark. */
const unprintable = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** Text that needs no quotes, but for words that YAML 1.1 reads otherwise. */
const plain = /^[A-Za-z_][-\w./]*$/;
const words = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

/** A JSON string, number or word in YAML. Parsers of YAML do not join the escapes of a surrogate pair, so they are written as the character. */
function scalar(json: string): string {
  if (!json.startsWith('"')) return json;
  const text = String(JSON.parse(json));
  if (plain.test(text) && !words.test(text)) return text;
  return JSON.stringify(text).replace(unprintable, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Text that a literal block keeps as it is: printable, with a first line that shows the indent, and at most one line end at its end. */
const ofLiteralBlock = /^(?!\s)[\t\n\u0020-\u007e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]*$/u;

/** Null: the text has one line, or no block keeps it. */
function literalBlock(text: string): { head: string; lines: string[] } | null {
  if (!text.includes('\n') || !ofLiteralBlock.test(text) || /\n\s*\n$/.test(text)) return null;
  const isEnded = text.endsWith('\n');
  return { head: isEnded ? '|' : '|-', lines: (isEnded ? text.slice(0, -1) : text).split('\n') };
}
