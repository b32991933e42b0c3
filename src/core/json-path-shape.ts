import type { JSONPathQuery, jsonpath } from 'json-p3';
import type { JsonP3 } from './json-path-work.ts';

/** Possible shapes of a document, or a part of it. An `object` has known members, a `map` has members of a known shape. */
export type PathShape =
  | { type: 'any' }
  | { type: 'text' }
  | { type: 'list'; of: PathShape }
  | { type: 'object'; members: Readonly<Record<string, PathShape>> }
  /** `nameProblem`: what is wrong with a name that no member has. */
  | { type: 'map'; of: readonly PathShape[]; nameProblem?: (name: string) => string | null };

type Selector = JSONPathQuery['segments'][number]['selectors'][number];
type Expression = InstanceType<typeof jsonpath.expressions.FilterExpression>;

/** Finds in paths what finds nothing in any document of a shape. */
export class PathShapeCheck {
  readonly #package: JsonP3;
  readonly #root: PathShape;
  readonly #isPattern: (pattern: string) => boolean;

  constructor(jsonP3: JsonP3, { root, isPattern }: { root: PathShape; isPattern: (pattern: string) => boolean }) {
    this.#package = jsonP3;
    this.#root = root;
    this.#isPattern = isPattern;
  }

  /** The path part that can match nothing, and why; null: all of it may match something. */
  problemOf(query: JSONPathQuery): string | null {
    try {
      this.#walk(query, [this.#root]);
      return null;
    } catch (error) {
      if (error instanceof Fruitless) return error.message;
      throw error;
    }
  }

  /** Throws Fruitless. */
  #walk({ segments }: JSONPathQuery, from: readonly PathShape[]): void {
    let shapes = from;
    for (const segment of segments) {
      const isDescendant = segment.toString().startsWith('..');
      const looked = isDescendant ? withParts(shapes) : shapes;
      shapes = segment.selectors.flatMap((selector) => this.#select(selector, looked));
    }
  }

  /** Result shapes of the selector in one of the shapes. */
  #select(selector: Selector, from: readonly PathShape[]): PathShape[] {
    const found: PathShape[] = [];
    let problem: Fruitless | null = null;
    for (const shape of from) {
      try {
        found.push(...this.#selected(selector, shape));
      } catch (error) {
        if (!(error instanceof Fruitless)) throw error;
        problem ??= error;
      }
    }
    if (found.length === 0 && problem !== null) throw problem;
    return found;
  }

  #nameOf(selector: Selector): string {
    const { FilterSelector, IndexSelector, SliceSelector, WildcardSelector } = this.#package.jsonpath.selectors;
    if (selector instanceof SliceSelector) return 'a slice';
    if (selector instanceof IndexSelector) return `the index ${selector}`;
    if (selector instanceof WildcardSelector) return 'a wildcard';
    return selector instanceof FilterSelector ? 'a filter' : selector.toString();
  }

  #selected(selector: Selector, shape: PathShape): readonly PathShape[] {
    const { FilterSelector, IndexSelector, NameSelector, SliceSelector } = this.#package.jsonpath.selectors;
    const nothing = (why: string): Fruitless => new Fruitless(`${this.#nameOf(selector)} can match nothing: ${why}`);
    if (selector instanceof SliceSelector && isEmptySlice(selector)) throw nothing('it is empty');
    if (selector instanceof FilterSelector) this.#checkFilter(selector.expression, childrenOf(shape));
    if (shape.type === 'any') return [shape];
    if (shape.type === 'text') throw nothing('a text has no members');
    const isElement = selector instanceof IndexSelector || selector instanceof SliceSelector;
    const isName = selector instanceof NameSelector;
    if (isName ? shape.type === 'list' : isElement && shape.type !== 'list')
      throw nothing(isName ? 'a list has no names' : 'an object has no indexes');
    if (!isName || shape.type === 'list') return childrenOf(shape);
    if (shape.type === 'object') {
      const member = Object.hasOwn(shape.members, selector.name) ? shape.members[selector.name] : undefined;
      if (member === undefined) throw nothing(`the members are ${Object.keys(shape.members).join(', ')}`);
      return [member];
    }
    const problem = shape.nameProblem?.(selector.name) ?? null;
    if (problem !== null) throw nothing(problem);
    return shape.of;
  }

  #checkFilter(expression: Expression, current: readonly PathShape[]): void {
    const { FunctionExtension, InfixExpression, LogicalExpression, PrefixExpression, RelativeQuery, RootQuery } =
      this.#package.jsonpath.expressions;
    if (expression instanceof LogicalExpression) this.#checkFilter(expression.expression, current);
    if (expression instanceof PrefixExpression) this.#checkFilter(expression.right, current);
    if (expression instanceof RelativeQuery && current.length > 0) this.#walk(expression.path, current);
    if (expression instanceof RootQuery) this.#walk(expression.path, [this.#root]);
    if (expression instanceof FunctionExtension) {
      this.#checkPattern(expression.name, expression.args[1]);
      for (const argument of expression.args) this.#checkFilter(argument, current);
    }
    if (!(expression instanceof InfixExpression)) return;
    this.#checkFilter(expression.left, current);
    this.#checkFilter(expression.right, current);
    this.#checkOrder(expression);
  }

  #checkPattern(name: string, pattern: Expression | undefined): void {
    if (name !== 'match' && name !== 'search') return;
    if (pattern instanceof this.#package.jsonpath.expressions.StringLiteral && !this.#isPattern(pattern.value))
      throw new Fruitless(`${pattern} can match nothing: it is no regular expression of RFC 9485, or a too large one`);
  }

  #checkOrder({ left, operator, right }: InstanceType<typeof jsonpath.expressions.InfixExpression>): void {
    const { BooleanLiteral, NullLiteral } = this.#package.jsonpath.expressions;
    if (operator !== '<' && operator !== '>') return;
    for (const side of [left, right])
      if (side instanceof BooleanLiteral || side instanceof NullLiteral)
        throw new Fruitless(`a comparison by ${operator} can match nothing: ${side} is neither more nor less than another value`);
  }
}

class Fruitless extends Error {}

function childrenOf(shape: PathShape): PathShape[] {
  switch (shape.type) {
    case 'any':
      return [shape];
    case 'text':
      return [];
    case 'list':
      return [shape.of];
    case 'object':
      return Object.values(shape.members);
    case 'map':
      return [...shape.of];
    default:
      return shape satisfies never;
  }
}

/** With all that is in them: shapes have no circles. */
function withParts(shapes: readonly PathShape[]): PathShape[] {
  return shapes.flatMap((shape) => (shape.type === 'any' ? [shape] : [shape, ...withParts(childrenOf(shape))]));
}

function isEmptySlice({
  start,
  stop,
  step = 1,
}: {
  start?: number | undefined;
  stop?: number | undefined;
  step?: number | undefined;
}): boolean {
  if (step === 0) return true;
  if (step > 0 && stop === 0) return true;
  const first = start ?? (step > 0 ? 0 : -1);
  if (stop === undefined || first < 0 !== stop < 0) return false;
  return step > 0 ? first >= stop : first <= stop;
}
