import { createSecretKey } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { keysAt } from './webhook-plan.ts';

test('a previous secret signs up to the instant at which it expires, and not at that instant; one that does not open counts no longer then', () => {
  const [key, previous] = [createSecretKey(Buffer.alloc(32, 1)), createSecretKey(Buffer.alloc(32, 2))];
  const rotated = [
    { key, validUntilMs: null },
    { key: previous, validUntilMs: 1000 },
  ];
  expect([999, 1000, 1001].map((nowMs) => keysAt(rotated, nowMs))).toEqual([[key, previous], [key], [key]]);
  const closed = [
    { key, validUntilMs: null },
    { key: null, validUntilMs: 1000 },
  ];
  expect([999, 1000].map((nowMs) => keysAt(closed, nowMs))).toEqual([null, [key]]);
});
