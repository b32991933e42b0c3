import { expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { becameBusy } from './optimize-code.ts';

function processThatIs(ready: Promise<void>) {
  const clock = new FakeClock();
  const total = { idle: 0, active: 0 };
  let isBusy = false;
  void becameBusy(ready, { clock, utilization: () => ({ ...total }) }).then(() => {
    isBusy = true;
  });
  return {
    isBusy: () => isBusy,
    /** One quarter of a second after the other, each with so many milliseconds of work. */
    pass: async (...activeMs: number[]) => {
      for (const ms of activeMs) {
        total.active += ms;
        total.idle += 250 - ms;
        await clock.advance(250);
      }
    },
  };
}

test('a process is busy when it has work all the time', async () => {
  const { pass, isBusy } = processThatIs(Promise.resolve());
  await pass(5, 5, 200, 200, 5, 5, 200);
  expect(isBusy()).toBe(false);
  await pass(30, 30);
  expect(isBusy()).toBe(true);
});

test('the work of a start does not count, unless it takes long', async () => {
  const { pass, isBusy } = processThatIs(new Promise(() => {}));
  await pass(...Array(40).fill(250));
  expect(isBusy()).toBe(false);
  await pass(250, 250, 250);
  expect(isBusy()).toBe(true);
});
