import type { FilterFunction, JSONPathEnvironment, JSONPathNode, JSONPathQuery, jsonpath } from 'json-p3';
import type { RE2JS } from 're2js';
import { compileCost, patternLimits, withBoundedStates } from './bounded-pattern.ts';
import { ExactNumber, isContainer, jsonNumber } from './exact-number.ts';
import { isComparisonMet } from './json-path-comparison.ts';
import { WorkBudget, WorkExceededError } from './work-budget.ts';

export type JsonP3 = typeof import('json-p3');
type Value = JSONPathNode['value'];
type Selector = JSONPathQuery['segments'][number]['selectors'][number];
type Expression = InstanceType<typeof jsonpath.expressions.FilterExpression>;

export const pathLimits = {
  /** Nanoseconds that an evaluation may take by what its parts are known to cost. */
  workNs: 50_000_000,
  /** Levels that a descendant segment goes down. */
  nesting: 100,
  /** Found values, over all segments of a path. */
  nodes: 100_000,
};

/** Nanoseconds, measured. */
const costs = {
  /** A selector that is applied to a value. */
  selector: 100,
  /** A value that is found. */
  node: 200,
  /** An object or list that a descendant segment comes upon. */
  container: 120,
  /** An element of a list, or a member of an object, that is visited. */
  item: 40,
  member: 300,
  /** A part of a filter, for each member. */
  part: 150,
  /** An element, or a member, that is compared with another one. */
  comparedItem: 200,
  comparedMember: 800,
  /** A number that is compared with its digits, beside what they cost. */
  exactNumber: 1000,
  /** Instruction × character of a pattern. */
  matchStep: 50,
  /** A pattern, beside what its parts cost by `compileCost`. */
  pattern: 50_000,
  compiled: 150,
};

export interface LinearRegex {
  regex: RE2JS;
  size: number;
}

/** Budget of the current evaluation. Evaluations are synchronous and do not overlap. */
interface Running {
  work: WorkBudget;
  /** Numbers of members, by object. */
  sizes: WeakMap<object, number>;
  /** Costs of comparing all of an object or list. */
  weights: WeakMap<object, number>;
  /** Null: no pattern. */
  patterns: Map<string, LinearRegex | null>;
}

/** Evaluates the queries of an environment within `pathLimits`. */
export class JsonPathWork {
  readonly #package: JsonP3;
  readonly #compile: (pattern: string) => LinearRegex | null;
  #running: Running | null = null;

  constructor(jsonP3: JsonP3, compile: (pattern: string) => LinearRegex | null) {
    this.#package = jsonP3;
    this.#compile = compile;
  }

  /** Puts the functions whose work depends on their arguments into the environment. */
  register(environment: JSONPathEnvironment): void {
    const { FunctionExpressionType, Nothing } = this.#package;
    const { ValueType, LogicalType } = FunctionExpressionType;
    const matching = (test: (regex: RE2JS, text: string) => boolean): FilterFunction => ({
      argTypes: [ValueType, ValueType],
      returnType: LogicalType,
      call: (text: unknown, pattern: unknown) =>
        typeof text === 'string' && typeof pattern === 'string' && this.#matches(pattern, text, test),
    });
    environment.functionRegister.set(
      'match',
      matching((regex, text) => regex.testExact(text)),
    );
    environment.functionRegister.set(
      'search',
      matching((regex, text) => regex.test(text)),
    );
    environment.functionRegister.set('length', {
      argTypes: [ValueType],
      returnType: ValueType,
      call: (value: unknown) =>
        typeof value === 'string'
          ? this.#charactersOf(value)
          : isContainer(value)
            ? this.#sizeOf(value as Record<string, unknown>)
            : Nothing,
    });
  }

  /** The query, and those in its filters, are changed so that they spend what they cost. */
  charge({ segments }: JSONPathQuery): void {
    for (const segment of segments) {
      const isDescendant = segment.toString().startsWith('..');
      const selectors = segment.selectors.map((selector) => ({ selector, partsPerMember: this.#partsPerMember(selector) }));
      segment.resolve = (nodes) => {
        const found: JSONPathNode[] = [];
        for (const node of nodes) {
          if (isDescendant) this.#descend(node.value, 1, (value) => this.#select(this.#nodeOf(value, node.root), selectors, found));
          else this.#select(node, selectors, found);
        }
        return found;
      };
    }
  }

  /** The values that a charged query finds. Throws WorkExceededError. A document that is nested too deeply, or in which too many are found, has none. */
  values({ segments }: JSONPathQuery, document: Value): unknown[] {
    const work = new WorkBudget(pathLimits.workNs, 'the path takes too long for this document');
    this.#running = { work, sizes: new WeakMap(), weights: new WeakMap(), patterns: new Map() };
    try {
      let nodes = [this.#nodeOf(document, document)];
      let count = 0;
      for (const segment of segments) {
        nodes = segment.resolve(nodes);
        count += nodes.length;
        if (count > pathLimits.nodes) return [];
      }
      return nodes.map(({ value }) => value);
    } catch (error) {
      if (error instanceof WorkExceededError) throw error;
      return [];
    } finally {
      this.#running = null;
    }
  }

  get #now(): Running {
    if (this.#running === null) throw new Error('no evaluation is running');
    return this.#running;
  }

  #nodeOf(value: Value, root: Value): JSONPathNode {
    return new this.#package.JSONPathNode(value, [], root);
  }

  #descend(value: Value, depth: number, visit: (value: Value) => void): void {
    if (!isContainer(value)) return;
    if (depth >= pathLimits.nesting) throw new RangeError('nested too deeply');
    this.#now.work.spend(costs.container);
    visit(value);
    const members = this.#membersOf(value);
    for (const member of members) this.#descend(member, depth + 1, visit);
  }

  #select(node: JSONPathNode, selectors: readonly { selector: Selector; partsPerMember: number | null }[], found: JSONPathNode[]): void {
    const { value } = node;
    if (!isContainer(value)) return;
    const { work } = this.#now;
    for (const { selector, partsPerMember } of selectors) {
      work.spend(costs.selector + (partsPerMember === null ? 0 : this.#sizeOf(value) * (costs.item + partsPerMember * costs.part)));
      // A slice may be a small part of a long list: its values are found one by one.
      const isSlice = selector instanceof this.#package.jsonpath.selectors.SliceSelector;
      for (const each of isSlice ? selector.lazyResolve(node) : selector.resolve(node)) {
        work.spend(costs.node);
        found.push(each);
      }
    }
  }

  /** Null: it does not go through all members. */
  #partsPerMember(selector: Selector): number | null {
    const { FilterSelector, WildcardSelector } = this.#package.jsonpath.selectors;
    if (selector instanceof FilterSelector) return this.#partsOf(selector.expression);
    return selector instanceof WildcardSelector ? 0 : null;
  }

  /** Counts the parts of an expression; all of them are evaluated each time. Charges the comparisons and queries in it. */
  #partsOf(expression: Expression): number {
    const { FilterQuery, FunctionExtension, InfixExpression, LogicalExpression, PrefixExpression } = this.#package.jsonpath.expressions;
    if (expression instanceof LogicalExpression) return 1 + this.#partsOf(expression.expression);
    if (expression instanceof PrefixExpression) return 1 + this.#partsOf(expression.right);
    if (expression instanceof FunctionExtension) return expression.args.reduce((sum, each) => sum + this.#partsOf(each), 2);
    if (expression instanceof InfixExpression) {
      if (!expression.logical) this.#chargeComparison(expression);
      return 1 + this.#partsOf(expression.left) + this.#partsOf(expression.right);
    }
    if (!(expression instanceof FilterQuery)) return 1;
    this.charge(expression.path);
    return 2 + expression.path.segments.length;
  }

  #chargeComparison(comparison: InstanceType<typeof jsonpath.expressions.InfixExpression>): void {
    const { left, operator, right } = comparison;
    const [one, other] = [this.#operand(left), this.#operand(right)];
    comparison.evaluate = (context) => {
      const [before, after] = [one(context), other(context)];
      this.#now.work.spend(Math.min(this.#weightOf(before), this.#weightOf(after)));
      return isComparisonMet(before, operator, after);
    };
  }

  /** Reads one side of a comparison: undefined when there is nothing. */
  #operand(expression: Expression): (context: Parameters<Expression['evaluate']>[0]) => unknown {
    const { JSONPathNodeList, Nothing } = this.#package;
    if (expression instanceof this.#package.jsonpath.expressions.NumberLiteral) {
      const number = jsonNumber(expression.token.value);
      return () => number;
    }
    return (context) => {
      const value: unknown = expression.evaluate(context);
      if (value instanceof JSONPathNodeList) return value.nodes[0]?.value;
      return value === Nothing ? undefined : value;
    };
  }

  #membersOf<T>(value: Record<string, T> | T[]): T[] {
    const isList = Array.isArray(value);
    const members = isList ? value : Object.values(value);
    this.#now.work.spend(members.length * (isList ? costs.item : costs.member));
    return members;
  }

  #sizeOf(value: unknown[] | Record<string, unknown>): number {
    if (Array.isArray(value)) return value.length;
    const { sizes } = this.#now;
    const known = sizes.get(value);
    if (known !== undefined) return known;
    const size = this.#membersOf(value).length;
    sizes.set(value, size);
    return size;
  }

  #weightOf(value: unknown): number {
    if (typeof value === 'string') return value.length;
    if (value instanceof ExactNumber) return costs.exactNumber + value.text.length;
    if (!isContainer(value)) return 0;
    const { weights } = this.#now;
    const known = weights.get(value);
    if (known !== undefined) return known;
    const own = Array.isArray(value) ? costs.comparedItem : costs.comparedMember;
    const weight = this.#membersOf<unknown>(value as Record<string, unknown>).reduce(
      (sum: number, member) => sum + own + this.#weightOf(member),
      own,
    );
    weights.set(value, weight);
    return weight;
  }

  /** Unicode scalar values, RFC 9535 section 2.4.4. */
  #charactersOf(text: string): number {
    this.#now.work.spend(2 * text.length);
    let pairs = 0;
    for (let i = 0; i < text.length; i++) if ((text.codePointAt(i) ?? 0) > 0xffff) pairs++;
    return text.length - pairs;
  }

  #matches(pattern: string, text: string, test: (regex: RE2JS, text: string) => boolean): boolean {
    const compiled = this.#compiled(pattern);
    if (compiled === null) return false;
    this.#now.work.spend(compiled.size * text.length * costs.matchStep);
    return test(withBoundedStates(compiled.regex), text);
  }

  /** A pattern may be in the document, too. Its cost is the same whether or not it is cached. */
  #compiled(pattern: string): LinearRegex | null {
    const { patterns, work } = this.#now;
    const known = patterns.get(pattern);
    if (known !== undefined) return known;
    if (pattern.length > patternLimits.length) return null;
    const cost = compileCost(pattern);
    work.spend(costs.pattern + costs.compiled * cost);
    const compiled = cost > patternLimits.compileCost ? null : this.#compile(pattern);
    patterns.set(pattern, compiled);
    return compiled;
  }
}
