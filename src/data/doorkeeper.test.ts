import { expect, test } from '@jest/globals';
import { Doorkeeper } from './doorkeeper.ts';

test('what is asked for a third time is let in, and from then on every time', () => {
  const doorkeeper = new Doorkeeper();
  expect(Array.from({ length: 300 }, () => doorkeeper.admits('end_a'))).toEqual([false, false, ...Array(298).fill(true)]);
});

test('of very many that are each asked for once, again and again, next to none is let in', () => {
  const doorkeeper = new Doorkeeper();
  let admitted = 0;
  for (let round = 0; round < 4; round++)
    for (let i = 0; i < 100_000; i++) if (doorkeeper.admits(`org_a end_${i.toString(36).padStart(26, '0')}`)) admitted++;
  expect(admitted).toBeLessThan(400);
});

test('of a thousand that are asked for in turn most are let in', () => {
  const doorkeeper = new Doorkeeper();
  const keys = Array.from({ length: 1000 }, (_, i) => `org_a end_${i.toString(36).padStart(26, '0')}`);
  for (let round = 0; round < 2; round++) for (const key of keys) doorkeeper.admits(key);
  expect(keys.filter((key) => doorkeeper.admits(key)).length).toBeGreaterThan(800);
});
