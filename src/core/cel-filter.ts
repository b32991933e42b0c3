import type { CelInput, parse } from '@bufbuild/cel';
import { type BoundedPattern, boundedPattern, compileCost, patternLimits, tooCostlyToCompile } from './bounded-pattern.ts';
import { celGlobals, checkedExpression, type Expression } from './cel-expression.ts';
import { type CelPackage, celCosts, chargedFunctions, quickFunctions } from './cel-work.ts';
import { invalidParameter, PosthornError } from './errors.ts';
import { ExactNumber, isContainer, isDouble } from './exact-number.ts';
import { lazyPackage } from './lazy-package.ts';
import { WorkBudget } from './work-budget.ts';

/** An event as filter expressions see it; made once per event, for all filters. */
export interface CelEvent {
  readonly variables: Readonly<Record<(typeof celGlobals)[number], CelInput> & { headers?: CelInput }>;
}

/** The result of a filter for an event: an error is no match. */
export type CelVerdict = { isMatch: boolean; error: null } | { isMatch: false; error: string };
export type CelFilter = (event: CelEvent) => CelVerdict;

export const celLimits = {
  /** Characters of the expression. */
  sourceLength: 1000,
  /** Elements of a list that a comprehension goes through. */
  listLength: 1000,
  /** Nanoseconds that an evaluation may take by what its functions are known to cost. Time is not measured: an event gets the same verdict everywhere. */
  workNs: 50_000_000,
  /** Characters of an error. */
  errorLength: 300,
};

const membersPerPiece = 5000;

/** `data`, `labels` and `metadata` are parsed JSON. */
export function celEvent(event: JsonEvent): CelEvent {
  const pieces = celEventInPieces(event);
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}

interface JsonEvent {
  type: string;
  data: unknown;
  labels: unknown;
  metadata: unknown;
  /** For searches alone. */
  headers?: Readonly<Record<string, string>>;
}

/** The same in pieces: yields between them. */
export function* celEventInPieces(event: JsonEvent): Generator<undefined, CelEvent> {
  return {
    variables: {
      event: new Map<string, CelInput>([
        ['type', event.type],
        ['data', yield* celInput(event.data)],
      ]),
      labels: yield* celInput(event.labels),
      metadata: yield* celInput(event.metadata),
      ...(event.headers !== undefined && { headers: yield* celInput(event.headers) }),
    },
  };
}

/** Objects become maps, so that nothing but their own members is ever found. */
function* celInput(value: unknown): Generator<undefined, CelInput> {
  let members = 0;
  return isContainer(value) ? yield* container(value) : scalar(value);

  function* container(part: object): Generator<undefined, CelInput> {
    if (Array.isArray(part)) {
      const items: CelInput[] = [];
      for (const item of part) {
        if (++members % membersPerPiece === 0) yield;
        items.push(isContainer(item) ? yield* container(item) : scalar(item));
      }
      return items;
    }
    const map = new Map<string, CelInput>();
    for (const [name, member] of Object.entries(part)) {
      if (++members % membersPerPiece === 0) yield;
      map.set(name, isContainer(member) ? yield* container(member) : scalar(member));
    }
    return map;
  }
}

/** Digits. Larger integers are infinite as doubles, and take long to be read. */
const longestInteger = 309;
const integer = /^-?\d+$/;

/** A double, but for an integer that no double is. */
function numberOf(number: ExactNumber): number | bigint {
  const isInteger = number.text.length <= longestInteger && integer.test(number.text);
  return isInteger && !isDouble(number) ? BigInt(number.text) : number.double;
}

/** Beyond 2^53 a double may be written as another integer than it is: 2^60 as 1152921504606847000. */
function writtenInteger(double: number): number | bigint {
  const text = String(double);
  if (!integer.test(text)) return double;
  const written = BigInt(text);
  return written === BigInt(double) ? double : written;
}

function scalar(part: unknown): CelInput {
  if (part instanceof ExactNumber) return numberOf(part);
  if (typeof part === 'number') return Number.isInteger(part) && !Number.isSafeInteger(part) ? writtenInteger(part) : part;
  return typeof part === 'string' || typeof part === 'boolean' ? part : null;
}

/** Remaining budget of an evaluation. CEL has no state of its own, and evaluations do not overlap: they are synchronous. */
let running: {
  work: WorkBudget;
  partsPerElement: number;
  patterns: ReadonlyMap<string, BoundedPattern>;
  matchSteps: number;
} | null = null;

const bounded = '@bounded';
const counted = '@counted';

interface CelRuntime {
  cel: CelPackage;
  environment: ReturnType<CelPackage['celEnv']>;
  knownFunctions: ReadonlySet<string>;
}

const celPackage = lazyPackage<CelPackage>('@bufbuild/cel');
let loaded: CelRuntime | null = null;

/** Loaded with the first filter, because it takes 20 MB of memory. */
function celRuntime(): CelRuntime {
  if (loaded !== null) return loaded;
  const cel = celPackage();
  const environment = celEnvironment(cel);
  loaded = { cel, environment, knownFunctions: new Set([...environment.funcs].map(({ name }) => name)) };
  return loaded;
}

function celEnvironment(cel: CelPackage): CelRuntime['environment'] {
  const { celEnv, celFunc, CelScalar } = cel;
  const { funcs } = celEnv({
    funcs: [
      ...quickFunctions(cel),
      celFunc(bounded, [CelScalar.DYN], CelScalar.DYN, (range) => {
        const size = typeof range === 'object' && range !== null && 'size' in range ? Number(range.size) : 0;
        if (size > celLimits.listLength) throw new Error(`a list of ${size} elements: at most ${celLimits.listLength}`);
        return range;
      }),
      celFunc(counted, [CelScalar.DYN], CelScalar.DYN, (condition) => condition),
    ],
    re2: {
      compile: (source) => ({
        test: (text) => {
          const pattern = running?.patterns.get(source);
          if (running === null || pattern === undefined) throw new Error('matches needs a pattern that is written in the expression');
          running.matchSteps -= pattern.stepsOn(text);
          if (running.matchSteps < 0) throw new Error('the text is too long for matches');
          return pattern.test(text);
        },
      }),
    },
  });
  return celEnv({
    funcs: chargedFunctions(cel, funcs, (name, ns) =>
      running?.work.spend(name === counted ? ns + celCosts.part * running.partsPerElement : ns),
    ),
  });
}

/**
 * Compiles a filter expression: CEL over `event` {type, data}, `labels` and `metadata`. Numbers of JSON are
 * doubles, but for integers that no double is: these are `int`, of any size. Throws VALIDATION_FAILED with the position of the error; beside the syntax these are refused: more than 1000 characters,
 * names and functions that do not exist, a text, number, list or map as the whole, more than one comprehension, `matches` with a pattern that is not written as text.
 * Evaluation takes at most the time in `celLimits`; beyond that it is an error. A comprehension goes through at most 1000 elements.
 */
export function compileCelFilter(source: string): CelFilter {
  return compiled(source, { globals: celGlobals, wrong });
}

/** The same for the search of a list, which sees `headers` besides: a map by lower-case name. Throws INVALID_QUERY that names `where`. */
export function compileCelSearch(source: string): CelFilter {
  return compiled(source, { globals: [...celGlobals, 'headers'], wrong: wrongSearch });
}

interface Dialect {
  globals: readonly string[];
  wrong: typeof wrong;
}

function compiled(source: string, { globals, wrong }: Dialect): CelFilter {
  if (source.length > celLimits.sourceLength && [...source].length > celLimits.sourceLength)
    throw wrong(`at most ${celLimits.sourceLength} characters`);
  const { cel, environment, knownFunctions } = celRuntime();
  const parsed = parsedExpression(cel, source, wrong);
  const offsets = parsed.sourceInfo?.positions ?? {};
  const at = (expression: Expression): Place => placeOf(source, offsets[String(expression.id)] ?? 0);
  const checked = checkedExpression(parsed.expr, {
    globals,
    isFunction: (name) => knownFunctions.has(name),
    refuse: (complaint, expression) => {
      throw wrong(complaint, at(expression));
    },
    wrapRange: bounded,
    wrapCondition: counted,
  });
  if (isNeverBoolean(checked.expression)) throw wrong(notBoolean, at(checked.expression));
  let cost = 0;
  for (const { source: text, expression } of checked.patterns) {
    cost += compileCost(text);
    if (cost > patternLimits.compileCost) throw wrong(tooCostlyToCompile, at(expression));
  }
  const patterns = new Map(
    checked.patterns.map(({ source: text, expression }) => {
      const pattern = boundedPattern(text);
      if (typeof pattern === 'string') throw wrong(pattern, at(expression));
      return [text, pattern];
    }),
  );
  const { partsPerElement } = checked;
  const evaluate = cel.plan(environment, checked.expression);
  return (event) => {
    running = { work: new WorkBudget(celLimits.workNs, tooLong), partsPerElement, patterns, matchSteps: patternLimits.matchSteps };
    const { stackTraceLimit } = Error;
    // CEL treats errors as values. An evaluation may make hundreds for each element, and capturing their stacks would take most of the time.
    Error.stackTraceLimit = 0;
    try {
      const result = evaluate({ ...event.variables });
      if (typeof result === 'boolean') return { isMatch: result, error: null };
      return failed(cel.isCelError(result) ? result.message : notBoolean);
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error));
    } finally {
      running = null;
      Error.stackTraceLimit = stackTraceLimit;
    }
  };
}

/** A CEL error is a value that `||` can absorb; this is thrown and cannot be absorbed. */
const tooLong = 'the expression takes too long for this event';
const notBoolean = 'the result is neither true nor false';

function isNeverBoolean({ exprKind }: Expression): boolean {
  if (exprKind.case === 'constExpr') return exprKind.value.constantKind.case !== 'boolValue';
  return exprKind.case === 'listExpr' || exprKind.case === 'structExpr';
}

function failed(message: string): CelVerdict {
  return { isMatch: false, error: message.slice(0, celLimits.errorLength) };
}

interface Place {
  line: number;
  column: number;
}

function parsedExpression(cel: CelRuntime['cel'], source: string, refuse: typeof wrong): ReturnType<typeof parse> {
  try {
    return cel.parse(source);
  } catch (error) {
    const [, line, column, message] = /^<input>:(\d+):(\d+): (.*)$/s.exec(error instanceof Error ? error.message : '') ?? [];
    if (message === undefined) throw refuse('not a CEL expression');
    throw refuse(message.slice(0, celLimits.errorLength), { line: Number(line), column: Number(column) });
  }
}

function placeOf(source: string, offset: number): Place {
  const before = source.slice(0, offset).split('\n');
  return { line: before.length, column: (before.at(-1) ?? '').length + 1 };
}

function complaintAt(complaint: string, place: Place | undefined): string {
  return place === undefined ? complaint : `line ${place.line}, column ${place.column}: ${complaint}`;
}

function wrongSearch(complaint: string, place?: Place): PosthornError {
  return invalidParameter('where', complaintAt(complaint, place));
}

function wrong(complaint: string, place?: Place): PosthornError {
  const text = complaintAt(complaint, place);
  return new PosthornError('VALIDATION_FAILED', `filterExpression: ${text}.`, { details: { filterExpression: [text] } });
}
