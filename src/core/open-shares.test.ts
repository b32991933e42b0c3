import { expect, test } from '@jest/globals';
import { OpenShares } from './open-shares.ts';

test('an owner gets as much as its share, others theirs, and what is given back can be taken again', () => {
  const shares = new OpenShares({ ofOwner: 3 });
  expect([1, 2, 3, 4].map(() => shares.take('a'))).toEqual([true, true, true, false]);
  expect([shares.take('b', 3), shares.take('b')]).toEqual([true, false]);
  shares.giveBack('a');
  expect([shares.take('a', 2), shares.take('a'), shares.take('a')]).toEqual([false, true, false]);
  shares.giveBack('b', 3);
  expect(shares.take('b', 3)).toBe(true);
});

/** Takes as much as it gets. */
function fill(take: () => boolean): number {
  let taken = 0;
  while (take()) taken++;
  return taken;
}

test('owners that take all they get leave something for the next one, and the last unit is for one that holds none', () => {
  const shares = new OpenShares({ all: 32, ofOwner: 8 });
  expect(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((owner) => fill(() => shares.take(owner)))).toEqual([8, 8, 8, 4, 2, 1, 1, 0]);
  expect(shares.full).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
  shares.giveBack('a', 8);
  expect(fill(() => shares.take('h'))).toBe(4);
  expect([shares.open, shares.full.includes('h'), shares.take('i', 5), shares.take('i', 2)]).toEqual([28, true, false, true]);
});

test('a part of an owner leaves something for its siblings', () => {
  const shares = new OpenShares({ all: 64, ofOwner: 16 });
  expect(['p', 'q', 'r', 's', 't', 'u'].map((part) => fill(() => shares.take('a', 1, part)))).toEqual([12, 2, 1, 1, 0, 0]);
  shares.giveBack('a', 12, 'p');
  expect(fill(() => shares.take('a', 1, 'q'))).toBe(8);
  expect(fill(() => shares.take('b', 1, 'p'))).toBe(12);
  expect(shares.open).toBe(4 + 8 + 12);
});

test('what a part gives back while others leave its owner less goes to a sibling that holds less', () => {
  const shares = new OpenShares({ all: 32, ofOwner: 8 });
  const [first, second] = ['a', 'b', 'c', 'd', 'e'].map((owner) => [owner, fill(() => shares.take(owner, 1, 'p'))]).slice(0, 2);
  expect([first, second, shares.open]).toEqual([['a', 6], ['b', 6], 27]);
  shares.giveBack('a', 3, 'p');
  expect([fill(() => shares.take('a', 1, 'p')), fill(() => shares.take('a', 1, 'q'))]).toEqual([2, 1]);
});
