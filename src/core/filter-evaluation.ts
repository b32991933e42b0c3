import { hash } from 'node:crypto';
import { boundedPattern, compileCost, patternLimits, tooCostlyToCompile } from './bounded-pattern.ts';
import { PosthornError } from './errors.ts';
import { isContainer, isJsonNumber } from './exact-number.ts';
import { type FieldReader, type FilterContext, fieldReader, isHeaderField } from './filter-path.ts';
import { compare, equalTo, textOf } from './filter-values.ts';
import { base32 } from './ids.ts';
import type { FilterCondition, FilterDefinition, FilterOperator } from './records.ts';
import { includesText } from './text-search.ts';

export interface CompiledFilter {
  /** False: its conditions read headers alone. */
  readsPayload: boolean;
  /** Returns whether the event meets the filter, and yields after each condition. `shared`: what all filters of an event may cost together. */
  inPieces(context: FilterContext, shared?: MatchBudget): Generator<undefined, FilterVerdict>;
}

export interface FilterVerdict {
  isMet: boolean;
  /** Index of the condition that has decided; null: all of them have. */
  decidedBy: number | null;
}

/** Steps that the patterns of a filter may still take on this event. */
interface Budget {
  matchSteps: number;
  shared: MatchBudget | null;
}

type ReaderOf = (field: string) => FieldReader | string;
type Condition = (context: FilterContext, budget: Budget) => boolean;

/** Whether the value that the field names meets the condition; undefined: there is no such field. */
type Test = (actual: unknown, budget: Budget) => boolean;

export const filterLimits = {
  conditions: 50,
  fieldLength: 256,
  /** Characters. */
  patternLength: patternLimits.length,
  listLength: 1000,
  valueDepth: 32,
  /** Instructions × characters that all `matches` of a filter may cost for an event; a text for which too few are left does not match. */
  matchSteps: 4_000_000,
  /** The same for all filters of an event: about 500 ms at worst, in pieces of one match. */
  matchStepsOfEvent: 8_000_000,
};

/** Remaining cost budget of the patterns of all filters of one event, and how many texts they were not tried on. */
export class MatchBudget {
  #steps = filterLimits.matchStepsOfEvent;
  #untried = 0;

  get untried(): number {
    return this.#untried;
  }

  /** False: there are not so many left. */
  take(steps: number): boolean {
    if (steps > this.#steps) return false;
    this.#steps -= steps;
    return true;
  }

  noteUntried(): void {
    this.#untried++;
  }
}

/**
 * Compiles inline conditions. A condition on a field that is not there is false, except for
 * `not_exists` and the other negations, which are exactly the opposite of what they negate; a field that is `null` is
 * there. `contains`, `starts_with`, `ends_with` and `matches` read text (a number or boolean counts as JSON writes
 * it); `contains` also finds an equal element of an array. `matches` searches anywhere in the text (RE2 syntax). Equality
 * and order: `filter-values.ts`.
 *
 * Throws VALIDATION_FAILED, whose details name `conditions.<index>.field`, `.operator` or `.value`.
 */
export function compileFilter(definition: FilterDefinition, readerOf: ReaderOf = fieldReader): CompiledFilter {
  const readsPayload = definition.conditions.some(({ field }) => !isHeaderField(field));
  return { readsPayload, inPieces: joined(definition, compileConditions(definition, readerOf)) };
}

/** Distinguishes a filter from its form before and after a change, wherever its conditions are: in a route, or in a Filter that it refers to. */
export function filterFingerprint({ logic, conditions }: FilterDefinition): string {
  const text = JSON.stringify([logic, conditions.map(({ field, operator, value }) => [field, operator, value])]);
  return base32(hash('sha256', text, 'buffer').subarray(0, 10));
}

/** Matches no event. */
export const metByNone: CompiledFilter = { readsPayload: false, inPieces: joined({ logic: 'OR', conditions: [] }, []) };

/**
 * Whether the event meets the filter, and which of its conditions: in their order, within the same steps. Yields after each condition. Throws as
 * `compileFilter`, at once.
 */
export function tryFilter(definition: FilterDefinition, context: FilterContext): Generator<undefined, { isMet: boolean; met: boolean[] }> {
  return tried(definition, compileConditions(definition, fieldReader), context);
}

function* tried(
  definition: FilterDefinition,
  conditions: readonly Condition[],
  context: FilterContext,
): Generator<undefined, { isMet: boolean; met: boolean[] }> {
  const { isMet } = yield* joined(definition, conditions)(context);
  const budget = newBudget();
  const met: boolean[] = [];
  for (const condition of conditions) {
    met.push(condition(context, budget));
    yield;
  }
  return { isMet, met };
}

function joined({ logic }: FilterDefinition, conditions: readonly Condition[]): CompiledFilter['inPieces'] {
  const decisive = logic === 'OR';
  return function* (context, shared) {
    const budget = newBudget(shared);
    for (const [index, isMet] of conditions.entries()) {
      const isDecided = isMet(context, budget) === decisive;
      yield;
      if (isDecided) return { isMet: decisive, decidedBy: index };
    }
    return { isMet: !decisive, decidedBy: null };
  };
}

function newBudget(shared: MatchBudget | null = null): Budget {
  return { matchSteps: filterLimits.matchSteps, shared };
}

function compileConditions(definition: FilterDefinition, readerOf: ReaderOf): Condition[] {
  const details: Record<string, string[]> = {};
  if (definition.conditions.length === 0) details['conditions'] = ['must not be empty'];
  if (definition.conditions.length > filterLimits.conditions) details['conditions'] = [`must be at most ${filterLimits.conditions}`];
  const conditions: Condition[] = [];
  const tooCostly = firstTooCostly(definition.conditions);
  if (tooCostly !== null) details[`conditions.${tooCostly}.value`] = [tooCostlyToCompile];
  // Nothing is compiled of a filter that is refused for what that would cost.
  for (const [index, condition] of tooCostly === null ? definition.conditions.entries() : []) {
    const compiled = compileCondition(condition, readerOf);
    if (typeof compiled === 'function') conditions.push(compiled);
    else for (const [part, complaint] of Object.entries(compiled)) details[`conditions.${index}.${part}`] = [complaint];
  }
  if (Object.keys(details).length > 0) {
    throw new PosthornError(
      'VALIDATION_FAILED',
      `the filter is not valid: ${Object.entries(details)
        .map(([at, [why]]) => `${at}: ${why}`)
        .join('; ')}`,
      {
        details,
      },
    );
  }
  return conditions;
}

/** The condition with which the patterns cost too much; null when they do not. */
function firstTooCostly(conditions: readonly FilterCondition[]): number | null {
  let cost = 0;
  const index = conditions.findIndex((condition) => {
    cost += costOf(condition);
    return cost > patternLimits.compileCost;
  });
  return index < 0 ? null : index;
}

function costOf({ operator, value }: FilterCondition): number {
  return operator === 'matches' && typeof value === 'string' ? compileCost(value) : 0;
}

type Complaints = { field?: string; operator?: string; value?: string };

function compileCondition({ field, operator, value }: FilterCondition, readerOf: ReaderOf): Condition | Complaints {
  const complaints: Complaints = {};
  const read = field.length > filterLimits.fieldLength ? `must have at most ${filterLimits.fieldLength} characters` : readerOf(field);
  if (typeof read === 'string') complaints.field = read;
  const test = compileOperator(operator, value);
  if (test === null) complaints.operator = 'not a known operator';
  else if (typeof test === 'string') complaints.value = test;
  if (typeof read === 'string' || typeof test !== 'function') return complaints;
  return (context, budget) => test(read(context), budget);
}

/** The test of an operator, what is wrong with its value, or null when there is no such operator. */
function compileOperator(operator: FilterOperator, value: unknown): Test | string | null {
  switch (operator) {
    case 'exists':
      return withoutValue(value, (actual) => actual !== undefined);
    case 'not_exists':
      return withoutValue(value, (actual) => actual === undefined);
    case 'equals':
      return equality(value);
    case 'not_equals':
      return negated(equality(value));
    case 'contains':
      return containment(value);
    case 'not_contains':
      return negated(containment(value));
    case 'starts_with':
      return onText(value, (text, part) => text.startsWith(part));
    case 'ends_with':
      return onText(value, (text, part) => text.endsWith(part));
    case 'matches':
      return pattern(value);
    case 'gt':
      return order(value, (difference) => difference > 0);
    case 'gte':
      return order(value, (difference) => difference >= 0);
    case 'lt':
      return order(value, (difference) => difference < 0);
    case 'lte':
      return order(value, (difference) => difference <= 0);
    case 'in':
      return membership(value);
    case 'not_in':
      return negated(membership(value));
    default:
      // External input may name anything.
      operator satisfies never;
      return null;
  }
}

function negated(test: Test | string): Test | string {
  return typeof test === 'string' ? test : (actual, budget) => !test(actual, budget);
}

function withoutValue(value: unknown, test: Test): Test | string {
  return value === undefined || value === null ? test : 'must be left out: the operator takes none';
}

function equality(value: unknown): Test | string {
  if (value === undefined) return 'is required with this operator';
  if (isDeeperThan(value, filterLimits.valueDepth)) return `is nested deeper than ${filterLimits.valueDepth}`;
  const isEqual = equalTo(value);
  return (actual) => actual !== undefined && isEqual(actual);
}

function membership(value: unknown): Test | string {
  if (!Array.isArray(value)) return 'must be a list with this operator';
  if (value.length > filterLimits.listLength) return `must have at most ${filterLimits.listLength} elements`;
  if (isDeeperThan(value, filterLimits.valueDepth)) return `is nested deeper than ${filterLimits.valueDepth}`;
  const tests = value.map(equalTo);
  return (actual) => actual !== undefined && tests.some((isEqual) => isEqual(actual));
}

function containment(value: unknown): Test | string {
  const part = textOf(value);
  if (part === null) return 'must be a string, number or boolean with this operator';
  const isEqual = equalTo(value);
  return (actual) => {
    if (Array.isArray(actual)) return actual.some(isEqual);
    const text = textOf(actual);
    return text !== null && includesText(text, part);
  };
}

function onText(value: unknown, test: (text: string, part: string) => boolean): Test | string {
  const part = textOf(value);
  if (part === null) return 'must be a string, number or boolean with this operator';
  return (actual) => {
    const text = textOf(actual);
    return text !== null && test(text, part);
  };
}

function order(value: unknown, test: (difference: number) => boolean): Test | string {
  if (!isJsonNumber(value) && typeof value !== 'string') return 'must be a number or string with this operator';
  return (actual) => {
    const difference = compare(actual, value);
    return difference !== null && test(difference);
  };
}

function pattern(value: unknown): Test | string {
  if (typeof value !== 'string') return 'must be a regular expression, as a string';
  const compiled = boundedPattern(value);
  if (typeof compiled === 'string') return compiled;
  return (actual, budget) => {
    const text = textOf(actual);
    if (text === null) return false;
    const steps = compiled.stepsOn(text);
    if (steps > Math.min(patternLimits.matchSteps, budget.matchSteps) || budget.shared?.take(steps) === false) {
      budget.shared?.noteUntried();
      return false;
    }
    budget.matchSteps -= steps;
    return compiled.test(text);
  };
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (!isContainer(value)) return false;
  return depth === 0 || Object.values(value).some((item) => isDeeperThan(item, depth - 1));
}
