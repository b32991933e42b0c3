import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import luaparse from 'luaparse';
import { type FieldTables, snakeCase } from '../src/redis/script-text.ts';

/** How many arguments lie between two fields of each command; 0: it has one field. */
const commands = new Map([
  ...['HGET', 'HEXISTS', 'HINCRBY', 'HINCRBYFLOAT', 'HSETNX', 'HSTRLEN'].map((name) => [name, 0] as const),
  ...['HMGET', 'HDEL'].map((name) => [name, 1] as const),
  ...['HSET', 'XADD'].map((name) => [name, 2] as const),
]);

/** What the key of a hash or stream begins with → its table, or tables. `KEYS[3]` stands for that key of a script. */
export type HashKeys = Readonly<Record<string, string | readonly string[]>>;

/**
 * Returns a complaint for each field of a hash, or of an entry of a stream, with a table that a file names by its short name, or takes from the table of another hash. A hash is known where its key
 * is `P .. '<prefix>' .. …`, a local with that value, `ctl`, or `KEYS[<number>]`. The names of the complaints are relative to `root`.
 */
export function misnamedFields(files: readonly URL[], tables: FieldTables, keys: HashKeys, root: URL): string[] {
  return files.flatMap((file) => {
    const name = relative(fileURLToPath(root), fileURLToPath(file));
    return new FieldRules(tables, keys).check(readFileSync(file, 'utf8')).map(({ line, what }) => `${name}:${line}: ${what}`);
  });
}

class FieldRules {
  readonly #tables: FieldTables;
  readonly #keys: HashKeys;
  readonly #found: { line: number; what: string }[] = [];
  /** Locals of open blocks, from the outermost on: local → prefix of the key that it has; null: another value. */
  readonly #scopes: Map<string, string | null>[] = [];

  constructor(tables: FieldTables, keys: HashKeys) {
    this.#tables = tables;
    this.#keys = keys;
  }

  check(text: string): { line: number; what: string }[] {
    try {
      this.#visit(luaparse.parse(text, { luaVersion: '5.1', locations: true, comments: false }));
    } catch (error) {
      // `luaFindings` reports a text that does not parse.
      if (!(error instanceof SyntaxError)) throw error;
    }
    return this.#found;
  }

  #visit(node: luaparse.Node): void {
    const opensScope = 'body' in node;
    if (opensScope) this.#scopes.push(new Map());
    if (node.type === 'FunctionDeclaration') for (const parameter of node.parameters) this.#declare(parameter, null);
    if (node.type === 'ForGenericStatement') for (const variable of node.variables) this.#declare(variable, null);
    if (node.type === 'ForNumericStatement') this.#declare(node.variable, null);
    for (const child of childrenOf(node)) this.#visit(child);
    if (node.type === 'LocalStatement') {
      const prefixes = node.variables.map((_, k) => this.#prefixOf(node.init[k]));
      for (const [k, variable] of node.variables.entries()) this.#declare(variable, prefixes[k] ?? null);
    }
    if (node.type === 'CallExpression') this.#call(node);
    if (opensScope) this.#scopes.pop();
  }

  #declare(variable: luaparse.Node, prefix: string | null): void {
    if (variable.type === 'Identifier') this.#scopes.at(-1)?.set(variable.name, prefix);
  }

  #prefixOf(key: luaparse.Node | undefined): string | null {
    if (key?.type === 'Identifier') {
      if (key.name in this.#keys) return key.name;
      return this.#scopes.findLast((each) => each.has(key.name))?.get(key.name) ?? null;
    }
    if (key?.type === 'IndexExpression' && key.base.type === 'Identifier' && key.index.type === 'NumericLiteral') {
      const name = `${key.base.name}[${key.index.value}]`;
      return name in this.#keys ? name : null;
    }
    if (key?.type !== 'BinaryExpression' || key.operator !== '..' || key.left.type !== 'Identifier' || key.left.name !== 'P') return null;
    // `..` binds to the right.
    const literal = key.right.type === 'BinaryExpression' ? key.right.left : key.right;
    const text = textOf(literal);
    return text !== null && text in this.#keys ? text : null;
  }

  #call(node: luaparse.CallExpression): void {
    const [command, key, ...rest] = node.arguments;
    const name = textOf(command);
    const step = commands.get(name ?? '');
    const prefix = this.#prefixOf(key);
    const hashes = prefix === null ? undefined : this.#keys[prefix];
    if (step === undefined || hashes === undefined) return;
    const named = name === 'XADD' ? rest.slice(textOf(rest[0]) !== 'MAXLEN' ? 1 : textOf(rest[1]) === '~' ? 4 : 3) : rest;
    const fields = step === 0 ? named.slice(0, 1) : named.filter((_, k) => k % step === 0);
    for (const field of fields) this.#field(field, [hashes].flat());
  }

  #field(field: luaparse.Node, hashes: readonly string[]): void {
    const line = field.loc?.start.line ?? 0;
    const complain = (what: string) => this.#found.push({ line, what });
    // A field may go on behind its word.
    const begin = field.type === 'BinaryExpression' && field.operator === '..' ? field.left : field;
    const text = textOf(begin);
    const named = hashes.flatMap((hash) =>
      Object.entries(this.#tables[hash] ?? {}).map(([word, short]) => ({ short, name: `F.${snakeCase(hash)}.${snakeCase(word)}` })),
    );
    const known = named.find(({ short }) => short === text);
    if (known) complain(`names a field '${text}', which is ${known.name}`);
    else if (text !== null && /^[a-z]{1,2}[: ]?$/.test(text))
      complain(`names a field '${text}', which the table of ${hashes.join(' or ')} does not have`);
    if (begin.type !== 'MemberExpression' || begin.base.type !== 'MemberExpression') return;
    const { base, identifier } = begin.base;
    const words = hashes.map(snakeCase);
    if (base.type === 'Identifier' && base.name === 'F' && !words.includes(identifier.name))
      complain(`takes a field of ${identifier.name} for a hash of ${words.join(' or ')}`);
  }
}

function textOf(node: luaparse.Node | undefined): string | null {
  return node?.type === 'StringLiteral' ? node.raw.slice(1, -1) : null;
}

function childrenOf(node: luaparse.Node): luaparse.Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is luaparse.Node => typeof value === 'object' && value !== null && 'type' in value);
}
