import { expect, test } from '@jest/globals';
import { foldedCharacters } from './pattern-folding.ts';

test.each([
  ['[a-z]', 0],
  ['(?i)abc', 0],
  ['(?i)[a-z]', 25],
  ['(?s)(?mi:[a-z][0-9])', 34],
  ['(?i)[a-\uffff]', 0xffff - 0x61],
  ['(?i)[a-\u{10ffff}]', 0x10ffff - 0x61],
  ['(?i)[\\x61-\\x{ffff}]', 0xffff - 0x61],
  ['(?i)[--\uffff]', 0xffff - 0x2d],
  ['(?i)[\\--\uffff]', 0xffff - 0x2d],
  ['(?i)[!-\\]]', 0x5d - 0x21],
  ['(?i)\\pL\\PN', 4000],
])('of %j they are %i', (pattern, characters) => {
  expect(foldedCharacters(pattern)).toBe(characters);
});
