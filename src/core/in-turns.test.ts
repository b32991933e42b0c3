import { expect, test } from '@jest/globals';
import fc, { asyncProperty } from 'fast-check';
import { mapInTurns, sortInTurns } from './in-turns.ts';
import { LoopTurns } from './loop-turns.ts';

test('a list that is sorted in turns has the order of toSorted, equal items as they were', async () => {
  const turn = new LoopTurns().of('org_a');
  const items = fc.array(fc.record({ key: fc.integer({ min: 0, max: 20 }), at: fc.integer() }), { maxLength: 400 });
  await fc.assert(
    asyncProperty(items, async (all) => {
      const compare = (one: { key: number }, other: { key: number }) => one.key - other.key;
      expect(await sortInTurns(turn, all, compare)).toEqual(all.toSorted(compare));
    }),
  );
});

test('others have turns of the event loop while a long list is mapped and sorted, and results keep their order', async () => {
  let nowMs = 0;
  const turn = new LoopTurns(() => nowMs).of('org_a');
  const all = Array.from({ length: 1000 }, (_, i) => i);
  const doubled = await mapInTurns(turn, all, (i) => {
    nowMs += 1;
    return i % 2 === 0 ? 2 * i : Promise.resolve(2 * i);
  });
  expect(doubled).toEqual(all.map((i) => 2 * i));
  // A turn lasts 5 ms.
  expect(turn.waits).toBeGreaterThan(150);
  const before = turn.waits;
  await sortInTurns(turn, all, (one, other) => {
    nowMs += 1;
    return other - one;
  });
  expect(turn.waits - before).toBeGreaterThan(50);
});

test('a list that is mapped in turns rejects with the error of an item, also while others are pending', async () => {
  const turn = new LoopTurns().of('org_a');
  const failing = mapInTurns(turn, [1, 2, 3], async (i) => {
    if (i === 2) throw new Error('the second');
    await new Promise((resolve) => setImmediate(resolve));
    return i;
  });
  await expect(failing).rejects.toThrow('the second');
});
