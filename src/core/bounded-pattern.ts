import type { RE2JS } from 're2js';
import { latePackage } from './late-package.ts';
import { classCost } from './pattern-classes.ts';

export const re2 = latePackage<typeof import('re2js')>('re2js');

export const patternLimits = {
  /** Characters. */
  length: 1000,
  /** Instructions of the compiled pattern. */
  size: 2000,
  /** Of a pattern, and of all patterns of a filter: see `classCost`. Compiling takes up to 75 ms with it. */
  classCost: 500_000,
  /** Instructions × characters that one match may cost. RE2 is linear in that product, at worst about 25 ns each. */
  matchSteps: 4_000_000,
};

/** A regular expression of a user's, and what it costs to search a text with it. */
export interface BoundedPattern {
  /** Instructions × characters; to be compared with `patternLimits.matchSteps`. */
  stepsOn(text: string): number;
  /** Whether the pattern is found anywhere in the text. */
  test(text: string): boolean;
}

export const tooCostlyClasses = 'needs fewer or narrower character classes, or none of (?i): it would take too long to compile';

/** The pattern, in RE2 syntax, or why it cannot be used. */
export function boundedPattern(source: string): BoundedPattern | string {
  if (source.length > patternLimits.length) return `at most ${patternLimits.length} characters`;
  if (classCost(source) > patternLimits.classCost) return tooCostlyClasses;
  let compiled: RE2JS;
  try {
    compiled = re2().RE2JS.compile(source);
  } catch (error) {
    return `not a regular expression in RE2 syntax: ${error instanceof Error ? error.message : String(error)}`;
  }
  const size = compiled.programSize();
  if (size > patternLimits.size) return 'the regular expression is too large';
  return { stepsOn: (text) => size * text.length, test: (text) => compiled.test(text) };
}
