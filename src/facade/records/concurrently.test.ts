import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { mapConcurrently } from './concurrently.ts';

test('results keep the order of the items, with at most 16 under way', async () => {
  let underWay = 0;
  let most = 0;
  const items = Array.from({ length: 100 }, (_, i) => i);
  const doubled = await mapConcurrently(items, async (item, index) => {
    most = Math.max(most, ++underWay);
    await sleep(Math.random() * 3);
    underWay--;
    return [item * 2, index];
  });
  expect(doubled).toEqual(items.map((item) => [item * 2, item]));
  expect(most).toBe(16);
});

test('after an error begins nothing more, and rejects once what is under way has ended', async () => {
  const begun: number[] = [];
  let ended = 0;
  const { promise: others, resolve: endOthers } = Promise.withResolvers<void>();
  const run = mapConcurrently(
    Array.from({ length: 100 }, (_, i) => i),
    async (item) => {
      begun.push(item);
      if (item === 3) {
        await nextTurn();
        setImmediate(endOthers);
        ended++;
        throw new Error('the fourth');
      }
      await others;
      ended++;
    },
  );
  await expect(run).rejects.toThrow('the fourth');
  expect([begun.length, ended]).toEqual([16, 16]);
});

test('an empty list gives an empty list', async () => {
  expect(await mapConcurrently([], async () => 1)).toEqual([]);
});
