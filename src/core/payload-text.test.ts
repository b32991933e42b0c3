import { expect, test } from '@jest/globals';
import { parsedJson } from './json-text.ts';
import { payloadText, withoutByteOrderMark } from './payload-text.ts';

test.each([
  ['\ufeff{"id":1}', '{"id":1}'],
  ['\ufeffplain words', 'plain words'],
  ['\ufeff', ''],
  ['\ufeff\ufeff1', '\ufeff1'],
  ['{"id":"\ufeff"}', '{"id":"\ufeff"}'],
  [' \ufeff1', ' \ufeff1'],
  ['\u00ef\u00bb\u00bf1', '\u00ef\u00bb\u00bf1'],
  ['', ''],
])('a byte order mark at the beginning is no part of the text: %j', (sent, text) => {
  expect(payloadText(Buffer.from(sent))).toBe(text);
  expect(withoutByteOrderMark(sent)).toBe(text);
});

test('a part of a byte order mark is none', () => {
  expect(payloadText(Buffer.from([0xef, 0xbb]))).toBe('\ufffd');
  expect(payloadText(Buffer.from([0xff, 0xfe, 0x31]))).toBe('\ufffd\ufffd1');
});

test('JSON text in a field of the API may begin with a byte order mark', () => {
  expect(parsedJson('\ufeff[1]')).toEqual({ value: [1] });
  expect(parsedJson('\ufeff\ufeff[1]').problem).toMatch(/^not JSON/);
});
