import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from './property.ts';

const withinMs = 3000;

/** Asserts for 200 cases a property of which one case takes all the time that there is. */
function interruptedAt(slowCase: number): Promise<void> {
  let cases = 0;
  const property = fc.asyncProperty(fc.nat(), async () => {
    cases += 1;
    if (cases === slowCase) await sleep(withinMs);
  });
  return assertProperty(property, 200, withinMs);
}

test('a property that there is time for a tenth of its cases holds', async () => {
  await interruptedAt(21);
});

test('a property with time for fewer cases fails, and reports for how many', async () => {
  await expect(interruptedAt(20)).rejects.toThrow('the property held for 19 cases and then there was no more time');
});

test('a property that does not hold fails with the smallest case and the error', async () => {
  const property = fc.property(fc.nat(), (number) => expect(number).toBeLessThan(10));
  const cause = expect.objectContaining({ matcherResult: expect.objectContaining({ pass: false }) });
  const failure = expect.objectContaining({ message: expect.stringContaining('Counterexample: [10]'), cause });
  expect(() => assertProperty(property)).toThrow(failure);
});
