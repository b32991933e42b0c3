import { includesOf, isCreatedOnFirstUse, kept, type ScriptPart } from './script-text.ts';

/** Indentation, and lines of comment: Redis keeps the text of every script. Their line ends stay, so that errors name lines. */
const unneeded = /^[ \t]*--.*$|^[ \t]+/gm;
const topLocals = /^local /gm;

/** So many locals at the top of its files a function of the text has before the rest goes into a function of its own. */
const localsPerFunction = 40;

/** Parts of an expanded script as its text in Redis has them, in this order. */
export interface ScriptLayout {
  /** Its includes. */
  early: readonly ScriptPart[];
  /** Includes that are created on first use. */
  late: readonly ScriptPart[];
  /** The script itself, behind its includes. */
  own: ScriptPart;
}

/** Returns the layout of the parts that `expandScript` has returned. */
export function scriptLayout(parts: readonly ScriptPart[]): ScriptLayout {
  const own = parts.at(-1);
  if (own === undefined) throw new Error('a script is empty');
  const early = new Set<string>();
  const visit = (file: URL): void => {
    if (early.has(file.href)) return;
    early.add(file.href);
    for (const include of includesOf(file)) if (!isCreatedOnFirstUse(include.file)) visit(include.file);
  };
  visit(own.file);
  const isEarly = (part: ScriptPart): boolean => early.has(part.file.href);
  const included = parts.slice(0, -1);
  return { early: included.filter(isEarly), late: included.filter((part) => !isEarly(part)), own };
}

/**
 * Returns the text that Redis is given for an expanded script, less what it does not need. A call of a script creates all functions of its includes, which
 * takes most of the time of a short script. Two things keep that time small:
 *
 * The files after the first locals are in a function that is called in place, so are those after the next, and so on. Lua 5.1 finds each local that a function
 * uses of the function around it by a walk over all that are in use there; those that lie further out it takes in one step. In one function of
 * 160 locals that walk took most of the time of a short script.
 *
 * Includes with the line `-- @created-on-first-use`, and those that only they include, are in one function behind the others. What the rest uses of them
 * are small functions and tables at first, which call that function once and are replaced by what it returns. Such an include has functions and tables
 * for others, no other values.
 */
export function scriptText(parts: readonly ScriptPart[]): string {
  const { early, late, own } = scriptLayout(parts);
  const rest = [...early, own];
  const texts = rest.map(neededText);
  const exported = exportsOf(late, rest);
  if (exported.length > 0) {
    // No line is added, so that errors name lines. The header of the script stays in front: its first line says how Redis runs it.
    const first = rest.length > 1 && rest[0]?.file.href === own.file.href ? 1 : 0;
    texts[texts.length - 1] = `${firstUse(exported, late)} ${texts.at(-1)}`;
    texts[first] = `local ${namesOf(exported)} ${texts[first]}`;
  }
  return nested(rest, texts);
}

/** Nests texts in functions, each of the part at its position. `last`: a statement at the end. */
function nested(parts: readonly ScriptPart[], texts: readonly string[], last = ''): string {
  let text = '';
  let functions = 0;
  let locals = 0;
  for (const [at, part] of parts.entries()) {
    if (locals >= localsPerFunction) {
      text += 'return (function() ';
      functions++;
      locals = 0;
    }
    text += texts[at];
    locals += part.text.match(topLocals)?.length ?? 0;
  }
  return [text, last, 'end)()'.repeat(functions)].filter(Boolean).join(' ');
}

interface Export {
  name: string;
  isTable: boolean;
}

const neededTexts = new WeakMap<ScriptPart, string>();
const wordSets = new WeakMap<ScriptPart, ReadonlySet<string>>();
const exportLists = new WeakMap<ScriptPart, readonly Export[]>();
const declaration = /^local (?:function )?([\w, ]+?)(?: = .*|\(.*)?$/gm;

/** The text of a part that Redis needs. */
function neededText(part: ScriptPart): string {
  return kept(neededTexts, part, () => part.text.replaceAll(unneeded, ''));
}

function wordsOf(part: ScriptPart): ReadonlySet<string> {
  return kept(wordSets, part, () => new Set(neededText(part).match(/\w+/g)));
}

/** Functions and tables at the top of a file. */
function declaredIn(part: ScriptPart): readonly Export[] {
  return kept(exportLists, part, () => {
    const isFunction = (name: string): boolean => new RegExp(`\\bfunction ${name}\\(`).test(part.text);
    const isTable = (name: string): boolean => new RegExp(`^(?:local |  )${name} = \\{`, 'm').test(part.text);
    return [...part.text.matchAll(declaration)]
      .flatMap(([, names = '']) => names.split(', '))
      .filter((name) => isFunction(name) || isTable(name))
      .map((name) => ({ name, isTable: !isFunction(name) }));
  });
}

function namesOf(exported: readonly Export[]): string {
  return exported.map(({ name }) => name).join(', ');
}

/** Returns the functions and tables at the top of some files that others use. */
function exportsOf(files: readonly ScriptPart[], users: readonly ScriptPart[]): Export[] {
  return files.flatMap((file) => declaredIn(file).filter(({ name }) => users.some((user) => wordsOf(user).has(name))));
}

/** Returns the statements that create files on the first use of what they export. */
function firstUse(exported: readonly Export[], files: readonly ScriptPart[]): string {
  const names = namesOf(exported);
  const tables = exported.filter(({ isTable }) => isTable).map(({ name }) => name);
  const statements = [
    `local function _create() ${nested(files, files.map(neededText), `return ${names}`)} end`,
    // An include that uses itself while it is created would call its small function for ever.
    `local function _first_use() if _create then local create = _create _create = false ${names} = create() _create = nil elseif _create == false then error('an include is used while it is created') end end`,
  ];
  if (tables.length > 0)
    statements.push(
      `local _tables = {} local function _table(small) _first_use() return (select(rawget(small, _tables), ${tables.join(', ')})) end`,
      '_tables.__index = function(small, key) return _table(small)[key] end _tables.__newindex = function(small, key, value) _table(small)[key] = value end',
    );
  for (const { name, isTable } of exported)
    statements.push(
      isTable
        ? `${name} = setmetatable({ [_tables] = ${tables.indexOf(name) + 1} }, _tables)`
        : `${name} = function(...) _first_use() return ${name}(...) end`,
    );
  return statements.join(' ');
}
