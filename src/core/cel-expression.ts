import type { parse } from '@bufbuild/cel';

export const celGlobals = ['event', 'labels', 'metadata'] as const;

export type Expression = ReturnType<typeof parse>['expr'];

interface Checks {
  /** Names of what expressions see. */
  globals: readonly string[];
  isFunction(name: string): boolean;
  /** Throws. */
  refuse(complaint: string, at: Expression): never;
  /** The function that the list of a comprehension goes through before it is used. */
  wrapRange: string;
  /** The function that the condition of a comprehension goes through for each element. */
  wrapCondition: string;
}

interface Checked {
  expression: Expression;
  /** Expression that the comprehension evaluates for each element; 0: none. */
  partsPerElement: number;
  patterns: { source: string; expression: Expression }[];
}

const maxExpressions = 600;
const deepest = 100;
const typeNames = new Set(['bool', 'bytes', 'double', 'int', 'list', 'map', 'null_type', 'string', 'type', 'uint']);
/** Functions that the evaluator adds. */
const operators = new Set(['_&&_', '_||_', '_?_:_', '_[_]', '!_', '@not_strictly_false']);

/** Refuses unsupported or too costly expressions, before anything is evaluated. */
export function checkedExpression(root: Expression, checks: Checks): Checked {
  const patterns: Checked['patterns'] = [];
  let partsPerElement = 0;
  let count = 0;
  const isKnown = (name: string, locals: readonly string[]): boolean =>
    checks.globals.includes(name) || typeNames.has(name) || locals.includes(name);

  const visit = (node: Expression, depth: number, locals: readonly string[]): Expression => {
    if (++count > maxExpressions || depth > deepest) checks.refuse('the expression is too large', node);
    const { exprKind } = node;
    const child = (part: Expression | undefined): Expression => visit(part ?? checks.refuse('incomplete', node), depth + 1, locals);
    switch (exprKind.case) {
      case 'constExpr':
        return node;
      case 'identExpr':
        if (!isKnown(exprKind.value.name, locals)) checks.refuse(unknownName(exprKind.value.name, checks.globals), node);
        return node;
      case 'selectExpr': {
        const { operand, field } = exprKind.value;
        if (isEvent(operand) && field !== 'type' && field !== 'data') checks.refuse(`event has type and data, but no ${field}`, node);
        return { ...node, exprKind: { case: 'selectExpr', value: { ...exprKind.value, operand: child(operand) } } };
      }
      case 'callExpr': {
        const { function: name, target, args } = exprKind.value;
        if (!operators.has(name) && !checks.isFunction(name)) checks.refuse(`there is no function ${name}`, node);
        if (name === 'matches') patterns.push(patternOf(node, checks));
        return {
          ...node,
          exprKind: {
            case: 'callExpr',
            value: { ...exprKind.value, args: args.map(child), ...(target !== undefined && { target: child(target) }) },
          },
        };
      }
      case 'listExpr':
        return { ...node, exprKind: { case: 'listExpr', value: { ...exprKind.value, elements: exprKind.value.elements.map(child) } } };
      case 'structExpr': {
        if (exprKind.value.messageName !== '') checks.refuse(`there is no type ${exprKind.value.messageName}`, node);
        const entries = exprKind.value.entries.map((entry) => ({
          ...entry,
          ...(entry.keyKind.case === 'mapKey' && { keyKind: { case: 'mapKey' as const, value: child(entry.keyKind.value) } }),
          value: child(entry.value),
        }));
        return { ...node, exprKind: { case: 'structExpr', value: { ...exprKind.value, entries } } };
      }
      case 'comprehensionExpr': {
        const { iterVar, accuVar, iterRange, accuInit, loopCondition, loopStep, result } = exprKind.value;
        if (partsPerElement > 0) checks.refuse('at most one of all, exists, exists_one, filter and map', node);
        if (isKnown(iterVar, [])) checks.refuse(`${iterVar} has a meaning of its own; choose another name for the element`, node);
        const inside = (part: Expression | undefined): Expression =>
          visit(part ?? checks.refuse('incomplete', node), depth + 1, [...locals, iterVar, accuVar]);
        partsPerElement = 1;
        const range = wrapped(child(iterRange), checks.wrapRange);
        const before = count;
        const [condition, step] = [inside(loopCondition), inside(loopStep)];
        partsPerElement = count - before;
        const value = {
          ...exprKind.value,
          iterRange: range,
          accuInit: child(accuInit),
          loopCondition: wrapped(condition, checks.wrapCondition),
          loopStep: step,
          result: inside(result),
        };
        return { ...node, exprKind: { case: 'comprehensionExpr', value } };
      }
      default:
        return checks.refuse('the expression is empty', node);
    }
  };

  return { expression: visit(root, 1, []), partsPerElement, patterns };
}

function wrapped(part: Expression, name: string): Expression {
  return { ...part, exprKind: { case: 'callExpr', value: { $typeName: 'cel.expr.Expr.Call', function: name, args: [part] } } };
}

function isEvent(node: Expression | undefined): boolean {
  return node?.exprKind.case === 'identExpr' && node.exprKind.value.name === 'event';
}

function unknownName(name: string, globals: readonly string[]): string {
  const others = globals.filter((global) => global !== 'event');
  return `there is no ${name}: available are event.type, event.data, ${others.slice(0, -1).join(', ')} and ${others.at(-1)}`;
}

function patternOf(call: Expression, { refuse }: Checks): Checked['patterns'][number] {
  const { target, args } = call.exprKind.case === 'callExpr' ? call.exprKind.value : {};
  const [pattern] = args ?? [];
  const constant = pattern?.exprKind.case === 'constExpr' ? pattern.exprKind.value.constantKind : undefined;
  if (target === undefined || pattern === undefined || args?.length !== 1 || constant?.case !== 'stringValue') {
    return refuse('matches is written text.matches("pattern"), the pattern as text in quotes', call);
  }
  return { source: constant.value, expression: pattern };
}
