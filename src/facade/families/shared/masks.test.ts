import { expect, test } from '@jest/globals';
import { lastFour, masked } from '../../../core/masking.ts';
import { shownCredential } from '../destinations/destination-warehouse.ts';

test.each(['', 'a', 'abcd', 'abcdefgh', 'abcdefghijk'])('nothing of %j, which is shorter than twelve characters, is shown', (secret) => {
  expect([masked(secret), shownCredential(secret), lastFour(secret)]).toEqual(['••••', '••••', null]);
});

test('the last four characters are shown of twelve and more', () => {
  expect([masked('abcdefghijkl'), shownCredential('abcdefghijkl'), lastFour('abcdefghijkl')]).toEqual(['••••ijkl', '••••ijkl', 'ijkl']);
});

test('an Ed25519 key shows no tail', () => {
  const key = `whsk_${Buffer.alloc(32, 7).toString('base64')}`;
  expect([masked(key), shownCredential(`whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0 ${key}`), lastFour(key)]).toEqual(['••••', '••••', null]);
});
