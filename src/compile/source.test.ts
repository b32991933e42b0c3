import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { storedObject } from '../../test/support/objects.ts';
import { newSigningKey } from '../core/ed25519-keys.ts';
import { Keyring } from '../core/sealing.ts';
import { organizationFacts } from './organization.ts';
import { compileSource } from './source.ts';

const keyring = new Keyring([{ id: 'k1', key: randomBytes(32) }]);
const organization = organizationFacts(storedObject('Organization', 'acme', { namespace: 'acme', plan: 'starter' }));
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const reference = { name: 's', key: 't' };

test('a source of Standard Webhooks verifies with secrets, which are sealed, and with public keys, which an earlier release does not take for secrets', () => {
  const publicKey = `whpk_${Buffer.alloc(32, 9).toString('base64')}`;
  const compiled = (signingSecret: string, more: object = {}) => {
    const object = storedObject('Source', 'orders', { provider: 'standard-webhooks', signingSecretRef: reference, ...more }, 'acme');
    return compileSource(object, { organization, signingSecret, keyring, published: null });
  };
  expect(compiled(publicKey).record).toMatchObject({ signingSecrets: [], publicKeys: [publicKey], rejectInvalidSignatures: true });
  expect(compiled(`${secret} ${publicKey}`).record).toMatchObject({ signingSecrets: [expect.any(String)], publicKeys: [publicKey] });
  expect(compiled(secret).record).not.toHaveProperty('publicKeys');
  expect(compiled(publicKey, { handshake: { type: 'crc_token' } }).refusal?.reason).toBe('InvalidSigningSecret');
  expect(compiled(newSigningKey()).refusal?.message).toContain('a source needs the whpk_ key');
});
