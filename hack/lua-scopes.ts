import luaparse from 'luaparse';

/** A local of a chunk. */
export interface LuaLocal {
  name: string;
  line: number;
  kind: 'function' | 'variable' | 'parameter' | 'loop';
  /** Whether it is declared at the top of the chunk, outside of any block and function. */
  isTop: boolean;
  /** Lines that read it; the recursion of a function is none. */
  reads: number[];
}

/** A name that is read, or assigned to. */
export interface LuaReference {
  name: string;
  line: number;
  /** Null: a global. */
  local: LuaLocal | null;
  isAssignment: boolean;
}

/** A function, or the chunk itself, with what Lua 5.1 limits. */
export interface LuaFunction {
  line: number;
  /** How many locals are in scope at a time, at most; the hidden ones of loops with them. */
  locals: number;
  /** How many locals of functions around it the function and those in it use. */
  upvalues: number;
}

export interface LuaScopes {
  locals: LuaLocal[];
  references: LuaReference[];
  functions: LuaFunction[];
  /** `ARGV[2]`, `KEYS[1]`; null: an index that is computed, or the whole list. */
  arguments: { list: 'ARGV' | 'KEYS'; index: number | null; line: number }[];
}

interface OpenFunction {
  declared: LuaFunction;
  /** Null: the chunk, and functions without a local name. */
  itself: LuaLocal | null;
  active: number;
  upvalues: Set<LuaLocal>;
}

/** Binds the names of a text of Lua 5.1 to their locals, as its compiler does. Throws an error of luaparse, with `line`, where the text does not parse. */
export function bindLua(text: string): LuaScopes {
  const chunk = luaparse.parse(text, { luaVersion: '5.1', locations: true, comments: false });
  return new Binder().bind(chunk);
}

class Binder {
  readonly #scopes: LuaScopes = { locals: [], references: [], functions: [], arguments: [] };
  /** Blocks from the outermost on; of a name the newest declaration counts. */
  readonly #blocks: Map<string, { local: LuaLocal; depth: number }>[] = [];
  readonly #open: OpenFunction[] = [];

  bind(chunk: luaparse.Chunk): LuaScopes {
    this.#function(1, null, () => this.#block(chunk.body));
    return this.#scopes;
  }

  #function(line: number, itself: LuaLocal | null, body: () => void): void {
    const declared: LuaFunction = { line, locals: 0, upvalues: 0 };
    this.#scopes.functions.push(declared);
    const open: OpenFunction = { declared, itself, active: 0, upvalues: new Set() };
    this.#open.push(open);
    body();
    this.#open.pop();
    declared.upvalues = open.upvalues.size;
  }

  /** `hidden`: how many locals without a name Lua keeps for the block; `before`, `after`: what belongs to its scope besides its statements. */
  #block(statements: readonly luaparse.Statement[], hidden = 0, before?: () => void, after?: () => void): void {
    const open = this.#top();
    const active = open.active;
    this.#occupy(hidden);
    this.#blocks.push(new Map());
    before?.();
    for (const statement of statements) this.#visit(statement);
    after?.();
    this.#blocks.pop();
    open.active = active;
  }

  #top(): OpenFunction {
    const open = this.#open.at(-1);
    if (!open) throw new Error('outside of the chunk');
    return open;
  }

  #occupy(count: number): void {
    const open = this.#top();
    open.active += count;
    open.declared.locals = Math.max(open.declared.locals, open.active);
  }

  #declare(identifier: luaparse.Identifier, kind: LuaLocal['kind']): LuaLocal {
    const isTop = this.#blocks.length === 1;
    const local: LuaLocal = { name: identifier.name, line: lineOf(identifier), kind, isTop, reads: [] };
    this.#scopes.locals.push(local);
    this.#blocks.at(-1)?.set(local.name, { local, depth: this.#open.length });
    this.#occupy(1);
    return local;
  }

  #refer(identifier: luaparse.Identifier, isAssignment: boolean): void {
    const { name } = identifier;
    const found = this.#blocks.findLast((block) => block.has(name))?.get(name);
    const local = found?.local ?? null;
    const line = lineOf(identifier);
    this.#scopes.references.push({ name, line, local, isAssignment });
    if (!found) {
      if (name === 'ARGV' || name === 'KEYS') this.#scopes.arguments.push({ list: name, index: null, line });
      return;
    }
    for (const open of this.#open.slice(found.depth)) open.upvalues.add(found.local);
    const isRecursion = this.#open.some(({ itself }) => itself === local);
    if (!isAssignment && !isRecursion) found.local.reads.push(line);
  }

  #visit(node: luaparse.Node): void {
    switch (node.type) {
      case 'Identifier':
        this.#refer(node, false);
        return;
      case 'LocalStatement':
        // What they begin with does not see them yet.
        for (const value of node.init) this.#visit(value);
        for (const variable of node.variables) this.#declare(variable, 'variable');
        return;
      case 'AssignmentStatement':
        for (const value of node.init) this.#visit(value);
        for (const variable of node.variables) {
          if (variable.type === 'Identifier') this.#refer(variable, true);
          else this.#visit(variable);
        }
        return;
      case 'FunctionDeclaration':
        this.#functionDeclaration(node);
        return;
      case 'ForNumericStatement':
        for (const bound of [node.start, node.end, node.step]) if (bound) this.#visit(bound);
        this.#block(node.body, 3, () => this.#declare(node.variable, 'loop'));
        return;
      case 'ForGenericStatement':
        for (const iterator of node.iterators) this.#visit(iterator);
        this.#block(node.body, 3, () => {
          for (const variable of node.variables) this.#declare(variable, 'loop');
        });
        return;
      case 'RepeatStatement':
        this.#block(node.body, 0, undefined, () => this.#visit(node.condition));
        return;
      case 'WhileStatement':
      case 'IfClause':
      case 'ElseifClause':
        this.#visit(node.condition);
        this.#block(node.body);
        return;
      case 'DoStatement':
      case 'ElseClause':
        this.#block(node.body);
        return;
      case 'MemberExpression':
        this.#visit(node.base);
        return;
      case 'TableKeyString':
        this.#visit(node.value);
        return;
      case 'IndexExpression':
        this.#index(node);
        return;
      default:
        for (const child of childrenOf(node)) this.#visit(child);
    }
  }

  #functionDeclaration(node: luaparse.FunctionDeclaration): void {
    let itself: LuaLocal | null = null;
    if (node.identifier?.type === 'Identifier') {
      if (node.isLocal) itself = this.#declare(node.identifier, 'function');
      else this.#refer(node.identifier, true);
    } else if (node.identifier) this.#visit(node.identifier);
    this.#function(lineOf(node), itself, () =>
      this.#block(node.body, 0, () => {
        for (const parameter of node.parameters) if (parameter.type === 'Identifier') this.#declare(parameter, 'parameter');
      }),
    );
  }

  #index(node: luaparse.IndexExpression): void {
    const { base, index } = node;
    if (base.type === 'Identifier' && (base.name === 'ARGV' || base.name === 'KEYS') && index.type === 'NumericLiteral')
      this.#scopes.arguments.push({ list: base.name, index: index.value, line: lineOf(base) });
    else {
      this.#visit(base);
      this.#visit(index);
    }
  }
}

/** Parts of a node that declares nothing and opens no block, in the order of the text. */
function childrenOf(node: luaparse.Node): luaparse.Node[] {
  switch (node.type) {
    case 'ReturnStatement':
      return node.arguments;
    case 'IfStatement':
      return node.clauses;
    case 'CallStatement':
      return [node.expression];
    case 'TableConstructorExpression':
      return node.fields;
    case 'TableKey':
      return [node.key, node.value];
    case 'TableValue':
      return [node.value];
    case 'UnaryExpression':
      return [node.argument];
    case 'BinaryExpression':
    case 'LogicalExpression':
      return [node.left, node.right];
    case 'CallExpression':
      return [node.base, ...node.arguments];
    case 'TableCallExpression':
      return [node.base, node.arguments];
    case 'StringCallExpression':
      return [node.base, node.argument];
    default:
      return [];
  }
}

function lineOf(node: luaparse.Node): number {
  return node.loc?.start.line ?? 0;
}
