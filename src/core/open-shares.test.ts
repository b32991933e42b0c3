import { expect, test } from '@jest/globals';
import { OpenShares } from './open-shares.ts';

test('an owner gets as much as its share, others theirs, and what is given back can be taken again', () => {
  const shares = new OpenShares(3);
  expect([1, 2, 3, 4].map(() => shares.take('a'))).toEqual([true, true, true, false]);
  expect([shares.take('b', 3), shares.take('b')]).toEqual([true, false]);
  shares.giveBack('a');
  expect([shares.take('a', 2), shares.take('a'), shares.take('a')]).toEqual([false, true, false]);
  shares.giveBack('b', 3);
  expect(shares.take('b', 3)).toBe(true);
});
