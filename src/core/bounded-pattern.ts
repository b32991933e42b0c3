import { RE2JS } from 're2js';
import { foldedCharacters } from './pattern-folding.ts';

export const patternLimits = {
  /** Characters. */
  length: 1000,
  /** Instructions of the compiled pattern. */
  size: 2000,
  /** Characters in the classes of a pattern with `(?i)`; about 150 ns each when it is compiled. */
  foldedCharacters: 200_000,
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

export const tooMuchFolding = 'the classes have too many characters for (?i): name narrower ones, or leave the flag out';

/** The pattern, in RE2 syntax, or why it cannot be used. */
export function boundedPattern(source: string): BoundedPattern | string {
  if (source.length > patternLimits.length) return `at most ${patternLimits.length} characters`;
  if (foldedCharacters(source) > patternLimits.foldedCharacters) return tooMuchFolding;
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(source);
  } catch (error) {
    return `not a regular expression in RE2 syntax: ${error instanceof Error ? error.message : String(error)}`;
  }
  const size = compiled.programSize();
  if (size > patternLimits.size) return 'the regular expression is too large';
  return { stepsOn: (text) => size * text.length, test: (text) => compiled.test(text) };
}
