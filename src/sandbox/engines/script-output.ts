import {
  type AnyNode,
  type ModuleDeclaration,
  type Pattern,
  parse,
  type Statement,
  type Token,
  tokTypes,
  type VariableDeclarator,
} from 'acorn';
import { LRUCache } from 'lru-cache';

/** A script without a statement that has a value: its output can only be that of a function `transform`. */
export interface ValuelessScript {
  /** What is wrong when there is no such function once it has run. */
  complaint: string;
  /** Its text alone says that there is none. */
  isCertain: boolean;
}

const name = 'transform';

const known = new LRUCache<string, { valueless: ValuelessScript | null }>({ max: 200 });

/** What can never be called. */
const uncallable: ReadonlySet<AnyNode['type']> = new Set([
  'ArrayExpression',
  'BinaryExpression',
  'ClassExpression',
  'Literal',
  'ObjectExpression',
  'TemplateLiteral',
  'UnaryExpression',
  'UpdateExpression',
]);

/** Returns null for a script that may have a value, and for a text that does not parse: the interpreter reports its syntax error. */
export function valuelessScript(code: string): ValuelessScript | null {
  const found = known.get(code) ?? { valueless: judge(code) };
  known.set(code, found);
  return found.valueless;
}

function judge(code: string): ValuelessScript | null {
  let body: (Statement | ModuleDeclaration)[];
  const tokens: Token[] = [];
  try {
    ({ body } = parse(code, { ecmaVersion: 'latest', sourceType: 'script', onToken: tokens }));
  } catch {
    return null;
  }
  if (body.some(hasValue)) return null;
  const bindings = body.flatMap(bindingsOfTransform);
  if (bindings.length > 0) return { complaint: 'transform is not a function', isCertain: !bindings.includes('callable') };
  return { complaint: 'the code neither defines a function "transform" nor has a value', isCertain: !mayAssign(code, tokens) };
}

/** An initializer, or what it calls, may make it a property of the global object. */
function mayAssign(code: string, tokens: readonly Token[]): boolean {
  return tokens.some(({ type, start, end }, i) => {
    if (type === tokTypes.string) return code.slice(start + 1, end - 1) === name;
    return tokens[i + 1]?.type === tokTypes.eq && code.slice(start, end) === name;
  });
}

/** Whether the completion of a script may be what the statement comes to. */
function hasValue(statement: Statement | ModuleDeclaration): boolean {
  switch (statement.type) {
    case 'ExpressionStatement':
      return statement.directive !== 'use strict';
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
    case 'VariableDeclaration':
    case 'EmptyStatement':
    case 'DebuggerStatement':
      return false;
    default:
      return true;
  }
}

type Binding = 'callable' | 'uncallable';

/** What a declaration binds to the name `transform`. */
function bindingsOfTransform(statement: Statement | ModuleDeclaration): Binding[] {
  switch (statement.type) {
    case 'FunctionDeclaration':
      return statement.id.name === name ? ['callable'] : [];
    case 'ClassDeclaration':
      return statement.id.name === name ? ['uncallable'] : [];
    case 'VariableDeclaration':
      return statement.declarations.flatMap(bindingsOfDeclarator);
    default:
      return [];
  }
}

function bindingsOfDeclarator({ id, init }: VariableDeclarator): Binding[] {
  if (id.type !== 'Identifier') return binds(id) ? ['callable'] : [];
  if (id.name !== name) return [];
  return [init === null || init === undefined || uncallable.has(init.type) ? 'uncallable' : 'callable'];
}

/** Whether a pattern binds the name; what it binds is known only when it runs. */
function binds(pattern: Pattern): boolean {
  switch (pattern.type) {
    case 'Identifier':
      return pattern.name === name;
    case 'ObjectPattern':
      return pattern.properties.some((property) => binds(property.type === 'RestElement' ? property.argument : property.value));
    case 'ArrayPattern':
      return pattern.elements.some((element) => element !== null && binds(element));
    case 'AssignmentPattern':
      return binds(pattern.left);
    case 'RestElement':
      return binds(pattern.argument);
    case 'MemberExpression':
      return false;
    default:
      return pattern satisfies never;
  }
}
