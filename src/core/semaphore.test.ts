import { expect, test } from '@jest/globals';
import { Semaphore } from './semaphore.ts';

test('what is under way weighs no more than the capacity together, and what waits begins in its order', async () => {
  const semaphore = new Semaphore(10);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = [4, 4, 100, 3, 7].map((weight, i) =>
    semaphore.run(weight, () => {
      begun.push(i);
      return new Promise<number>((resolve) => (ends[i] = () => resolve(i)));
    }),
  );
  const end = async (i: number): Promise<void> => {
    ends[i]?.();
    await work[i];
    await new Promise((resolve) => void setImmediate(resolve));
  };
  expect(begun).toEqual([0, 1]);
  await end(0);
  expect(begun).toEqual([0, 1]);
  await end(1);
  expect(begun).toEqual([0, 1, 2]);
  await end(2);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  await Promise.all([end(3), end(4)]);
  expect(await Promise.all(work)).toEqual([0, 1, 2, 3, 4]);
});

test('work that fails frees its weight, too', async () => {
  const semaphore = new Semaphore(1);
  await expect(semaphore.run(1, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await semaphore.run(1, async () => 7)).toBe(7);
});
