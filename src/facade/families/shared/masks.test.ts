import { expect, test } from '@jest/globals';
import { lastFour, masked } from '../../../core/masking.ts';
import { shownCredential } from '../destinations/destination-warehouse.ts';

test.each(['', 'a', 'abcd', 'abcdefgh', 'abcdefghijk'])('of %j, which is shorter than twelve characters, nothing is shown', (secret) => {
  expect([masked(secret), shownCredential(secret), lastFour(secret)]).toEqual(['••••', '••••', null]);
});

test('of twelve characters on the last four are shown', () => {
  expect([masked('abcdefghijkl'), shownCredential('abcdefghijkl'), lastFour('abcdefghijkl')]).toEqual(['••••ijkl', '••••ijkl', 'ijkl']);
});
