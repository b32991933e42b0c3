import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../test/support/property.ts';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { canonicalDigest, canonicalJson, canonicalJsonWithin } from './canonical-json.ts';
import { inOnePiece } from './in-one-piece.ts';

const digest = (value: unknown): string => inOnePiece(canonicalDigest(value));

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

test('Canonical JSON within a bound is the canonical JSON, or null when that has more bytes', () => {
  assertProperty(
    fc.property(fc.json({ maxDepth: 5 }), fc.nat(100), (text, maxBytes) => {
      const value: unknown = JSON.parse(text);
      const whole = canonicalJson(value);
      expect(canonicalJsonWithin(value, maxBytes)).toBe(Buffer.byteLength(whole) > maxBytes ? null : whole);
    }),
    500,
  );
});

const members = (count: number, value: unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`member${i}`, value]));

test.each<[string, unknown]>([
  ['60,000 members', members(60_000, 1)],
  ['objects with 80,000 members', Array.from({ length: 20 }, () => members(4000, {}))],
  ['500,000 elements', Array.from({ length: 500_000 }, () => 0)],
  ['long texts', Array.from({ length: 100 }, () => '\n'.repeat(1_000_000))],
])('What is too large by %s is found out before it is written', (_, value) => {
  expect(withinProcessorTime(() => canonicalJsonWithin(value, 65_536), 100)).toBeNull();
});
