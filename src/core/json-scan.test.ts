import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../test/support/property.ts';
import { closingQuote } from './json-scan.ts';

const part = fc.constantFrom('a', '\\', '"', '\\"', '\\\\', 'é', 'a'.repeat(63), 'a'.repeat(64), 'a'.repeat(200));

test('The closing quote of a text is that with which JSON.parse ends it, wherever backslashes and quotes are in it', () => {
  assertProperty(
    fc.property(fc.array(part, { maxLength: 30 }), fc.array(part, { maxLength: 5 }), (inner, after) => {
      const text = JSON.stringify(inner.join(''));
      expect(closingQuote(Buffer.from(`[${text}${after.join('')}`), 1)).toBe(Buffer.byteLength(text));
    }),
    2000,
  );
});

test.each(['"', '"a', '"\\"', `"${'a'.repeat(64)}\\"`, '"\\', `"${'a'.repeat(63)}\\`])('%s has none', (text) => {
  expect(closingQuote(Buffer.from(text), 0)).toBeNull();
});
