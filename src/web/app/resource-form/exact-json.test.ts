import { expect, test } from '@jest/globals';
import { exactNumber, inexactMembers, inexactNumber, typedText, typedValue } from './exact-json.ts';

test('a number is taken only with all its digits', () => {
  expect(['1.', '1.50', '-0.25', '15e-1', '1e21', '0', '-0', '9007199254740992', '0.1'].map(exactNumber)).toEqual([
    1, 1.5, -0.25, 1.5, 1e21, 0, -0, 9_007_199_254_740_992, 0.1,
  ]);
  expect(['9007199254740993', '0.1000000000000000055', '1e999', '1,5', '0x10', '', 'a'].map(exactNumber)).toEqual(Array(7).fill(undefined));
});

test('a number that is not kept is found in JSON, but not in its texts', () => {
  expect(inexactNumber('{"a": [1, -2.5e3, 12345678901234567890]}')).toBe('12345678901234567890');
  expect(inexactNumber('{"12345678901234567890": "\\"12345678901234567890", "b": 1}')).toBeNull();
});

test('what is typed has the type that it is shown with', () => {
  for (const value of ['1000', 1000, 'null', null, '', '  ', 'a b', '"quoted"', true, 'true', [1, '1'], { a: null }])
    expect(typedValue(typedText(value))).toEqual(value);
  expect(typedText('1000')).toBe('"1000"');
  expect(typedText('paid')).toBe('paid');
  expect(typedValue(' ')).toBeUndefined();
});

test('the members of a record that hold such a number are known', () => {
  const record = '{"id": "app_a", "metadata": {"a": 12345678901234567890}, "rateLimitPerHour": 10000}';
  expect(inexactMembers(record)).toEqual(['metadata']);
  expect(inexactMembers(`{"data": ${record}}`)).toEqual(['metadata']);
  expect(inexactMembers('{"id": "app_a"}')).toEqual([]);
});
