import { expect, test } from '@jest/globals';
import { newSigningKey } from './ed25519-keys.ts';
import { type SignatureScheme, signingSecretsFor, signingTexts } from './signature-scheme.ts';

const [one, two] = [1, 2].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`) as [string, string];
const [key, oldKey] = [newSigningKey(), newSigningKey()] as const;

test.each<[SignatureScheme, string[]]>([
  ['hmac-sha256', [one, two]],
  ['ed25519', [key, oldKey]],
  ['both', [one, two, key, oldKey]],
])('%s signs with what it needs of a value that has both, the current ones first', (scheme, expected) => {
  const found = signingSecretsFor(`${key} ${one}\n${two} ${oldKey}\n`, scheme);
  if (found.problem !== undefined) throw new Error(found.problem);
  expect(signingTexts(found, scheme)).toEqual(expected);
});

test.each<[string, SignatureScheme, string]>([
  [key, 'hmac-sha256', 'contains no whsec_ secret, which signatureScheme hmac-sha256 needs'],
  [key, 'both', 'contains no whsec_ secret, which signatureScheme both needs'],
  [`${one} ${two}`, 'ed25519', 'contains no whsk_ key, which signatureScheme ed25519 needs'],
  [one, 'both', 'contains no whsk_ key, which signatureScheme both needs'],
  [`${one} whsk_AAAA`, 'hmac-sha256', 'contains a whsk_ key that is not whsk_ followed by'],
  [`whsk_${Buffer.alloc(64, 1).toString('base64')}`, 'ed25519', 'contains a whsk_ key that has another public key'],
  [`whpk_${key.slice(5)}`, 'ed25519', 'contains a whpk_ key, which is public and signs nothing'],
  ['a password', 'ed25519', 'is not whsec_ followed by the base64 of 24 to 64 bytes, or whsk_'],
  [' \n', 'both', 'is not whsec_'],
])('%.8s… is refused for %s: %s', (value, scheme, complaint) => {
  const { problem = '' } = signingSecretsFor(value, scheme);
  expect(problem).toContain(complaint);
  for (const part of value.trim().split(' ')) if (part.length > 8) expect(problem).not.toContain(part.slice(6));
});
