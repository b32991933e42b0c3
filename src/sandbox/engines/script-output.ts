import {
  type AnonymousFunctionDeclaration,
  type AnyNode,
  type ArrowFunctionExpression,
  type Expression,
  type FunctionDeclaration,
  type FunctionExpression,
  type ModuleDeclaration,
  type Pattern,
  parse,
  type Statement,
  type Token,
  tokTypes,
  type VariableDeclarator,
} from 'acorn';
import { LRUCache } from 'lru-cache';

/** A script whose output can only be that of a function `transform`, because no statement has a value, or that has none for any event. */
export interface ValuelessScript {
  /** Error when there is no such function once it has run. */
  complaint: string;
  /** True without running it. */
  isCertain: boolean;
}

const name = 'transform';

const returnsNothing = 'the function has no return with a value, so that no event would be delivered';

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
  const found = known.get(code) ?? { valueless: analyze(code) };
  known.set(code, found);
  return found.valueless;
}

function analyze(code: string): ValuelessScript | null {
  let body: (Statement | ModuleDeclaration)[];
  const tokens: Token[] = [];
  try {
    ({ body } = parse(code, { ecmaVersion: 'latest', sourceType: 'script', onToken: tokens }));
  } catch {
    return null;
  }
  if (body.some(hasValue)) return hasReturn(functionAtEnd(body)) ? null : { complaint: returnsNothing, isCertain: true };
  const bindings = body.flatMap(bindingsOfTransform);
  if (bindings.length > 0) {
    const [only, ...others] = body.flatMap(functionsOfTransform);
    if (only !== undefined && others.length === 0 && bindings.length === 1 && !hasReturn(only))
      return { complaint: returnsNothing, isCertain: true };
    return { complaint: 'transform is not a function', isCertain: !bindings.includes('callable') };
  }
  return { complaint: 'the code neither defines a function "transform" nor has a value', isCertain: !mayAssign(code, tokens) };
}

/** An initializer, or what it calls, may make it a property of the global object; what a block declares for itself is none. */
function mayAssign(code: string, tokens: readonly Token[]): boolean {
  return tokens.some(({ type, start, end }, i) => {
    if (type === tokTypes.string) return code.slice(start + 1, end - 1) === name;
    const before = tokens[i - 1];
    const isDeclared = before !== undefined && /^(?:let|const)$/.test(code.slice(before.start, before.end));
    return !isDeclared && tokens[i + 1]?.type === tokTypes.eq && code.slice(start, end) === name;
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
    default: {
      const inner = innerStatements(statement);
      if (inner.length === 0) return statement.type !== 'BlockStatement';
      return neverEnds(statement) || inner.some(hasValue);
    }
  }
}

/** The statements of blocks, branches and loops, one level down. */
function innerStatements(statement: Statement | ModuleDeclaration): Statement[] {
  switch (statement.type) {
    case 'BlockStatement':
      return statement.body;
    case 'IfStatement':
      return [statement.consequent, ...(statement.alternate == null ? [] : [statement.alternate])];
    case 'ForStatement':
    case 'ForInStatement':
    case 'ForOfStatement':
    case 'WhileStatement':
    case 'DoWhileStatement':
    case 'LabeledStatement':
    case 'WithStatement':
      return [statement.body];
    case 'SwitchStatement':
      return statement.cases.flatMap(({ consequent }) => consequent);
    case 'TryStatement':
      return [statement.block, statement.handler?.body, statement.finalizer].filter((each) => each != null);
    default:
      return [];
  }
}

type Callable = FunctionDeclaration | AnonymousFunctionDeclaration | FunctionExpression | ArrowFunctionExpression;

/** The function that is the value of the script's last expression; null: none, or its text does not show it. */
function functionAtEnd(body: readonly (Statement | ModuleDeclaration)[]): Callable | null {
  const last = body.findLast((each) => hasValue(each) || (each.type !== 'BlockStatement' && innerStatements(each).length > 0));
  if (last?.type !== 'ExpressionStatement') return null;
  return functionIn(last.expression.type === 'AssignmentExpression' ? last.expression.right : last.expression);
}

function functionIn(expression: Expression | null | undefined): Callable | null {
  return expression?.type === 'FunctionExpression' || expression?.type === 'ArrowFunctionExpression' ? expression : null;
}

/** The functions that declarations bind to the name `transform`, if their text shows them. */
function functionsOfTransform(statement: Statement | ModuleDeclaration): Callable[] {
  if (statement.type === 'FunctionDeclaration') return statement.id.name === name ? [statement] : [];
  if (statement.type !== 'VariableDeclaration') return [];
  return statement.declarations.flatMap(({ id, init }) => (id.type === 'Identifier' && id.name === name ? (functionIn(init) ?? []) : []));
}

/**
 * Whether the function may return something. One without statements is meant to return nothing; one that ends by a throw, or in a loop, has no output that
 * goes unnoticed.
 */
function hasReturn(called: Callable | null): boolean {
  if (called === null || called.generator || called.body.type !== 'BlockStatement') return true;
  const { body } = called.body;
  const last = body.at(-1);
  return last === undefined || neverEnds(last) || body.some(returnsSomething);
}

function neverEnds(statement: Statement | ModuleDeclaration): boolean {
  if (statement.type === 'ForStatement') return statement.test == null;
  return statement.type === 'ThrowStatement' || (statement.type === 'WhileStatement' && statement.test.type === 'Literal');
}

function returnsSomething(statement: Statement): boolean {
  if (statement.type === 'ReturnStatement') return statement.argument != null;
  return innerStatements(statement).some(returnsSomething);
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
      return innerStatements(statement).flatMap(hoistedBindings);
  }
}

/** What a block binds outside of it, too: by `var`, or as a function. */
function hoistedBindings(statement: Statement): Binding[] {
  return statement.type === 'VariableDeclaration' && statement.kind !== 'var' ? [] : bindingsOfTransform(statement);
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
