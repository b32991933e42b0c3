import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { yamlOf } from './yaml-body.ts';

test('what the YAML parser of the API server does not take as it is, is escaped, and nothing else', () => {
  expect(yamlOf({ 'a\u007f': 'b\u0085\u009fc\u2028\u2029\ufeff\ufffe\uffff' })).toBe(
    '{"a\\u007f":"b\\u0085\\u009fc\\u2028\\u2029\\ufeff\\ufffe\\uffff"}',
  );
  expect(yamlOf({ a: 'ü 日本 😀 \u00a0\n\t"\\' })).toBe(JSON.stringify({ a: 'ü 日本 😀 \u00a0\n\t"\\' }));
});

test('half of a surrogate pair becomes the replacement character, and an escaped backslash before a u stays', () => {
  expect(yamlOf(['a\ud800b', '\udfff', String.raw`\ud800`, '😀'])).toBe(String.raw`["a\ufffdb","\ufffd","\\ud800","😀"]`);
});

test('the body has the same value as YAML', () => {
  const every = String.fromCodePoint(...Array.from({ length: 0xd7ff }, (_, index) => index), 0xe000, 0xfeff, 0xffff, 0x1f600, 0x10ffff);
  expect(parse(yamlOf({ every }))).toEqual({ every });
});

test('a key is marked as one where YAML would not find its colon, within 1024 characters, and no value is', () => {
  const [unmarked, marked] = ['k'.repeat(1021), 'k":\\'.repeat(250)];
  const value = { [unmarked]: [marked, { [marked]: marked }] };
  expect(yamlOf(value).split('? ')).toEqual([expect.stringMatching(/^\{"k+":\["k.*,\{$/), expect.stringMatching(/^"k/)]);
  expect(parse(yamlOf(value))).toEqual(value);
});

test('what is undefined is left out as in JSON', () => {
  expect(yamlOf({ a: undefined, b: [undefined, null, true, 1e21], c: {}, d: [] })).toBe('{"b":[null,null,true,1e+21],"c":{},"d":[]}');
});
