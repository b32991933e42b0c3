import { createPublicKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { ed25519Key, newSigningKey } from './ed25519-keys.ts';
import { largeWebhookSignature, signingKey, webhookSignature } from './signing.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
/** The key, message and signature that Svix, which wrote the scheme, tests itself with. */
const published = {
  key: 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==',
  seed: 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc=',
  publicKey: 'whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=',
  signature: 'v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==',
};
const message = ['msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, Buffer.from('{"test": 2432232314}')] as const;

test('the published vector of Standard Webhooks comes out', () => {
  expect(webhookSignature([signingKey(secret)], ...message)).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('while a rotation lasts, holders of either secret can verify', () => {
  const other = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
  const timestamp = Math.floor(Date.now() / 1000);
  const signature = webhookSignature([signingKey(secret), signingKey(other)], 'msg_1', timestamp, Buffer.from('{"a":1}'));
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(timestamp), 'webhook-signature': signature };
  for (const each of [secret, other]) expect(new Webhook(each).verify('{"a":1}', headers)).toEqual({ a: 1 });
});

test('a secret with nothing in it is refused', () => {
  expect(() => signingKey('whsec_')).toThrow('signing secret');
});

describe('an Ed25519 key', () => {
  test.each([published.key, published.seed])('the published v1a vector comes out of %.12s…, beside the v1 signature', (key) => {
    expect(webhookSignature([signingKey(key)], ...message)).toBe(published.signature);
    expect(webhookSignature([signingKey(secret), signingKey(key)], ...message)).toBe(
      `v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= ${published.signature}`,
    );
    expect(ed25519Key(key)).toMatchObject({ publicKey: published.publicKey });
  });

  test('a new key is written as the seed and its public key, and signs what that verifies', () => {
    const text = newSigningKey();
    const made = ed25519Key(text);
    if (made.problem !== undefined) throw new Error(made.problem);
    const bytes = Buffer.from(text.slice('whsk_'.length), 'base64');
    expect([bytes.length, `whpk_${bytes.subarray(32).toString('base64')}`]).toEqual([64, made.publicKey]);
    const x = bytes.subarray(32).toString('base64url');
    const verifier = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const [, signature = ''] = webhookSignature([made.key], 'msg_1', 5, Buffer.from('body')).split(',');
    expect(verify(null, Buffer.from('msg_1.5.body'), verifier, Buffer.from(signature, 'base64'))).toBe(true);
    expect(verify(null, Buffer.from('msg_1.6.body'), verifier, Buffer.from(signature, 'base64'))).toBe(false);
    expect(newSigningKey()).not.toBe(text);
  });

  test.each([
    ['whsk_', 'is not whsk_'],
    [published.publicKey, 'is not whsk_'],
    [`${published.key.slice(0, -4)}!g==`, 'is not whsk_'],
    [`whsk_${Buffer.alloc(31, 1).toString('base64')}`, 'is not whsk_'],
    [`whsk_${Buffer.alloc(33, 1).toString('base64')}`, 'is not whsk_'],
    [`whsk_${Buffer.alloc(64, 1).toString('base64')}`, 'another public key'],
    [`whsk_${randomBytes(32).toString('base64url')}-_`, 'is not whsk_'],
  ])('%.14s… is refused as a signing key, and nothing of it is revealed', (text, complaint) => {
    const { problem = '' } = ed25519Key(text);
    expect(problem).toContain(complaint);
    expect(problem).not.toContain(text.slice(5) || '\0');
    if (text.startsWith('whsk_')) expect(() => signingKey(text)).toThrow(problem);
  });

  test.each([
    [3, 6],
    [9, 18],
  ])('a body of %d MiB has the same signatures as one that is signed at once', async (mebibytes, expectedPieces) => {
    const body = randomBytes(mebibytes * 1_048_576 + 5);
    const keys = [signingKey(secret), generateKeyPairSync('ed25519').privateKey, signingKey(published.key)];
    let pieces = 0;
    const inTurns = async <T>(work: Generator<undefined, T>): Promise<T> => {
      for (;;) {
        const { done, value } = work.next();
        if (done === true) return value;
        pieces++;
      }
    };
    expect(await largeWebhookSignature(keys, { id: 'msg_1', timestampSeconds: 5, body }, { organization: 'org_a', inTurns })).toBe(
      webhookSignature(keys, 'msg_1', 5, body),
    );
    expect(pieces).toBe(expectedPieces);
  });
});
