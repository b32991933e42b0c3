import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

interface ScriptPlace {
  file: URL;
  /** Counted from 1. */
  line: number;
}

/** A piece of an expanded script: whole lines of one file, from that line on. */
export interface ScriptPart extends ScriptPlace {
  text: string;
}

/** Target of an include line. */
interface ScriptInclude {
  file: URL;
  /** Where the including line is. */
  line: number;
}

/** Tables of fields of hashes: hash → word → what Redis has. */
export type FieldTables = Readonly<Record<string, Readonly<Record<string, string>>>>;

const ownParts = new Map<string, readonly (ScriptPart | ScriptInclude)[]>();
const expansions = new WeakMap<FieldTables, Map<string, readonly ScriptPart[]>>();
const namedParts = new WeakMap<FieldTables, WeakMap<ScriptPart, ScriptPart>>();
const marks = new WeakMap<readonly (ScriptPart | ScriptInclude)[], boolean>();
const noTables: FieldTables = {};

/**
 * Returns a script with its includes. A line `-- @include "<file>"` is replaced by the file of that name, relative to the one that the line is in; an
 * include names at its top the includes that it needs itself. Each file is taken once, where it is needed first, so that
 * a file always follows its includes. A field `F.<hash>.<word>` is replaced by the text of the short name that `tables` has for it:
 * `F.target.circuit_state` is `'cs'` where the table `target` has `circuitState: 'cs'`. Files are read, and scripts expanded, once per process.
 *
 * Throws with file and line when an include is missing, when it includes itself over others, when a line of that kind does not parse, or when the tables do
 * not have a field.
 */
export function expandScript(file: URL, tables: FieldTables = noTables): readonly ScriptPart[] {
  const known = kept(expansions, tables, () => new Map<string, readonly ScriptPart[]>());
  const expanded = known.get(file.href);
  if (expanded) return expanded;
  const parts: ScriptPart[] = [];
  expandInto(parts, file, [], undefined, new Set());
  const named = parts.map((part) => withShortNames(part, tables));
  known.set(file.href, named);
  return named;
}

/** Returns the includes that a file names itself, in their order. */
export function includesOf(file: URL): ScriptInclude[] {
  return partsOf(file).filter((part) => !('text' in part));
}

/** Whether a file has the line `-- @created-on-first-use` (`scriptText`). */
export function isCreatedOnFirstUse(file: URL): boolean {
  const parts = partsOf(file);
  return kept(marks, parts, () => parts.some((part) => 'text' in part && createdOnFirstUse.test(part.text)));
}

/** `open`: the files whose includes are being expanded, from the script on; `asked`: the line that includes `file`. */
function expandInto(parts: ScriptPart[], file: URL, open: readonly URL[], asked: ScriptPlace | undefined, done: Set<string>): void {
  for (const part of partsOf(file, asked)) {
    if ('text' in part) {
      parts.push(part);
      continue;
    }
    const { file: wanted, line } = part;
    if (done.has(wanted.href)) continue;
    const files = [...open, file];
    const first = files.findIndex((each) => each.href === wanted.href);
    if (first >= 0) {
      const circle = [...files.slice(first), wanted].map((each) => basename(each.pathname));
      throw new Error(`${fileURLToPath(file)}:${line}: circular include: ${circle.join(' → ')}`);
    }
    expandInto(parts, wanted, files, { file, line }, done);
    done.add(wanted.href);
  }
}

const field = /\bF\.(\w+)\.(\w+)/g;

/** Scripts with the same include share one text of it. */
function withShortNames(part: ScriptPart, tables: FieldTables): ScriptPart {
  if (!part.text.includes('F.')) return part;
  const named = kept(namedParts, tables, () => new WeakMap<ScriptPart, ScriptPart>());
  return kept(named, part, () => {
    const lines = part.text.split('\n').map((text, at) =>
      text.replaceAll(field, (found, hash: string, word: string) => {
        const short = tables[camelCase(hash)]?.[camelCase(word)];
        if (short === undefined) throw new Error(`${fileURLToPath(part.file)}:${part.line + at}: no table of fields has ${found}`);
        return `'${short}'`;
      }),
    );
    return { ...part, text: lines.join('\n') };
  });
}

/** A name of the code as scripts write it. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the value of a key, which is made once. */
export function kept<K extends object, V>(values: WeakMap<K, V>, key: K, make: () => V): V {
  const known = values.get(key);
  if (known !== undefined) return known;
  const made = make();
  values.set(key, made);
  return made;
}

const includeLine = /^\s*--\s*@include\b.*$/;
const createdOnFirstUse = /^-- @created-on-first-use$/m;
const includeForm = /^-- @include "([^"]+)"$/;

function partsOf(file: URL, asked?: ScriptPlace): readonly (ScriptPart | ScriptInclude)[] {
  const known = ownParts.get(file.href);
  if (known) return known;
  const parts: (ScriptPart | ScriptInclude)[] = [];
  let text: ScriptPart | undefined;
  for (const [at, content] of linesOf(file, asked).entries()) {
    const line = at + 1;
    if (!includeLine.test(content)) {
      if (!text) {
        text = { file, line, text: '' };
        parts.push(text);
      }
      text.text += `${content}\n`;
      continue;
    }
    const [, name] = includeForm.exec(content) ?? [];
    if (name === undefined) throw new Error(`${fileURLToPath(file)}:${line}: an include reads: -- @include "<file>"`);
    parts.push({ file: new URL(name, file), line });
    text = undefined;
  }
  ownParts.set(file.href, parts);
  return parts;
}

function linesOf(file: URL, asked: ScriptPlace | undefined): string[] {
  try {
    return readFileSync(file, 'utf8').replace(/\n$/, '').split('\n');
  } catch (error) {
    if (!asked) throw error;
    throw new Error(`${fileURLToPath(asked.file)}:${asked.line}: cannot read the include ${fileURLToPath(file)}`, { cause: error });
  }
}
