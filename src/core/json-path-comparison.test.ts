import { expect, test } from '@jest/globals';
import { readJsonPath } from './json-path.ts';
import { parseJson } from './read-json.ts';
import { WorkExceededError } from './work-budget.ts';

/** How many of the elements of a JSON list the filter finds. */
function found(filter: string, list: string): number | undefined {
  const { query, problem } = readJsonPath(`$[?${filter}]`);
  if (problem !== undefined) throw new Error(problem);
  return query?.(parseJson(list)).length;
}

test.each<[string, string, boolean]>([
  ['@ == 9007199254740993', '9007199254740992', false],
  ['@ == 9007199254740993', '9007199254740993', true],
  ['@ == 9007199254740993', '9007199254740993.0', true],
  ['@ == 9007199254740992', '9007199254740993', false],
  ['@ != 9007199254740992', '9007199254740993', true],
  ['@ > 9007199254740992', '9007199254740993', true],
  ['@ >= 9007199254740993', '9007199254740992', false],
  ['@ <= 9007199254740993', '9007199254740992', true],
  ['9007199254740992 < @', '9007199254740993', true],
  ['@ < -9007199254740992', '-9007199254740993', true],
  ['@ == 7615917337495251231', '7615917337495251230', false],
  ['@ == 0.1', '0.1000000000000000055', false],
  ['@ == 0.5', '0.50', true],
  ['@ == 0', '-0', true],
  ['@ == -0.0', '0', true],
  ['@ == 1E400', '1e401', false],
  ['@ < 1e401', '1E400', true],
  ['@ > 0', '1e-400', true],
  ['@ == 1.5e3', '1500', true],
  ['@ == "9007199254740993"', '9007199254740993', false],
  ['@.a == @.b', '{"a":9007199254740993,"b":9007199254740992}', false],
  ['@.a == @.b', '{"a":[{"n":9007199254740993}],"b":[{"n":9007199254740992}]}', false],
  ['@.a == @.b', '{"a":[{"n":19.90,"m":1}],"b":[{"m":1e0,"n":19.9}]}', true],
  ['@.a == @.b', '{"a":[1],"b":{"0":1}}', false],
  ['@.a == @.b', '{"a":{"x":null},"b":{"y":null}}', false],
  ['@.a == @.b', '{"a":{"__proto__":1},"b":{"x":1}}', false],
  ['@.x == @.y', '{}', true],
  ['@.x <= @.y', '{}', true],
  ['@.x == null', '{}', false],
  ['@.x < 1', '{}', false],
  ['value(@.*) == 9007199254740993', '[9007199254740993]', true],
  ['value(@.*) == 9007199254740993', '[9007199254740992]', false],
  ['length(@) == 2', '"a🚀"', true],
  ['@ < "🚀"', '"\uffee"', true],
  ['@ < "b"', '"ab"', true],
  ['@ < "ab"', '"a"', true],
  ['@ < true', 'false', false],
])('the filter %s of a JSONPath on %s is met: %s', (filter, element, isMet) => expect(found(filter, `[${element}]`)).toBe(isMet ? 1 : 0));

test.each(['@ == 01', '@ == -01', '@ == 1.', '@ == .5', '@ == +1', '@ == 0x1', '@ == 1e', '@ == 00.5'])('%s is no filter', (filter) =>
  expect(readJsonPath(`$[?${filter}]`).problem).toEqual(expect.any(String)),
);

test('long numbers that are compared with many others take what a path may', () => {
  const long = '1'.repeat(100_000);
  const list = `[${Array.from({ length: 20_000 }, () => '1').join()}]`;
  const { query } = readJsonPath('$.l[?$.a == $.b]');
  expect(() => query?.(parseJson(`{"a":${long}1,"b":${long}2,"l":${list}}`))).toThrow(WorkExceededError);
});
