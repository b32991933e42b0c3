import { expect, test } from '@jest/globals';
import { jsonText } from '../../http/raw-json.ts';
import { shownBeginning, shownPayload } from './payload-fields.ts';

test.each<[Buffer, string, string]>([
  [Buffer.from('{"n": 1.50}'), '{"n": 1.50}', 'json'],
  [Buffer.from('\ufeff{"n": 1.50}'), '{"n": 1.50}', 'json'],
  [Buffer.from('\ufeff\r\n[]'), '\r\n[]', 'json'],
  [Buffer.from('\ufeffplain words'), '"plain words"', 'text'],
  [Buffer.from('plain \ufffd words'), '"plain \ufffd words"', 'text'],
  [Buffer.from('\ufeff'), '""', 'text'],
  [Buffer.from([0xef, 0xbb, 0xbf, 0xff]), '"77u//w=="', 'base64'],
])('%j is shown as %s', (payload, shown, payloadEncoding) => {
  const { payload: text, ...rest } = shownPayload(payload);
  expect([jsonText(text), rest]).toEqual([shown, { payloadEncoding }]);
  expect(jsonText(shownBeginning(payload, payload.length).payload)).toBe(shown);
});

test.each([
  ['\ufeff{"name":"\u00fc', '{"name":"\u00fc'],
  ['{"name":"\u00fc', '{"name":"\u00fc'],
])('the beginning of a large payload is text: %j', (beginning, shown) => {
  expect(shownBeginning(Buffer.from(beginning), 100_000).payload).toBe(shown);
  expect(shownBeginning(Buffer.from(beginning).subarray(0, -1), 100_000).payload).toBe(shown.slice(0, -1));
});
