import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { scriptLayout, scriptText } from '../src/redis/script-layout.ts';
import { expandScript, type FieldTables, includesOf, type ScriptPart } from '../src/redis/script-text.ts';
import { bindLua, type LuaLocal, type LuaScopes } from './lua-scopes.ts';

/** What Lua 5.1 refuses to compile beyond, per function. */
const maxLocals = 200;
const maxUpvalues = 60;
/** From here on the check warns: the next change may be the one that no longer compiles. */
const warnedLocals = 180;
const warnedUpvalues = 54;

/** What Redis gives to scripts, and its sandbox leaves of Lua. */
const globals = new Set(
  `ARGV KEYS redis cjson cmsgpack bit struct math string table assert collectgarbage error getmetatable ipairs next pairs pcall rawequal rawget
  rawset select setmetatable tonumber tostring type unpack xpcall _VERSION`.split(/\s+/),
);

export interface LuaFindings {
  /** `<file>:<line>: <what>`, in the order of files and lines. */
  complaints: string[];
  /** What is still allowed. */
  warnings: string[];
  /** Files whose include lines are wrong, with the includes that they use directly. */
  includes: { file: URL; wanted: URL[] }[];
}

interface Place {
  file: URL;
  line: number;
}

/**
 * Checks scripts of Redis, each as it is expanded with its includes. `includes`: all files that exist for scripts to include; `root`: the
 * folder to which the paths of the findings are relative; `tables`: of the fields of hashes.
 */
export function luaFindings(scripts: readonly URL[], includes: readonly URL[], root: URL, tables: FieldTables = {}): LuaFindings {
  return new LuaRules(root, tables).check(scripts, includes);
}

/**
 * Returns a complaint for each include line that names a file in a folder which the folder of its file may not use. `mayUse`: folder below `src/` →
 * folders that it may use; a folder outside of the table may use all.
 */
export function foreignIncludes(files: readonly URL[], mayUse: Readonly<Record<string, readonly string[]>>, root: URL): string[] {
  const pathOf = (file: URL): string => relative(fileURLToPath(root), fileURLToPath(file));
  const isIn = (file: URL, folder: string): boolean => pathOf(file).startsWith(`src/${folder}/`);
  return files.flatMap((file) => {
    const rule = Object.entries(mayUse).find(([folder]) => isIn(file, folder));
    if (rule === undefined) return [];
    const [folder, others] = rule;
    return includesOf(file)
      .filter((include) => ![folder, ...others].some((each) => isIn(include.file, each)))
      .map((include) => `${pathOf(file)}:${include.line}: ${folder} may not use ${pathOf(include.file)} (hack/dependencies.cjs)`);
  });
}

class LuaRules {
  readonly #root: string;
  readonly #tables: FieldTables;
  readonly #complaints = new Set<string>();
  readonly #warnings = new Set<string>();
  /** Top-level locals of includes, which several scripts have, that one of these reads. */
  readonly #read = new Set<string>();
  readonly #unread = new Map<string, string>();
  /** Name of a top-level local → the includes that declare it. */
  readonly #declaredBy = new Map<string, URL[]>();
  /** Maps a file to the includes that it uses directly. */
  readonly #wanted = new Map<string, Set<string>>();

  constructor(root: URL, tables: FieldTables) {
    this.#root = fileURLToPath(root);
    this.#tables = tables;
  }

  check(scripts: readonly URL[], includes: readonly URL[]): LuaFindings {
    const included = new Set<string>();
    for (const file of includes) this.#attempt(file, () => this.#noteDeclarations(file));
    const isComplete = scripts
      .map((file) =>
        this.#attempt(file, () => {
          const parts = expandScript(file, this.#tables);
          for (const part of parts) included.add(part.file.href);
          new ScriptRules(this, file, parts).check();
        }),
      )
      .every(Boolean);
    // A script that could not be checked may be the one that uses them.
    if (isComplete) this.#unused(includes, included);
    return { complaints: sorted(this.#complaints), warnings: sorted(this.#warnings), includes: this.#corrections() };
  }

  #corrections(): LuaFindings['includes'] {
    return [...this.#wanted].flatMap(([href, includes]) => {
      const file = new URL(href);
      const named = includesOf(file).map((include) => include.file.href);
      const isRight = named.length === includes.size && named.every((each) => includes.has(each));
      // Those that are named stay in their order.
      const wanted = [...new Set(named.filter((each) => includes.has(each)).concat([...includes].sort()))];
      return isRight ? [] : [{ file, wanted: wanted.map((each) => new URL(each)) }];
    });
  }

  #unused(includes: readonly URL[], included: ReadonlySet<string>): void {
    for (const file of includes) if (!included.has(file.href)) this.complain({ file, line: 1 }, 'is included by no script');
    for (const [place, complaint] of this.#unread) if (!this.#read.has(place)) this.#complaints.add(complaint);
  }

  nameOf(file: URL): string {
    return relative(this.#root, fileURLToPath(file));
  }

  at({ file, line }: Place): string {
    return `${this.nameOf(file)}:${line}`;
  }

  complain(place: Place, what: string): void {
    this.#complaints.add(`${this.at(place)}: ${what}`);
  }

  warn(place: Place, what: string): void {
    this.#warnings.add(`${this.at(place)}: ${what}`);
  }

  noteLocal(place: Place, { name, kind, reads }: LuaLocal): void {
    const key = `${this.at(place)} ${name}`;
    if (reads.length > 0) this.#read.add(key);
    else this.#unread.set(key, `${this.at(place)}: declares the ${kind} ${name}, which nothing uses`);
  }

  /** Records a file that uses something of an include; without one, that it exists. */
  noteUse(file: URL, include?: URL): void {
    const includes = this.#wanted.get(file.href) ?? new Set<string>();
    this.#wanted.set(file.href, includes);
    if (include) includes.add(include.href);
  }

  /** Returns the includes that declare a name at their top. */
  declarationsOf(name: string): readonly URL[] {
    return this.#declaredBy.get(name) ?? [];
  }

  #noteDeclarations(file: URL): void {
    const own = expandScript(file, this.#tables).filter((part) => part.file.href === file.href);
    const { locals } = bindLua(own.map((part) => part.text).join(''));
    for (const { name, isTop } of locals) {
      const files = this.#declaredBy.get(name) ?? [];
      if (isTop && !files.includes(file)) this.#declaredBy.set(name, [...files, file]);
    }
  }

  /** Returns whether the file could be checked. */
  #attempt(file: URL, check: () => void): boolean {
    try {
      check();
      return true;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const message = error.message.replaceAll(this.#root, '');
      this.#complaints.add(/^\S+\.lua:\d+: /.test(message) ? message : `${this.nameOf(file)}:1: ${message}`);
      return false;
    }
  }
}

class ScriptRules {
  readonly #rules: LuaRules;
  readonly #script: URL;
  readonly #places: Place[];
  readonly #text: string;
  /** The same as Redis has it. */
  readonly #textInRedis: string;
  readonly #placesInRedis: Place[];
  readonly #headers: string;

  constructor(rules: LuaRules, script: URL, parts: readonly ScriptPart[]) {
    this.#rules = rules;
    this.#script = script;
    this.#places = placesOf(parts);
    this.#text = parts.map((part) => part.text).join('');
    const { early, late, own } = scriptLayout(parts);
    this.#placesInRedis = placesOf([...early, ...late, own]);
    this.#textInRedis = scriptText(parts);
    this.#headers = [...Map.groupBy(parts, (part) => part.file.href).values()].map(headerOf).join('\n');
  }

  check(): void {
    const scopes = this.#bind(this.#text, this.#places);
    this.#names(scopes);
    this.#declarations(scopes);
    this.#includes(scopes);
    const scopesInRedis = this.#bind(this.#textInRedis, this.#placesInRedis);
    this.#limits(scopesInRedis);
    this.#exported(scopes, scopesInRedis);
    this.#arguments(scopes);
  }

  #place(line: number, places = this.#places): Place {
    // The end of the text is on a line of its own.
    return places[Math.min(line, places.length) - 1] ?? { file: this.#script, line };
  }

  #bind(text: string, places: Place[]): LuaScopes {
    try {
      return bindLua(text);
    } catch (error) {
      const { line, message } = error as { line?: number; message: string };
      throw new Error(`${this.#rules.at(this.#place(line ?? 1, places))}: ${message.replace(/^\[\d+:\d+\] /, '')}`, { cause: error });
    }
  }

  #names({ references, locals }: LuaScopes): void {
    for (const { name, line, local, isAssignment } of references) {
      if (local || (globals.has(name) && !isAssignment)) continue;
      const place = this.#place(line);
      const later = locals.find((each) => each.isTop && each.name === name);
      if (later) {
        const declared = this.#place(later.line);
        this.#rules.complain(place, `uses ${name} before ${this.#rules.at(declared)} declares it`);
        if (declared.file.href !== place.file.href && declared.file.href !== this.#script.href)
          this.#rules.noteUse(place.file, declared.file);
      } else if (isAssignment) this.#rules.complain(place, `assigns to the global ${name}, which Redis refuses`);
      else this.#undeclared(name, place);
    }
  }

  #undeclared(name: string, place: Place): void {
    const files = this.#rules.declarationsOf(name);
    const hint = files.length === 0 ? '' : `; ${files.map((file) => this.#rules.nameOf(file)).join(' and ')} declares it`;
    this.#rules.complain(place, `uses the global ${name}, which Redis does not have${hint}`);
    if (files.length === 1) this.#rules.noteUse(place.file, files[0]);
  }

  #declarations({ locals }: LuaScopes): void {
    const declared = new Map<string, LuaLocal>();
    for (const local of locals) {
      const place = this.#place(local.line);
      if ((local.kind === 'function' || local.kind === 'variable') && !local.name.startsWith('_')) this.#rules.noteLocal(place, local);
      if (!local.isTop) continue;
      const before = declared.get(local.name);
      if (before) this.#rules.complain(place, `declares ${local.name} again, after ${this.#rules.at(this.#place(before.line))}`);
      declared.set(local.name, local);
    }
  }

  /** Reports files that name an include that they do not use directly, or do not name one that they use. */
  #includes({ references }: LuaScopes): void {
    const used = new Set<string>();
    for (const { name, line, local } of references) {
      if (!local?.isTop) continue;
      const place = this.#place(line);
      const { file } = this.#place(local.line);
      if (file.href === place.file.href) continue;
      const named = includesOf(place.file).some((include) => include.file.href === file.href);
      if (!named) this.#rules.complain(place, `uses ${name} of ${this.#rules.nameOf(file)} without including that file`);
      used.add(`${place.file.href} ${file.href}`);
      this.#rules.noteUse(place.file, file);
    }
    for (const { file } of new Map(this.#places.map((place) => [place.file.href, place])).values()) {
      this.#rules.noteUse(file);
      const seen = new Set<string>();
      for (const include of includesOf(file)) {
        const place = { file, line: include.line };
        const name = this.#rules.nameOf(include.file);
        if (seen.has(include.file.href)) this.#rules.complain(place, `includes ${name} again`);
        else if (!used.has(`${file.href} ${include.file.href}`)) this.#rules.complain(place, `includes ${name} and uses nothing of it`);
        seen.add(include.file.href);
      }
    }
  }

  /** Reports what a file uses of an include that is created on first use and that is no function and no table: the layout does not export it. */
  #exported({ references }: LuaScopes, inRedis: LuaScopes): void {
    const global = new Set(references.filter(({ local }) => local === null).map(({ name }) => name));
    for (const { name, line, local } of inRedis.references)
      if (local === null && !globals.has(name) && !global.has(name))
        this.#rules.complain(
          this.#place(line, this.#placesInRedis),
          `uses ${name} of an include that is created on first use, and it is no function and no table`,
        );
  }

  #limits({ functions }: LuaScopes): void {
    for (const { line, locals, upvalues } of functions) {
      // The chunk is the script as a whole, whichever file its first line is of.
      const place = line === 1 ? { file: this.#script, line: 1 } : this.#place(line, this.#placesInRedis);
      this.#limit(place, locals, 'locals in scope at a time', warnedLocals, maxLocals);
      this.#limit(place, upvalues, 'locals of functions around it', warnedUpvalues, maxUpvalues);
    }
  }

  #limit(place: Place, count: number, what: string, warned: number, max: number): void {
    const sentence = `has ${count} ${what}; Lua allows ${max} per function`;
    if (count > max) this.#rules.complain(place, sentence);
    else if (count >= warned) this.#rules.warn(place, sentence);
  }

  /** Every use is in a header; what a header names is used, as far as no index is computed. */
  #arguments({ arguments: used }: LuaScopes): void {
    const documented = documentedArguments(this.#headers);
    for (const { list, index, line } of used) {
      if (documented[list].has(index ?? 'any')) continue;
      if (index === null && documented[list].size > 0) continue;
      const name = index === null ? list : `${list}[${index}]`;
      this.#rules.complain(this.#place(line), `uses ${name}, which no header says`);
    }
    // A key may be there for its slot alone.
    const values = used.filter((each) => each.list === 'ARGV');
    if (values.some(({ index }) => index === null)) return;
    for (const index of documented.ARGV)
      if (typeof index === 'number' && !values.some((each) => each.index === index))
        this.#rules.complain({ file: this.#script, line: 1 }, `says what ARGV[${index}] is and does not use it`);
  }
}

function placesOf(parts: readonly ScriptPart[]): Place[] {
  return parts.flatMap(({ file, line, text }) =>
    text
      .split('\n')
      .slice(0, -1)
      .map((_, k) => ({ file, line: line + k })),
  );
}

/** The comments with which a file begins. */
function headerOf(parts: readonly ScriptPart[]): string {
  const lines = parts
    .map((part) => part.text)
    .join('')
    .trimStart()
    .split('\n');
  const end = lines.findIndex((line) => !/^(--|#!)/.test(line));
  return lines
    .slice(0, end < 0 ? lines.length : end)
    .map((line) => line.replace(/^-- ?/, ''))
    .join('\n');
}

/** Indexes that headers name; `any`: a list as a whole, or what follows an index. */
function documentedArguments(headers: string): Record<'ARGV' | 'KEYS', Set<number | 'any'>> {
  const found = { ARGV: new Set<number | 'any'>(), KEYS: new Set<number | 'any'>() };
  let list: 'ARGV' | 'KEYS' | undefined;
  for (const [, word, index] of headers.matchAll(/\b(ARGV|KEYS|Reply|Answers)\b|\[(\d+)[^\]]*\]/g)) {
    if (index !== undefined) {
      if (list) found[list].add(Number(index));
    } else {
      list = word === 'ARGV' || word === 'KEYS' ? word : undefined;
      if (list) found[list].add('any');
    }
  }
  return found;
}

function sorted(findings: ReadonlySet<string>): string[] {
  const collator = new Intl.Collator('en', { numeric: true });
  return [...findings].sort(collator.compare);
}
