import type { CelInput, parse } from '@bufbuild/cel';
import { type BoundedPattern, boundedPattern, patternLimits } from './bounded-pattern.ts';
import { type celGlobals, checkedExpression, type Expression, type Loop } from './cel-expression.ts';
import { PosthornError } from './errors.ts';
import { latePackage } from './late-package.ts';

/** An event as filter expressions see it; made once per event, for all filters. */
export interface CelEvent {
  readonly variables: Readonly<Record<(typeof celGlobals)[number], CelInput>>;
  /** Characters and members in `event`, `labels`, `metadata`: what looking through all of it costs. */
  readonly weights: Readonly<Record<(typeof celGlobals)[number], number>>;
}

/** What a filter says of an event: an error is no match. */
export type CelVerdict = { isMatch: boolean; error: null } | { isMatch: false; error: string };
export type CelFilter = (event: CelEvent) => CelVerdict;

export const celLimits = {
  /** Characters of the expression. */
  sourceLength: 1000,
  /** Elements of a list that a comprehension goes through. */
  listLength: 1000,
  /** Elements × what the comprehension compares each with, in characters and members of the event: about 1 ns each. */
  loopWork: 16_000_000,
  /** Characters of an error. */
  errorLength: 300,
};

/** `data`, `labels` and `metadata` are parsed JSON. */
export function celEvent(event: { type: string; data: unknown; labels: unknown; metadata: unknown }): CelEvent {
  const data = celInput(event.data);
  const labels = celInput(event.labels);
  const metadata = celInput(event.metadata);
  return {
    variables: {
      event: new Map<string, CelInput>([
        ['type', event.type],
        ['data', data.value],
      ]),
      labels: labels.value,
      metadata: metadata.value,
    },
    weights: { event: data.weight, labels: labels.weight, metadata: metadata.weight },
  };
}

/** Objects become maps, so that nothing but their own members is ever found. */
function celInput(value: unknown): { value: CelInput; weight: number } {
  let weight = 1;
  const add = (more: number): void => {
    weight += more;
  };
  return { value: converted(value, add), weight };

  function converted(part: unknown, count: (more: number) => void): CelInput {
    switch (typeof part) {
      case 'string':
        count(part.length);
        return part;
      case 'number':
      case 'boolean':
        return part;
      case 'object':
        if (part === null) return null;
        if (Array.isArray(part)) {
          count(part.length);
          return part.map((item) => converted(item, count));
        }
        return new Map(
          Object.entries(part).map(([name, member]) => {
            count(name.length + 1);
            return [name, converted(member, count)];
          }),
        );
      default:
        return null;
    }
  }
}

/** What an evaluation may still use. CEL has no state of its own, and evaluations do not overlap: they are synchronous. */
let running: { event: CelEvent; loop: Loop | null; patterns: ReadonlyMap<string, BoundedPattern>; matchSteps: number } | null = null;

const bounded = '@bounded';

interface CelRuntime {
  cel: typeof import('@bufbuild/cel');
  environment: ReturnType<typeof import('@bufbuild/cel').celEnv>;
  knownFunctions: ReadonlySet<string>;
}

const celPackage = latePackage<CelRuntime['cel']>('@bufbuild/cel');
let loaded: CelRuntime | null = null;

/** Loaded with the first filter, because it takes 20 MB of memory. */
function celRuntime(): CelRuntime {
  if (loaded !== null) return loaded;
  const cel = celPackage();
  const environment = celEnvironment(cel);
  loaded = { cel, environment, knownFunctions: new Set([...environment.funcs].map(({ name }) => name)) };
  return loaded;
}

function celEnvironment({ celEnv, celFunc, CelScalar }: CelRuntime['cel']): CelRuntime['environment'] {
  return celEnv({
    funcs: [
      celFunc(bounded, [CelScalar.DYN], CelScalar.DYN, (range) => {
        const size = typeof range === 'object' && range !== null && 'size' in range ? Number(range.size) : 0;
        if (size > celLimits.listLength) throw new Error(`a list of ${size} elements: at most ${celLimits.listLength}`);
        const { event, loop } = running ?? {};
        const perElement = loop?.comparedWith.reduce((sum, name) => sum + (event?.weights[name] ?? 0), 0) ?? 0;
        if (size * perElement > celLimits.loopWork) throw new Error(`${size} elements, each compared with more than is possible`);
        return range;
      }),
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
}

/**
 * Compiles a filter expression: CEL over `event` {type, data}, `labels` and `metadata` (DESIGN section 7). Numbers of JSON are
 * doubles. Throws VALIDATION_FAILED with the place of what is wrong; beside the syntax these are refused: more than 1000 characters,
 * names and functions that do not exist, a text, number, list or map as the whole, more than one comprehension, `matches` with a pattern that is not written as text.
 * Evaluation is linear in the event, a comprehension goes through at most 1000 elements.
 */
export function compileCelFilter(source: string): CelFilter {
  if (source.length > celLimits.sourceLength && [...source].length > celLimits.sourceLength)
    throw wrong(`at most ${celLimits.sourceLength} characters`);
  const { cel, environment, knownFunctions } = celRuntime();
  const parsed = parsedExpression(cel, source);
  const offsets = parsed.sourceInfo?.positions ?? {};
  const at = (expression: Expression): Place => placeOf(source, offsets[String(expression.id)] ?? 0);
  const checked = checkedExpression(parsed.expr, {
    isFunction: (name) => knownFunctions.has(name),
    refuse: (complaint, expression) => {
      throw wrong(complaint, at(expression));
    },
    wrapRange: bounded,
  });
  if (isNeverBoolean(checked.expression)) throw wrong(notBoolean, at(checked.expression));
  const patterns = new Map(
    checked.patterns.map(({ source: text, expression }) => {
      const pattern = boundedPattern(text);
      if (typeof pattern === 'string') throw wrong(pattern, at(expression));
      return [text, pattern];
    }),
  );
  const evaluate = cel.plan(environment, checked.expression);
  return (event) => {
    running = { event, loop: checked.loop, patterns, matchSteps: patternLimits.matchSteps };
    try {
      const result = evaluate({ ...event.variables });
      if (typeof result === 'boolean') return { isMatch: result, error: null };
      return failed(cel.isCelError(result) ? result.message : notBoolean);
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error));
    } finally {
      running = null;
    }
  };
}

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

function parsedExpression(cel: CelRuntime['cel'], source: string): ReturnType<typeof parse> {
  try {
    return cel.parse(source);
  } catch (error) {
    const [, line, column, message] = /^<input>:(\d+):(\d+): (.*)$/s.exec(error instanceof Error ? error.message : '') ?? [];
    if (message === undefined) throw wrong('not a CEL expression');
    throw wrong(message.slice(0, celLimits.errorLength), { line: Number(line), column: Number(column) });
  }
}

function placeOf(source: string, offset: number): Place {
  const before = source.slice(0, offset).split('\n');
  return { line: before.length, column: (before.at(-1) ?? '').length + 1 };
}

function wrong(complaint: string, place?: Place): PosthornError {
  const text = place === undefined ? complaint : `line ${place.line}, column ${place.column}: ${complaint}`;
  return new PosthornError('VALIDATION_FAILED', `filterExpression: ${text}.`, { details: { filterExpression: [text] } });
}
