import type { RE2JS } from 're2js';
import { lazyPackage } from './lazy-package.ts';
import { classCost } from './pattern-classes.ts';
import { unrolledSize } from './pattern-size.ts';

export const re2 = lazyPackage<typeof import('re2js')>('re2js');

export const patternLimits = {
  /** Characters. */
  length: 1000,
  /** Instructions of the compiled pattern. */
  size: 2000,
  /** Cost of compiling a pattern, or all patterns of a filter: see `compileCost`. Compiling takes up to 75 ms with it. */
  compileCost: 500_000,
  /** Instructions × characters that one match may cost. RE2 is linear in that product, at worst about 60 ns each. */
  matchSteps: 1_000_000,
};

/** Cost of compiling an instruction, in characters of a range that is folded. */
const instructionCost = 10;
/** The size is counted before a pattern is compiled, too, and may then be too large for alternatives that begin alike. */
const uncompiledSize = 3 * patternLimits.size;
/**
 * Bytes of the states that RE2 keeps of a pattern. A text may need many new ones, and making those takes longer than matching without them: 1 MB takes
 * 25 to 75 ms, 256 KB a quarter of that.
 */
const maxStateBytes = 256 * 1024;

/** A regular expression of a user's, and what it costs to search a text with it. */
export interface BoundedPattern {
  /** Instructions × characters; to be compared with `patternLimits.matchSteps`. */
  stepsOn(text: string): number;
  /** Whether the pattern is found anywhere in the text. */
  test(text: string): boolean;
}

const tooLarge = 'the regular expression is too large';
export const tooCostlyToCompile =
  'too large, or needs fewer or narrower character classes, or none of (?i): it would take too long to compile';

/** Cost of compiling a pattern in RE2, in characters of a range that is folded: about 150 ns each. */
export function compileCost(source: string): number {
  return classCost(source) + instructionCost * unrolledSize(source);
}

/** The same pattern, for one match. The states are made with the first match that needs some. */
export function withBoundedStates(compiled: RE2JS): RE2JS {
  const states = compiled.re2().dfa;
  if (states.stateBudget > maxStateBytes) {
    states.stateBudget = maxStateBytes;
    states.memBudget = maxStateBytes;
  }
  return compiled;
}

/** The pattern, in RE2 syntax, or why it cannot be used. */
export function boundedPattern(source: string): BoundedPattern | string {
  if (source.length > patternLimits.length) return `at most ${patternLimits.length} characters`;
  if (compileCost(source) > patternLimits.compileCost) return tooCostlyToCompile;
  if (unrolledSize(source) > uncompiledSize) return tooLarge;
  let compiled: RE2JS;
  try {
    compiled = re2().RE2JS.compile(source);
  } catch (error) {
    return `not a regular expression in RE2 syntax: ${error instanceof Error ? error.message : String(error)}`;
  }
  const size = compiled.programSize();
  if (size > patternLimits.size) return tooLarge;
  return { stepsOn: (text) => size * text.length, test: (text) => withBoundedStates(compiled).test(text) };
}
