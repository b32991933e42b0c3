import { expect, test } from '@jest/globals';
import { originOf } from './origin.ts';

test.each([
  ['of another path', 'https://a.example/one', 'https://a.example/two', true],
  ['that name the port or leave it out', 'https://a.example', 'https://A.example:443/', true],
  ['of another scheme', 'https://a.example', 'http://a.example', false],
  ['of another port', 'https://a.example', 'https://a.example:8443', false],
  ['without an origin', 'data:text/plain,one', 'data:text/plain,two', false],
  ['of schemes without origins', 'smtp://one.example', 'smtp://two.example', false],
  ['that are none', 'one', 'two', false],
  ['that are the same text without an origin', 'data:text/plain,one', 'data:text/plain,one', true],
])('URLs %s have one origin, or not', (_, one, other, isSame) => {
  expect(originOf(one) === originOf(other)).toBe(isSame);
});
