import { expect, test } from '@jest/globals';
import { eventually, StopWaiting } from './eventually.ts';

/** Time for a second check on a machine that is blocked for a while. */
const patienceMs = 1000;

/** A check that gives these results one after the other, then the last one again and again. Errors are thrown. */
function answering<T>(...results: (T | Error)[]): () => T {
  let calls = 0;
  return () => {
    const result = results[Math.min(calls++, results.length - 1)];
    if (result instanceof Error) throw result;
    return result as T;
  };
}

test('eventually repeats an assertion until it does not throw, whatever it returns', async () => {
  await expect(eventually(answering(new Error('not yet'), undefined))).resolves.toBeUndefined();
  await expect(eventually(answering(new Error('not yet'), false))).resolves.toBe(false);
});

test('eventually throws the last error of an assertion itself', async () => {
  const last = new Error('the last');
  await expect(eventually(answering(new Error('the first'), last), patienceMs)).rejects.toBe(last);
});

test.each([
  { results: [undefined, false, new Error('not yet'), 'found'], found: 'found' },
  { results: [undefined, null], found: null },
  { results: [false, 0], found: 0 },
])('eventually with a name waits until the check returns neither undefined nor false: $found', async ({ results, found }) => {
  await expect(eventually('it', 30_000, answering<unknown>(...results))).resolves.toBe(found);
});

test('eventually with a name says what it waited for and why the last check failed', async () => {
  const last = new Error('no connection');
  await expect(eventually('the answer', 50, answering(last))).rejects.toMatchObject({
    message: 'waited 50 ms for the answer: no connection',
    cause: last,
  });
  const answer = answering(new Error('before'), undefined);
  await expect(eventually('the answer', patienceMs, answer)).rejects.toThrow(/^waited 1000 ms for the answer$/);
});

test('eventually ends at once when the check throws StopWaiting', async () => {
  let calls = 0;
  const hopeless = () => {
    calls += 1;
    throw new StopWaiting('the program ended');
  };
  await expect(eventually('output', 30_000, hopeless)).rejects.toThrow('the program ended');
  expect(calls).toBe(1);
});
