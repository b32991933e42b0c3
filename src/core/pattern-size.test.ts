import { expect, test } from '@jest/globals';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { boundedPattern } from './bounded-pattern.ts';
import { unrolledSize } from './pattern-size.ts';

test.each([
  ['abc', 3],
  ['a{1000}', 1000],
  ['(a{10}){10}', 120],
  ['(?:a{10}){10}', 100],
  ['(?P<name>a){3}', 9],
  ['(?i)ab', 2],
  ['a{2,5}', 10],
  ['a{3,}', 4],
  ['a*b+c?', 6],
  ['a|b|c', 1],
  ['ab|cd', 5],
  ['(?:^|\\b)', 3],
  ['[]a{9}]{3}', 3],
  ['[[:alpha:]{9}]{3}', 3],
  ['\\p{Greek}\\x{e4}\\.\\pL', 4],
  ['\\Qa{9}\\E{2}', 5],
  ['a{,3}', 5],
  ['', 0],
])('the unrolled size of %s is %i', (pattern, size) => {
  expect(unrolledSize(pattern)).toBe(size);
});

test.each([
  ['many long repetitions', 'a{1000}'.repeat(142)],
  ['repeated groups', '((a{31}){31}){1}'.repeat(60)],
  ['repeated groups of nothing', '(){1000}'.repeat(120)],
  ['optional parts', '(?:(?:a{0,31}){0,31})'.repeat(45)],
  ['repeated alternatives', '(?:^|a|\\b){1000}'.repeat(60)],
  ['some long repetitions', 'a{1000}'.repeat(40)],
  ['quoted text', '\\Qab\\E{1000}'.repeat(80)],
])('a pattern of %s is refused before it is compiled', (_, pattern) => {
  expect(withinProcessorTime(() => boundedPattern(pattern), 100)).toEqual(expect.stringContaining('too large'));
});
