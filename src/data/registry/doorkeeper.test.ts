import { expect, test } from '@jest/globals';
import { Doorkeeper } from './doorkeeper.ts';

const keysOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `org_a end_${i.toString(36).padStart(26, '0')}`);

test('what is requested a third time is let in, and from then on every time', () => {
  const doorkeeper = new Doorkeeper();
  expect(Array.from({ length: 300 }, () => doorkeeper.admits('end_a'))).toEqual([false, false, ...Array(298).fill(true)]);
});

test('few of very many keys that are requested in turn are let in', () => {
  const doorkeeper = new Doorkeeper();
  const keys = keysOf(500_000);
  for (let round = 0; round < 2; round++) for (const key of keys) doorkeeper.admits(key);
  expect(keys.filter((key) => doorkeeper.admits(key)).length).toBeLessThan(100);
});

test('nearly all of twenty thousand keys that are requested in turn are let in', () => {
  const doorkeeper = new Doorkeeper();
  const keys = keysOf(20_000);
  for (let round = 0; round < 2; round++) for (const key of keys) doorkeeper.admits(key);
  expect(keys.filter((key) => doorkeeper.admits(key)).length).toBeGreaterThan(19_000);
});
