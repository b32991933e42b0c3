import { expect, test } from '@jest/globals';
import { csvLine } from './message-export.ts';

test.each([
  ['=1+1', "'=1+1"],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['\r=1', '"\'\r=1"'],
  ['=HYPERLINK("https://a.example", "b")', '"\'=HYPERLINK(""https://a.example"", ""b"")"'],
  ['1=1', '1=1'],
  ['a,b', '"a,b"'],
])('the cell %j is in CSV as %j', (text, cell) => {
  expect(csvLine([text])).toBe(`${cell}\r\n`);
});

test('numbers are no formulas, and null is an empty cell', () => {
  expect(csvLine([-1, null, 'x'])).toBe('-1,,x\r\n');
});

test.each([
  ['-1250.5', '-1250.5'],
  ['-1.50', '-1.50'],
  ['-1E400', '-1E400'],
  ['-0', '-0'],
  ['"=1"', '"""=1"""'],
])('the JSON %s stands in CSV as %s', (json, cell) => {
  expect(csvLine([{ json }])).toBe(`${cell}\r\n`);
});
