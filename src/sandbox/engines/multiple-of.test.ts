import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../../test/support/property.ts';
import { multiplesOf } from './multiple-of.ts';

test.each([
  [0.01, [19.99, 143.48, 1.11, 2.22, 0.07, 4.35, 1, 0, -0, -19.99, 0.29, 1e15, 1e22, 90071992547409.91, 123456789012.34]],
  [0.1, [0.3, 0.7, 1.1, 4.1, 1e21, 123456789.1]],
  [0.05, [0.15, 0.35, 1.05, 99.95, -0.15]],
  [0.25, [0.75, 1.5, 1e300]],
  [0.3, [0.9, 3, 1.2]],
  [1e-8, [0.1, 12.34567891, 21000000, 1e-8, 3e-8, 0.07]],
  [1e-300, [1e300, 1, 3e-300]],
  [2.5, [5, 7.5, 1e20]],
  [1, [5, -3, 2 ** 60, Number.MAX_VALUE]],
  [3, [9, 3 * 2 ** 53, 3e25]],
  [10, [1152921504606847000, 1e21]],
  [1024, [2 ** 60, 2 ** 53]],
  [1e21, [1e21, 2e22, 0]],
])('multiples of %p are recognized', (divisor, values) => {
  expect(values.filter((value) => !multiplesOf(divisor)(value))).toEqual([]);
});

test.each([
  [0.01, [19.999, 0.005, 1e-3, 1.0000000000000002, 19.990000000000002, 1e-300]],
  [0.1, [0.25, 0.30000000000000004, 0.05]],
  [0.05, [0.02, 0.16, 1.01]],
  [1e-8, [1e-9, 12.345678912]],
  [0.3, [1, 0.1, 1e22]],
  [2.5, [1, 2, 7.6]],
  [1, [1.5, 0.1, -2.25, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
  [3, [1, 10, 1e25]],
  [1e21, [1, 1.5e21, 1e20]],
  [Number.POSITIVE_INFINITY, [1]],
  [0, [0, 1]],
])('other numbers are no multiples of %p', (divisor, values) => {
  expect(values.filter((value) => multiplesOf(divisor)(value))).toEqual([]);
});

test('any amount with so many decimals is a multiple of the smallest, and none with one digit more', () => {
  const amount = fc.record({ units: fc.nat(10_000_000), decimals: fc.integer({ min: 0, max: 8 }), last: fc.integer({ min: 1, max: 9 }) });
  assertProperty(
    fc.property(amount, ({ units, decimals, last }) => {
      const divisor = Number(`1e-${decimals}`);
      expect(multiplesOf(divisor)(Number(`${units}e-${decimals}`))).toBe(true);
      expect(multiplesOf(divisor)(Number(`${units}${last}e-${decimals + 1}`))).toBe(false);
    }),
  );
});
