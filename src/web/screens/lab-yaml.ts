import { laidOut } from '../ui/json-text.ts';

export interface Manifest {
  kind: 'Filter' | 'Transform' | 'PayloadSchema';
  /** Of the object in its namespace. */
  name: string;
  /** Fields of `spec` as JSON texts, in their order. */
  spec: readonly (readonly [field: string, json: string])[];
}

/** The manifest of a custom resource. It names no namespace: the API does not say which one an organization has. */
export function yamlOf({ kind, name, spec }: Manifest): string {
  const fields = spec.flatMap(([field, json]) => fieldLines(field, json));
  const head = ['apiVersion: posthorn.dev/v1alpha1', `kind: ${kind}`, 'metadata:', `  name: ${scalar(JSON.stringify(name))}`, 'spec:'];
  return `${[...head, ...fields.map((line) => (line === '' ? '' : `  ${line}`))].join('\n')}\n`;
}

function fieldLines(field: string, json: string): string[] {
  const block = field === 'code' ? literalBlock(String(JSON.parse(json))) : null;
  if (block !== null) return [`${field}: ${block.head}`, ...block.lines];
  const [first = '', ...rest] = laidOut(json, scalar);
  // A flow collection has to be indented more than its key.
  return [`${field}: ${first}`, ...rest.map((line) => `  ${line}`)];
}

/** What YAML does not print in a text: control characters, its line separators, the byte order mark. */
const unprintable = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** A JSON string, number or word as YAML takes it. Parsers of YAML do not join the escapes of a surrogate pair, so they stand as the character. */
function scalar(json: string): string {
  if (!json.startsWith('"')) return json;
  return JSON.stringify(JSON.parse(json)).replace(unprintable, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Text that a literal block keeps as it is: printable, with a first line that shows the indent, and at most one line end at its end. */
const ofLiteralBlock = /^[^\s][\t\n\u0020-\u007e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]*$/u;

function literalBlock(text: string): { head: string; lines: string[] } | null {
  if (!ofLiteralBlock.test(text) || /\n\s*\n$/.test(text)) return null;
  const isEnded = text.endsWith('\n');
  const lines = (isEnded ? text.slice(0, -1) : text).split('\n').map((line) => (line === '' ? '' : `  ${line}`));
  return { head: isEnded ? '|' : '|-', lines };
}

/** Words that API paths use themselves: the CRDs refuse them as names. */
const reservedNames: readonly string[] = ['bulk', 'export', 'import', 'test', 'by-external-id', 'upsert'];
const longestObjectName = 50;
/** Of a name for people, units that are looked at. */
const longestName = 400;
const letters: Record<string, string> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', đ: 'd', ð: 'd', ł: 'l', þ: 'th', ı: 'i' };

/** The name of an object that a name for people suggests, as the API makes a slug of it: with `-2`, `-3`, … where it is reserved or `taken`. */
export function objectNameOf(name: string, fallback: string, taken?: string): string {
  const plain = name
    .slice(0, longestName)
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{Mark}/gu, '')
    .replaceAll(/[ßæœøđðłþı]/g, (letter) => letters[letter] ?? '');
  const base = trimmed(plain.replaceAll(/[^a-z0-9]+/g, '-'), longestObjectName) || fallback;
  let free = base;
  for (let number = 2; reservedNames.includes(free) || free === taken; number++) {
    const suffix = `-${number}`;
    free = trimmed(base, longestObjectName - suffix.length) + suffix;
  }
  return free;
}

function trimmed(text: string, length: number): string {
  return text.replace(/^-+/, '').slice(0, length).replace(/-+$/, '');
}
