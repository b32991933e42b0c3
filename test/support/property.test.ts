import { setTimeout as sleep } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from './property.ts';

const withinMs = 3000;

/** Asserts a property for 200 cases. The case with the number `slowCase` takes longer than the time limit. */
function outOfTimeAfter(slowCase: number): Promise<void> {
  let cases = 0;
  const property = fc.asyncProperty(fc.nat(), async () => {
    cases += 1;
    if (cases === slowCase) await sleep(1.1 * withinMs);
  });
  return assertProperty(property, 200, withinMs);
}

test('a property that there is time for a tenth of its cases holds', async () => {
  await outOfTimeAfter(20);
});

test('a property with time for fewer cases fails, and reports for how many', async () => {
  await expect(outOfTimeAfter(19)).rejects.toThrow('the property held for 19 cases and then there was no more time');
});

/** Asserts a property whose time ends during its second case, which ends by `last`. */
function outOfTimeDuring(last: () => void): Promise<void> {
  let cases = 0;
  const property = fc.asyncProperty(fc.nat(), async () => {
    cases += 1;
    if (cases < 2) return;
    await sleep(1.1 * withinMs);
    last();
  });
  return assertProperty(property, 10, withinMs);
}

test('a property whose time is over ends with the case that is under way', async () => {
  const last = jest.fn();
  await outOfTimeDuring(last);
  expect(last).toHaveBeenCalledTimes(1);
});

test('a property fails whose time ends during a case that does not hold', async () => {
  const last = (): never => {
    throw new Error('the last case');
  };
  await expect(outOfTimeDuring(last)).rejects.toThrow(/Counterexample: \[\d+\]/);
});

test('a property that does not hold fails with the smallest case and the error', async () => {
  const property = fc.property(fc.nat(), (number) => expect(number).toBeLessThan(10));
  const cause = expect.objectContaining({ matcherResult: expect.objectContaining({ pass: false }) });
  const failure = expect.objectContaining({ message: expect.stringContaining('Counterexample: [10]'), cause });
  expect(() => assertProperty(property)).toThrow(failure);
});
