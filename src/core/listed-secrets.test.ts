import { expect, test } from '@jest/globals';
import { newSigningKey } from './ed25519-keys.ts';
import { signingSecretsIn } from './signature-scheme.ts';
import { standardWebhooksSecrets } from './standard-webhooks-secrets.ts';
import { verificationSecretsIn } from './verification-secrets.ts';

const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const publicKey = `whpk_${Buffer.alloc(32, 7).toString('base64')}`;
const listed = (...texts: string[]): string => `\n ${texts.join(' \n')}\n`;
const times = (count: number, text: string): string[] => Array.from({ length: count }, () => text);

test('a value of a Secret may list ten secrets and keys together, with white space around them, and no more', () => {
  const key = newSigningKey();
  expect(signingSecretsIn(listed(...times(5, secret), ...times(5, key)))).toMatchObject({ secrets: times(5, secret), keys: { length: 5 } });
  expect(signingSecretsIn(listed(...times(6, secret), ...times(5, key)))).toEqual({ problem: 'contains more than 10 secrets and keys' });
  expect(verificationSecretsIn(listed(...times(5, secret), ...times(5, publicKey)))).toMatchObject({ secrets: { length: 5 } });
  expect(verificationSecretsIn(listed(...times(5, secret), ...times(6, publicKey)))).toEqual({
    problem: 'contains more than 10 secrets and keys',
  });
  expect(standardWebhooksSecrets(listed(...times(10, secret)))).toHaveLength(10);
  expect(standardWebhooksSecrets(listed(...times(11, secret)))).toBeNull();
});
