import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { resultsOf, verifierOf } from '../../../test/support/verifier.ts';
import { ed25519Key, newSigningKey } from '../ed25519-keys.ts';
import { LoopTurns } from '../loop-turns.ts';
import { signingKey, webhookSignature } from '../signing.ts';
import { verificationSecretsIn } from '../verification-secrets.ts';
import { maxAsymmetricSignatures } from './ed25519.ts';
import { standardWebhooksVerifier } from './standard-webhooks.ts';

const nowMs = Date.UTC(2026, 10, 21);
const seconds = String(nowMs / 1000);
const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const body = Buffer.from('{"test": 2432232314}');
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** A key as `node:crypto` makes it, and its public key from the JSON Web Key. */
function keyPair(): { privateKey: KeyObject; publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  return { privateKey, publicKey: `whpk_${Buffer.from(x, 'base64url').toString('base64')}` };
}
const [one, two] = [keyPair(), keyPair()];
const v1a = (key: KeyObject, signed = body): string =>
  `v1a,${sign(null, Buffer.concat([Buffer.from(`${id}.${seconds}.`), signed]), key).toString('base64')}`;
const v1 = new Webhook(secret).sign(id, new Date(nowMs), body.toString());
const requestWith = (signatures: string, name = 'webhook') => ({
  headers: { [`${name}-id`]: id, [`${name}-timestamp`]: seconds, [`${name}-signature`]: signatures },
  body,
  nowMs,
});

describe('a v1a signature', () => {
  test.each<[string, string[], string, boolean]>([
    ['of the key of the source', [one.publicKey], v1a(one.privateKey), true],
    ['of another key', [one.publicKey], v1a(two.privateKey), false],
    ['of the second of two keys', [two.publicKey, one.publicKey], v1a(one.privateKey), true],
    ['behind one of a key that is gone', [one.publicKey], `${v1a(two.privateKey)} ${v1a(one.privateKey)}`, true],
    ['beside a v1 signature of a secret that the source does not have', [one.publicKey], `${v1} ${v1a(one.privateKey)}`, true],
    ['beside a v1 signature, at a source with secret and key', [secret, one.publicKey], `${v1a(two.privateKey)} ${v1}`, true],
    ['of the key, beside a wrong v1 signature', [secret, one.publicKey], `v1,${'A'.repeat(43)}= ${v1a(one.privateKey)}`, true],
    ['over another body', [one.publicKey], v1a(one.privateKey, Buffer.from('{}')), false],
    ['named v1', [one.publicKey], v1a(one.privateKey).replace('v1a,', 'v1,'), false],
    ['cut short', [one.publicKey], v1a(one.privateKey).slice(0, -8), false],
    ['in the URL form of Base64', [one.publicKey], `v1a,${Buffer.alloc(64, 251).toString('base64url')}`, false],
  ])('%s is accepted or refused', (_, secrets, signatures, expected) => {
    for (const provider of ['standard-webhooks', 'svix'] as const)
      expect(verifierOf(provider, secrets)(requestWith(signatures))).toBe(expected);
    expect(verifierOf('svix', secrets)(requestWith(signatures, 'svix'))).toBe(expected);
  });

  test('a v1a signature of Posthorn is verified with the public key that Posthorn shows', () => {
    const text = newSigningKey();
    const made = ed25519Key(text);
    if (made.problem !== undefined) throw new Error(made.problem);
    const signature = webhookSignature([signingKey(secret), signingKey(text)], id, Number(seconds), body);
    for (const secrets of [[made.publicKey], [secret], [secret, made.publicKey]])
      expect(verifierOf('standard-webhooks', secrets)(requestWith(signature))).toBe(true);
  });

  test.each([
    [300, true],
    [301, false],
    [-300, true],
    [-301, false],
  ])('%d s old is accepted: %p', (ageSeconds, expected) => {
    const request = { ...requestWith(v1a(one.privateKey)), nowMs: nowMs + ageSeconds * 1000 };
    expect(verifierOf('standard-webhooks', [one.publicKey])(request)).toBe(expected);
  });

  test('the public key is no secret: an HMAC with its bytes is refused', () => {
    const asSecret = one.publicKey.replace('whpk_', 'whsec_');
    const forged = new Webhook(asSecret).sign(id, new Date(nowMs), body.toString());
    expect(verifierOf('standard-webhooks', [one.publicKey])(requestWith(forged))).toBe(false);
  });

  test.each<[string, string[], string, object]>([
    ['of a source with a secret alone', [secret], v1a(one.privateKey), { reason: 'no_secret_matches', header: 'webhook-signature' }],
    ['a v1 signature at a source with a key alone', [one.publicKey], v1, { reason: 'no_secret_matches', header: 'webhook-signature' }],
    ['of another key', [secret, one.publicKey], v1a(two.privateKey), { reason: 'no_secret_matches' }],
    ['that is malformed', [one.publicKey], 'v1a,abc', { reason: 'header_malformed', header: 'webhook-signature' }],
  ])('%s fails for the reason that helps', (_, secrets, signatures, failure) => {
    expect(resultsOf('standard-webhooks', secrets)(requestWith(signatures))).toEqual(failure);
  });

  test('a v1a signature behind so many others is not read', () => {
    const others = Array.from({ length: maxAsymmetricSignatures }, () => v1a(two.privateKey));
    const verify = verifierOf('standard-webhooks', [one.publicKey]);
    expect(verify(requestWith([...others.slice(1), v1a(one.privateKey)].join(' ')))).toBe(true);
    expect(verify(requestWith([...others, v1a(one.privateKey)].join(' ')))).toBe(false);
  });

  test.each([3, 9])('a v1a signature over a body of %d MiB is verified elsewhere, in the turns of its organization', async (mebibytes) => {
    const large = Buffer.alloc(mebibytes * 1_048_576, 'x');
    const verify = standardWebhooksVerifier([two.publicKey, one.publicKey]);
    const run = (signature: string) => {
      const request = { ...requestWith(signature), body: large, organization: 'org_a', path: '/', publicUrl: undefined };
      return [new LoopTurns().of('org_a').run(verify(request)), new LoopTurns().of('org_a').runShort(verify(request))];
    };
    for (const result of await Promise.all(run(v1a(one.privateKey, large)))) expect(result).toHaveProperty('signed');
    for (const result of await Promise.all(run(v1a(one.privateKey)))) expect(result).toEqual({ reason: 'no_secret_matches' });
  });

  test('a v1a signature over a large body does not wait for all those of another organization', async () => {
    const large = Buffer.alloc(2 * 1_048_576, 'x');
    const request = { ...requestWith(v1a(one.privateKey, large)), body: large, path: '/', publicUrl: undefined };
    const verify = standardWebhooksVerifier([one.publicKey]);
    const ended: string[] = [];
    const verified = async (organization: string): Promise<void> => {
      await new LoopTurns().of(organization).run(verify({ ...request, organization }));
      ended.push(organization);
    };
    await Promise.all(['org_a', 'org_a', 'org_a', 'org_a', 'org_a', 'org_a', 'org_b', 'org_c', 'org_b'].map(verified));
    expect(ended).toHaveLength(9);
    expect(ended.slice(-3)).toEqual(['org_a', 'org_a', 'org_a']);
  });

  test('a v1a signature over a large body does not wait for all those of another source of its organization', async () => {
    const large = Buffer.alloc(2 * 1_048_576, 'x');
    const wrong = Array.from({ length: 4 }, () => v1a(two.privateKey, large)).join(' ');
    const verify = standardWebhooksVerifier([one.publicKey]);
    const ended: string[] = [];
    const verified = async (source: string): Promise<void> => {
      const request = { ...requestWith(wrong), body: large, path: '/', publicUrl: undefined, organization: 'org_a', source };
      await new LoopTurns().of('org_a').run(verify(request));
      ended.push(source);
    };
    await Promise.all(['a', 'a', 'a', 'a', 'a', 'a', 'b', 'c', 'b'].map(verified));
    expect(ended.slice(-3)).toEqual(['a', 'a', 'a']);
  });
});

describe('what a source of Standard Webhooks verifies with', () => {
  test('what a source of Standard Webhooks verifies with are secrets and public keys in any mixture', () => {
    expect(verificationSecretsIn(` ${secret}\n${one.publicKey} ${two.publicKey}`)).toEqual({
      secrets: [secret],
      publicKeys: [one.publicKey, two.publicKey],
    });
  });

  test.each([
    ['', 'is not'],
    ['whpk_', 'is not'],
    [`whpk_${Buffer.alloc(31).toString('base64')}`, 'is not'],
    [`${one.publicKey} plain`, 'is not'],
    [newSigningKey(), 'contains a whsk_ key'],
  ])('what a source of Standard Webhooks verifies with is not %j', (value, problem) => {
    expect(verificationSecretsIn(value).problem).toMatch(new RegExp(`^${problem}`));
  });
});
