import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { verifierOf } from '../../../test/support/verifier.ts';

const nowMs = Date.UTC(2026, 10, 21);
const nowSeconds = nowMs / 1000;
const require = createRequire(import.meta.url);

function hex(secret: string, text: string | Buffer): string {
  return createHmac('sha256', secret).update(text).digest('hex');
}

describe('github', () => {
  const secret = "It's a Secret to Everybody";
  const body = Buffer.from('Hello, World!');
  // The values that docs.github.com gives for testing one's own verification.
  const signature = '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
  const verify = verifierOf('github', [secret]);

  test('the published vector verifies', () => {
    expect(verify({ headers: { 'x-hub-signature-256': `sha256=${signature}` }, body, nowMs })).toBe(true);
  });

  test.each<[string, string | undefined]>([
    ['no header', undefined],
    ['an empty header', ''],
    ['no prefix', signature],
    ['another prefix', `sha1=${signature}`],
    ['a signature cut short', `sha256=${signature.slice(0, 62)}`],
    ['something behind it', `sha256=${signature}00`],
    ['no hexadecimal', `sha256=${'z'.repeat(64)}`],
    ['two signatures', `sha256=${signature}, sha256=${signature}`],
    ['one digit changed', `sha256=${signature.replace('7', '8')}`],
  ])('%s does not verify', (_name, header) => {
    expect(verify({ headers: { 'x-hub-signature-256': header }, body, nowMs })).toBe(false);
  });

  test('either secret verifies while a rotation lasts, an empty one never', () => {
    const headers = { 'x-hub-signature-256': `sha256=${signature}` };
    expect(verifierOf('github', ['new', secret])({ headers, body, nowMs })).toBe(true);
    expect(verifierOf('github', [''])({ headers: { 'x-hub-signature-256': `sha256=${hex('', body)}` }, body, nowMs })).toBe(false);
  });

  test('each real payload verifies as GitHub signs it, and no longer with one bit flipped', () => {
    const file = require.resolve('@octokit/webhooks-examples/api.github.com/index.json');
    const events = JSON.parse(readFileSync(file, 'utf8')) as { name: string; examples: unknown[] }[];
    let verified = 0;
    for (const { examples } of events) {
      for (const example of examples) {
        const bytes = Buffer.from(JSON.stringify(example));
        const headers = { 'x-hub-signature-256': `sha256=${hex(secret, bytes)}` };
        expect(verify({ headers, body: bytes, nowMs })).toBe(true);
        const bit = (verified * 7919) % (bytes.length * 8);
        bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
        expect(verify({ headers, body: bytes, nowMs })).toBe(false);
        verified += 1;
      }
    }
    expect(events.length).toBeGreaterThanOrEqual(50);
    expect(verified).toBeGreaterThanOrEqual(events.length);
  });
});

describe('stripe', () => {
  const secret = 'webhook_secret';
  const atMs = 1_533_204_620_000;
  // The vector of Stripe's own library tests (stripe-dotnet, event_test_signature.json).
  const signature = 'f0bdba6d4eacbd8ad8a3bbadd7248e633ec1477f7899c124c51b39405fa36613';
  const body = Buffer.from(`{
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {
    "object": {
      "id": "ii_123",
      "object": "invoiceitem",
      "amount": 1000,
      "currency": "usd",
      "customer": "cus_123",
      "date": 1533204620,
      "description": "Test Invoice Item",
      "discountable": false,
      "invoice": "in_123",
      "livemode": false,
      "metadata": {},
      "period": {
        "start": 1533204620,
        "end": 1533204620
      },
      "plan": null,
      "proration": false,
      "quantity": null,
      "subscription": null
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  },
  "type": "invoiceitem.created"
}
`);
  const verify = verifierOf('stripe', [secret]);
  const check = (header: string, now = atMs): boolean => verify({ headers: { 'stripe-signature': header }, body, nowMs: now });

  test('the published vector verifies', () => {
    expect(check(`t=1533204620,v1=${signature},v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef`)).toBe(true);
  });

  test('one of several v1 signatures is enough', () => {
    expect(check(`t=1533204620,v1=${'0'.repeat(64)}, v1=${signature}`)).toBe(true);
  });

  test.each([
    ['5 minutes old', 300, true],
    ['more than 5 minutes old', 301, false],
    ['5 minutes early', -300, true],
    ['more than 5 minutes early', -301, false],
  ])('a signature %s (%p s) is accepted: %p', (_name, ageSeconds, expected) => {
    expect(check(`t=1533204620,v1=${signature}`, atMs + ageSeconds * 1000)).toBe(expected);
  });

  test.each([
    '',
    't=1533204620',
    `v1=${signature}`,
    `t=1533204621,v1=${signature}`,
    `t=,v1=${signature}`,
    `t=1533204620,v0=${signature}`,
    ',,,=,=',
  ])('"%s" does not verify', (header) => {
    expect(check(header)).toBe(false);
  });
});

describe('standard-webhooks', () => {
  // The vector of the reference libraries.
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
  const body = Buffer.from('{"test": 2432232314}');
  const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  const atMs = 1_614_265_330_000;
  const verify = verifierOf('standard-webhooks', [secret]);
  const headers = { 'webhook-id': id, 'webhook-timestamp': '1614265330', 'webhook-signature': signature };

  test('the published vector verifies', () => {
    expect(verify({ headers, body, nowMs: atMs })).toBe(true);
  });

  test('what the reference library signs verifies, with any of several signatures and secrets', () => {
    const other = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const signed = new Webhook(other).sign(id, new Date(nowMs), body.toString());
    const list = `v1,${Buffer.alloc(32).toString('base64')} v1a,abc ${signed}`;
    const sent = { 'webhook-id': id, 'webhook-timestamp': String(nowSeconds), 'webhook-signature': list };
    expect(verifierOf('standard-webhooks', [secret, other])({ headers: sent, body, nowMs })).toBe(true);
    expect(verifierOf('standard-webhooks', [secret])({ headers: sent, body, nowMs })).toBe(false);
  });

  test.each<[string, Record<string, string>, number]>([
    ['too old', {}, 301],
    ['from the future', {}, -301],
    ['another id', { 'webhook-id': 'msg_x' }, 0],
    ['another time', { 'webhook-timestamp': '1614265331' }, 0],
    ['a time that is none', { 'webhook-timestamp': '1614265330.0' }, 0],
    ['another scheme', { 'webhook-signature': signature.replace('v1,', 'v2,') }, 0],
    ['no signature', { 'webhook-signature': '' }, 0],
    ['rubbish behind the signature', { 'webhook-signature': `${signature}AAAA` }, 0],
    ['rubbish within the signature', { 'webhook-signature': signature.replace('9SsE', '9!SsE') }, 0],
    ['the URL form of Base64', { 'webhook-signature': signature.replace('+', '-').replace('/', '_') }, 0],
    ['other bits behind the last byte', { 'webhook-signature': signature.replace('OE=', 'OF=') }, 0],
  ])('%s does not verify', (_name, changed, ageSeconds) => {
    expect(verify({ headers: { ...headers, ...changed }, body, nowMs: atMs + ageSeconds * 1000 })).toBe(false);
  });

  test('another body does not verify', () => {
    expect(verify({ headers, body: Buffer.from('{"test": 2432232315}'), nowMs: atMs })).toBe(false);
  });
});

describe('generic', () => {
  // RFC 4231, test case 2.
  const secret = 'Jefe';
  const body = Buffer.from('what do ya want for nothing?');
  const signature = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
  const verify = verifierOf('generic', [secret]);

  test.each([
    ['x-webhook-signature', signature],
    ['x-webhook-signature', `sha256=${signature}`],
    ['x-webhook-signature', signature.toUpperCase()],
    ['x-signature', signature],
    ['x-signature', `sha256=${signature}`],
  ])('%s: %s verifies', (name, value) => {
    expect(verify({ headers: { [name]: value }, body, nowMs })).toBe(true);
  });

  test('the first header counts when both are there', () => {
    expect(verify({ headers: { 'x-webhook-signature': '00', 'x-signature': signature }, body, nowMs })).toBe(false);
  });

  test('no header does not verify', () => {
    expect(verify({ headers: {}, body, nowMs })).toBe(false);
  });
});
