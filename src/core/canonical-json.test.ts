import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { finished } from '../../test/support/finished.ts';
import { assertProperty } from '../../test/support/property.ts';
import { canonicalDigest, canonicalJson } from './canonical-json.ts';

const digest = (value: unknown): string => finished(canonicalDigest(value));

function digestAtOnce(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

test('The digest that is made in pieces is that of the canonical JSON', () => {
  assertProperty(
    fc.property(fc.json({ maxDepth: 5 }), (text) => {
      const value: unknown = JSON.parse(text);
      expect(digest(value)).toBe(digestAtOnce(value));
    }),
    500,
  );
});

test('The digest of an object with very many members, numbers among them, does not depend on their order', () => {
  const keys = Array.from({ length: 9000 }, (_, i) => [String(i), `k${i}`, `0${i}`, String(4_294_967_290 + i)]).flat();
  const value = Object.fromEntries(keys.map((key) => [key, key]));
  const reversed = Object.fromEntries(keys.toReversed().map((key) => [key, key]));
  expect(digest(value)).toBe(digestAtOnce(value));
  expect(digest(reversed)).toBe(digestAtOnce(value));
});
