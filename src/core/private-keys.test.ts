import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { encryptedKey, pssOf, rsaKeyOfBits } from '../../test/support/costly-keys.ts';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { costlyKeyProblem } from './private-keys.ts';

const pem = ({ privateKey }: { privateKey: KeyObject }): string => privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const pssKey = (modulusLength: number, options: object = {}): string => pem(generateKeyPairSync('rsa-pss', { modulusLength, ...options }));

test.each<[what: string, key: () => string]>([
  ['an RSA key of 2048 bits', () => pem(generateKeyPairSync('rsa', { modulusLength: 2048 }))],
  ['an RSA key of 4096 bits', () => rsaKeyOfBits(4096)],
  [
    'an RSA key in the older form',
    () => {
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      return privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
    },
  ],
  ['an RSA key for PSS alone of 2048 bits', () => pssKey(2048)],
  [
    'an RSA key for PSS alone of 4096 bits with a hash of its own',
    () => pssKey(4096, { hashAlgorithm: 'sha256', mgf1HashAlgorithm: 'sha256', saltLength: 32 }),
  ],
  ['a key of the curve P-521', () => pem(generateKeyPairSync('ec', { namedCurve: 'P-521' }))],
  ['an Ed25519 key', () => pem(generateKeyPairSync('ed25519'))],
  ['what is no key', () => 'canary-key'],
])('%s may be used.', (_, key) => {
  expect(costlyKeyProblem(key())).toBeNull();
});

const longExponent = 2n ** 13_000n + 1n;
test.each<[what: string, key: () => string, problem: RegExp]>([
  ['an RSA key of 8192 bits', () => rsaKeyOfBits(8192), /RSA key of more than 4096 bits/],
  ['an RSA key of 40,000 bits', () => rsaKeyOfBits(40_000), /RSA key of more than 4096 bits/],
  ['an RSA key of 2048 bits with a longer exponent', () => rsaKeyOfBits(2048, { d: longExponent }), /longer than its modulus/],
  ['an RSA key of 2048 bits with a longer exponent of a prime', () => rsaKeyOfBits(2048, { dp: longExponent }), /longer than its modulus/],
  ['an RSA key of 2048 bits with a longer public exponent', () => rsaKeyOfBits(2048, { e: longExponent }), /longer than its modulus/],
  [
    'an RSA key of 2048 bits with a third prime that is longer',
    () => rsaKeyOfBits(2048, {}, { r: longExponent, d: longExponent, t: 3n }),
    /longer than its modulus/,
  ],
  ['an RSA key for PSS alone of 8192 bits', () => pssOf(rsaKeyOfBits(8192)), /RSA key of more than 4096 bits/],
  [
    'an RSA key for PSS alone of 2048 bits with a longer exponent',
    () => pssOf(rsaKeyOfBits(2048, { d: longExponent })),
    /longer than its modulus/,
  ],
  ['a DSA key', () => pem(generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 })), /type dsa/],
  ['an encrypted key', () => encryptedKey(0x7fff), /encrypted/],
  [
    'an encrypted key in the older form',
    () => {
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      return privateKey.export({ type: 'pkcs1', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'x' }).toString();
    },
    /encrypted/,
  ],
])('%s is refused at once.', (_, key, problem) => {
  const text = key();
  expect(withinProcessorTime(() => costlyKeyProblem(text))).toMatch(problem);
});
