import { expect, test } from '@jest/globals';
import { expiresAtMs, expirySeconds, smallestExpiry } from './expiry.ts';

test('a message expires after the smallest of the values that apply', () => {
  expect(expiresAtMs(1000, 60, null, 30, undefined)).toBe(31_000);
  expect(expiresAtMs(1000, 30, 60)).toBe(31_000);
  expect(smallestExpiry(undefined, 5, 7)).toBe(5);
});

test('a message does not expire when no value applies', () => {
  expect(expiresAtMs(1000)).toBeUndefined();
  expect(expiresAtMs(1000, null, undefined)).toBeUndefined();
});

test.each([
  ['1', 1],
  ['2592000', 2_592_000],
  ['0', null],
  ['2592001', null],
  ['-1', null],
  ['1.5', null],
  ['1e3', null],
  [' 5', null],
  ['', null],
  ['5, 6', null],
])('seconds until a message expires are a whole number from 1 to 2592000: %j is read as %j', (text, seconds) => {
  expect(expirySeconds(text)).toBe(seconds);
});
