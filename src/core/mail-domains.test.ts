import { expect, test } from '@jest/globals';
import { mailDomainProblem, refusedAddresses } from './mail-domains.ts';

test.each([
  [['a@example.com'], [], []],
  [['a@example.com', 'b@EXAMPLE.com'], ['Example.com'], []],
  [['a@evil.example', 'b@example.com'], ['example.com'], ['a@evil.example']],
  [['a@sub.example.com'], ['example.com'], ['a@sub.example.com']],
  [['a@sub.example.com', 'a@b.sub.example.com'], ['*.example.com'], []],
  [['a@example.com'], ['*.example.com'], ['a@example.com']],
  [['a@notexample.com'], ['*.example.com', 'example.com'], ['a@notexample.com']],
  [['a@example.com.evil.example'], ['example.com', '*.example.com'], ['a@example.com.evil.example']],
])('the addresses %j with the allowed domains %j leave %j refused', (addresses, domains, refused) => {
  expect(refusedAddresses(addresses, domains)).toEqual(refused);
  expect(mailDomainProblem(addresses, domains) === null).toBe(refused.length === 0);
});
