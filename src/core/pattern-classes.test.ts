import { expect, test } from '@jest/globals';
import { classCost } from './pattern-classes.ts';

test.each([
  ['[a-z]', 0],
  ['(?i)abc', 0],
  ['(?i)[a-z]', 400 + 25],
  ['(?s)(?mi:[a-z][0-9])', 800 + 34],
  ['(?i)[a-\uffff]', 400 + 0xffff - 0x61],
  ['(?i)[a-\u{10ffff}]', 400 + 0x10ffff - 0x61],
  ['(?i)[\\x61-\\x{ffff}]', 400 + 0xffff - 0x61],
  ['(?i)[--\uffff]', 400 + 0xffff - 0x2d],
  ['(?i)[\\--\uffff]', 400 + 0xffff - 0x2d],
  ['(?i)[!-\\]]', 400 + 0x5d - 0x21],
  ['(?i)\\pL\\PN', 4000],
  ['\\pL\\PN\\W', 400],
  ['(?i)\\d\\W', 800],
])('the cost of %j is %i', (pattern, cost) => {
  expect(classCost(pattern)).toBe(cost);
});
