import { createHash, createHmac } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { resultsOf } from '../../../test/support/verifier.ts';
import { isVerified, type SignedRequest } from './descriptor.ts';
import { type Provider, providerNames } from './providers.ts';
import type { SignatureFailure } from './signature-failure.ts';

const nowMs = Date.UTC(2026, 10, 21);
const nowSeconds = nowMs / 1000;
const secret = 'the secret of the source';
const signingToken = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
const hex = '0'.repeat(64);
const base64 = Buffer.alloc(32).toString('base64');
const sha1 = Buffer.alloc(20).toString('base64');
const bodyOf = 'application/json';
const late = nowSeconds - 310;

type Headers = Record<string, string>;
type Case = [Provider, string, Headers, SignatureFailure, Partial<SignedRequest>?];

const missing = (header: string): SignatureFailure => ({ reason: 'header_missing', header });
const malformed = (header: string): SignatureFailure => ({ reason: 'header_malformed', header });
const noTime = (header: string): SignatureFailure => ({ reason: 'timestamp_malformed', header });
const off = (header: string, secondsBehind: number): SignatureFailure => ({ reason: 'timestamp_outside_tolerance', header, secondsBehind });
const wrong: SignatureFailure = { reason: 'no_secret_matches' };
const standard = (time: number | string, signature = `v1,${base64}`, name = 'webhook'): Headers => ({
  [`${name}-id`]: 'msg_1',
  [`${name}-timestamp`]: String(time),
  [`${name}-signature`]: signature,
});

/** Requests by provider, whose secret is `secret`, or `signingToken` where it has the form of Standard Webhooks. */
const cases: Case[] = [
  ['generic', 'no header', {}, missing('x-webhook-signature')],
  ['generic', 'no digest', { 'x-webhook-signature': 'x' }, malformed('x-webhook-signature')],
  ['generic', 'no digest in the other header', { 'x-signature': 'x' }, malformed('x-signature')],
  ['generic', 'another secret', { 'x-signature': hex }, wrong],
  ['custom', 'no header', { 'x-hub-signature-256': hex }, missing('x-signed')],
  ['custom', 'no prefix', { 'x-signed': hex }, malformed('x-signed')],
  ['custom', 'another secret', { 'x-signed': `v=${hex}` }, wrong],
  ['github', 'the header of SHA-1 alone', { 'x-hub-signature': `sha1=${hex.slice(24)}` }, missing('x-hub-signature-256')],
  ['github', 'an empty header', { 'x-hub-signature-256': '' }, malformed('x-hub-signature-256')],
  ['github', 'another secret', { 'x-hub-signature-256': `sha256=${hex}` }, wrong],
  ['gitlab', 'no token', {}, missing('x-gitlab-token')],
  ['gitlab', 'a signature in place of the token', standard(nowSeconds), missing('x-gitlab-token')],
  ['gitlab', 'another token', { 'x-gitlab-token': 'another' }, wrong],
  ['stripe', 'no header', {}, missing('stripe-signature')],
  ['stripe', 'no signature of its scheme', { 'stripe-signature': `t=${nowSeconds},v0=${hex}` }, malformed('stripe-signature')],
  ['stripe', 'no time', { 'stripe-signature': `v1=${hex}` }, noTime('stripe-signature')],
  ['stripe', 'an old time', { 'stripe-signature': `t=${late},v1=${hex}` }, off('stripe-signature', 310)],
  ['stripe', 'a time to come', { 'stripe-signature': `t=${nowSeconds + 400},v1=${hex}` }, off('stripe-signature', -400)],
  ['stripe', 'another secret', { 'stripe-signature': `t=${nowSeconds},v1=${hex}` }, wrong],
  ['shopify', 'no header', {}, missing('x-shopify-hmac-sha256')],
  ['shopify', 'hexadecimal', { 'x-shopify-hmac-sha256': hex }, malformed('x-shopify-hmac-sha256')],
  ['shopify', 'another secret', { 'x-shopify-hmac-sha256': base64 }, wrong],
  ['slack', 'no signature', { 'x-slack-request-timestamp': String(nowSeconds) }, missing('x-slack-signature')],
  ['slack', 'no time', { 'x-slack-signature': `v0=${hex}` }, missing('x-slack-request-timestamp')],
  ['slack', 'another version', { 'x-slack-signature': `v1=${hex}`, 'x-slack-request-timestamp': '1' }, malformed('x-slack-signature')],
  [
    'slack',
    'milliseconds',
    { 'x-slack-signature': `v0=${hex}`, 'x-slack-request-timestamp': String(nowMs) },
    noTime('x-slack-request-timestamp'),
  ],
  [
    'slack',
    'an old time',
    { 'x-slack-signature': `v0=${hex}`, 'x-slack-request-timestamp': String(late) },
    off('x-slack-request-timestamp', 310),
  ],
  ['slack', 'another secret', { 'x-slack-signature': `v0=${hex}`, 'x-slack-request-timestamp': String(nowSeconds) }, wrong],
  ['twilio', 'no header', {}, missing('x-twilio-signature')],
  ['twilio', 'no digest', { 'x-twilio-signature': hex }, malformed('x-twilio-signature')],
  ['twilio', 'a body that no signature covers', { 'x-twilio-signature': sha1, 'content-type': bodyOf }, { reason: 'body_not_covered' }],
  [
    'twilio',
    'the digest of another body',
    { 'x-twilio-signature': sha1 },
    { reason: 'body_digest_mismatch' },
    { path: `/ingest/acme/source?bodySHA256=${hex}` },
  ],
  [
    'twilio',
    'another secret',
    { 'x-twilio-signature': sha1, host: 'hooks.example.com' },
    wrong,
    { path: `/ingest/acme/source?bodySHA256=${createHash('sha256').update('{}').digest('hex')}` },
  ],
  ['paddle', 'no header', {}, missing('paddle-signature')],
  ['paddle', 'an old time', { 'paddle-signature': `ts=${late};h1=${hex}` }, off('paddle-signature', 310)],
  ['standard-webhooks', 'no signature', {}, missing('webhook-signature')],
  ['standard-webhooks', 'no id', { 'webhook-signature': `v1,${base64}` }, missing('webhook-id')],
  ['standard-webhooks', 'no time', { 'webhook-signature': `v1,${base64}`, 'webhook-id': 'msg_1' }, missing('webhook-timestamp')],
  ['standard-webhooks', 'another version', standard(nowSeconds, `v1a,${base64}`), malformed('webhook-signature')],
  ['standard-webhooks', 'a date', standard('2026-11-21'), noTime('webhook-timestamp')],
  ['standard-webhooks', 'an old time', standard(late), off('webhook-timestamp', 310)],
  ['standard-webhooks', 'another secret', standard(nowSeconds), wrong],
  ['svix', 'no header', {}, missing('svix-signature')],
  ['svix', 'an old time', standard(late, `v1,${base64}`, 'svix'), off('svix-timestamp', 310)],
  ['svix', 'an old time under the other names', standard(late), off('webhook-timestamp', 310)],
  ['intercom', 'the header of SHA-256', { 'x-hub-signature': `sha256=${hex}` }, malformed('x-hub-signature')],
  ['sentry', 'no header', {}, missing('sentry-hook-signature')],
  ['bitbucket', 'another secret', { 'x-hub-signature': `sha256=${hex}` }, wrong],
  ['posthorn', 'anything', {}, { reason: 'no_secret' }],
];

test.each(cases)('%s says of %s why it is not verified', (provider, _what, headers, failure, more = {}) => {
  const ofStandard = provider === 'svix' || provider === 'standard-webhooks';
  const scheme = { algorithm: 'sha256', header: 'x-signed', encoding: 'hex', prefix: 'v=' } as const;
  const resultOf = resultsOf(provider, [ofStandard ? signingToken : secret], provider === 'custom' ? scheme : undefined);
  expect(resultOf({ headers, body: Buffer.from('{}'), nowMs, ...more })).toEqual(failure);
});

test('every provider has a case', () => {
  expect(new Set(cases.map(([provider]) => provider))).toEqual(new Set(providerNames));
});

test.each<[string, Headers, SignatureFailure]>([
  ['neither token nor signature', {}, missing('webhook-signature')],
  ['an old signature', standard(late), off('webhook-timestamp', 310)],
  ['an old signature beside a wrong token', { ...standard(late), 'x-gitlab-token': 'another' }, off('webhook-timestamp', 310)],
  ['a wrong token alone', { 'x-gitlab-token': 'another' }, wrong],
])('gitlab with a signing token says of %s why it is not verified', (_what, headers, failure) => {
  expect(resultsOf('gitlab', [signingToken])({ headers, body: Buffer.from('{}'), nowMs })).toEqual(failure);
});

test('a failure has nothing of the signature, the body or the secret', () => {
  const signature = createHmac('sha256', 'another').update('{}').digest('hex');
  const result = resultsOf('stripe', [secret])({
    headers: { 'stripe-signature': `t=${late},v1=${signature}` },
    body: Buffer.from('{"canary":1}'),
    nowMs,
  });
  expect(isVerified(result)).toBe(false);
  for (const kept of [signature, 'canary', secret, String(late)]) expect(JSON.stringify(result)).not.toContain(kept);
});
