import { createHmac } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'svix';
import { verifierOf } from '../../../test/support/verifier.ts';

const nowMs = Date.UTC(2026, 10, 21);

describe('bitbucket', () => {
  // The values that support.atlassian.com gives for testing one's own verification.
  const body = Buffer.from('Hello World!');
  const signature = 'a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9';
  const verify = verifierOf('bitbucket', ["It's a Secret to Everybody"]);

  test('the published vector verifies', () => {
    expect(verify({ headers: { 'x-hub-signature': `sha256=${signature}` }, body, nowMs })).toBe(true);
  });

  test.each([
    ['x-hub-signature', signature],
    ['x-hub-signature', `sha1=${signature}`],
    ['x-hub-signature-256', `sha256=${signature}`],
    ['x-hub-signature', `sha256=${signature.replace('a', 'b')}`],
  ])('%s: %s does not', (name, value) => {
    expect(verify({ headers: { [name]: value }, body, nowMs })).toBe(false);
  });
});

describe('shopify', () => {
  // Vector of Shopify's own library: tests/Webhooks/RegistryTest.php of Shopify/shopify-api-php.
  const body = Buffer.from('{"foo":"bar"}');
  const signature = '/Redz4YXHLnSmmSN8grr5/Jl/Ua3d7yX3iWbjb8R8wo=';
  const verify = verifierOf('shopify', ['steffi']);

  test('the published vector verifies', () => {
    expect(verify({ headers: { 'x-shopify-hmac-sha256': signature }, body, nowMs })).toBe(true);
  });

  test.each([
    ['another body', signature, '{"foo": "bar"}'],
    ['the signature in hexadecimal', Buffer.from(signature, 'base64').toString('hex'), '{"foo":"bar"}'],
    ['a part of the signature', signature.slice(0, -2), '{"foo":"bar"}'],
  ])('%s does not', (_, value, sent) => {
    expect(verify({ headers: { 'x-shopify-hmac-sha256': value }, body: Buffer.from(sent), nowMs })).toBe(false);
  });
});

describe('slack', () => {
  // The example of docs.slack.dev, "Verifying requests from Slack".
  const body = Buffer.from(
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
  );
  const atMs = 1_531_420_618_000;
  const headers = {
    'x-slack-request-timestamp': '1531420618',
    'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  };
  const verify = verifierOf('slack', ['8f742231b10e8888abcd99yyyzzz85a5']);

  test('the published vector verifies for 5 minutes', () => {
    expect(verify({ headers, body, nowMs: atMs })).toBe(true);
    expect(verify({ headers, body, nowMs: atMs + 300_000 })).toBe(true);
    expect(verify({ headers, body, nowMs: atMs + 301_000 })).toBe(false);
    expect(verify({ headers, body, nowMs: atMs - 301_000 })).toBe(false);
  });

  test.each<[string, Record<string, string>]>([
    ['another time', { 'x-slack-request-timestamp': '1531420619' }],
    ['another version', { 'x-slack-signature': headers['x-slack-signature'].replace('v0', 'v1') }],
    ['no signature', { 'x-slack-signature': '' }],
  ])('%s does not', (_name, changed) => {
    expect(verify({ headers: { ...headers, ...changed }, body, nowMs: atMs })).toBe(false);
  });
});

describe('paddle', () => {
  // The vectors of Paddle's own libraries (paddle-node-sdk, webhooks-validator.test.ts; paddle-go-sdk, webhook_verifier_test.go).
  const body = Buffer.from('{"data": ["1", "2"]}');
  const signature = 'a300428748dce5c70e4da19bffd60769591ea969c99dea3105d0ec9612cf43f9';
  const atMs = 1_698_796_800_000;
  const verify = verifierOf('paddle', ['VALID_SECRET']);
  const check = (header: string, ageSeconds = 0): boolean =>
    verify({ headers: { 'paddle-signature': header }, body, nowMs: atMs + ageSeconds * 1000 });

  test('the vector of the Node library verifies', () => {
    expect(check(`ts=1698796800;h1=${signature}`)).toBe(true);
  });

  test('the vector of the Go library verifies', () => {
    const event = Buffer.from(
      '{"data":{"id":"pri_01hsdn96k2hxjzsq5yerecdj9j","name":null,"status":"active","quantity":{"maximum":999999,"minimum":1},"tax_mode":"account_setting","product_id":"pro_01hsdn8qp7yydry3x1yeg6a9rv","unit_price":{"amount":"1000","currency_code":"USD"},"custom_data":null,"description":"testing","import_meta":null,"trial_period":null,"billing_cycle":{"interval":"month","frequency":1},"unit_price_overrides":[]},"event_id":"evt_01hsdn97563968dy0szkmgjwh3","event_type":"price.created","occurred_at":"2024-03-20T10:07:35.590857Z","notification_id":"ntf_01hsdn977e920kbgzt6r6c9rqc"}',
    );
    const header = 'ts=1710929255;h1=6c05ef8fa83c44d751be6d259ec955ce5638e2c54095bf128e408e2fce1589c8';
    const secret = 'pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr';
    const request = { headers: { 'paddle-signature': header }, body: event, nowMs: 1_710_929_255_000 };
    expect(verifierOf('paddle', [secret])(request)).toBe(true);
    expect(verifierOf('paddle', ['abc'])(request)).toBe(false);
  });

  test('one of several h1 signatures is enough, other schemes do not count', () => {
    expect(check(`ts=1698796800;h1=${'0'.repeat(64)};h1=${signature};h2=x`)).toBe(true);
    expect(check(`ts=1698796800;h2=${signature}`)).toBe(false);
  });

  test.each(['', `h1=${signature}`, 'ts=1698796800', `ts=9876;h1=${signature}`, `ts=1698796800,h1=${signature}`])(
    '"%s" does not verify',
    (header) => {
      expect(check(header)).toBe(false);
    },
  );

  test('nor one that is more than 5 minutes old', () => {
    expect(check(`ts=1698796800;h1=${signature}`, 301)).toBe(false);
  });
});

describe('twilio', () => {
  // The vectors of Twilio's documentation and of twilio-python and twilio-node (RequestValidator).
  const secret = '12345';
  const publicUrl = 'https://mycompany.com';
  const formType = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
  const verify = verifierOf('twilio', [secret]);

  test.each([
    ['0/KCTR6DLpKmkAf8muzZqo1nDgQ=', '+12349013030'],
    ['RSOYDt4T1cUTdK1PDd93/VVr8B8=', '+14158675309'],
  ])('the published vector %s verifies a form, whatever the order of its fields', (signature, caller) => {
    const fields = { To: '+18005551212', CallSid: 'CA1234567890ABCDE', Digits: '1234', From: caller, Caller: caller };
    const headers = { ...formType, 'x-twilio-signature': signature };
    const body = Buffer.from(new URLSearchParams(fields).toString());
    expect(verify({ headers, body, nowMs, path: '/myapp.php?foo=1&bar=2', publicUrl })).toBe(true);
    expect(verify({ headers, body, nowMs, path: '/myapp.php?foo=1&bar=3', publicUrl })).toBe(false);
    expect(verify({ headers, body: Buffer.concat([body, Buffer.from('&x=')]), nowMs, path: '/myapp.php?foo=1&bar=2', publicUrl })).toBe(
      false,
    );
  });

  test('the published vector of a JSON body verifies by the digest in the address', () => {
    const path = '/myapp.php?foo=1&bar=2&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620';
    const headers = { 'content-type': 'application/json', 'x-twilio-signature': 'a9nBmqA0ju/hNViExpshrM61xv4=' };
    expect(verify({ headers, body: Buffer.from('{"property": "value", "boolean": true}'), nowMs, path, publicUrl })).toBe(true);
    expect(verify({ headers, body: Buffer.from('{"property": "value", "boolean": false}'), nowMs, path, publicUrl })).toBe(false);
    expect(
      verify({ headers, body: Buffer.from('{"property": "value", "boolean": true}'), nowMs, path: '/myapp.php?foo=1&bar=2', publicUrl }),
    ).toBe(false);
  });

  const sign = (address: string): string => createHmac('sha1', secret).update(address).digest('base64');

  test.each([
    'https://h.example.com/a?b=c',
    'http://h.example.com/a?b=c',
    'https://h.example.com:443/a?b=c',
    'http://h.example.com:80/a?b=c',
  ])('%s verifies without a public address, by the Host header', (address) => {
    const headers = { host: 'h.example.com', 'x-twilio-signature': sign(address) };
    expect(verify({ headers, body: Buffer.alloc(0), nowMs, path: '/a?b=c' })).toBe(true);
  });

  test.each(['https://evil.example/a', 'http://evil.example/a'])(
    '%s, which the Host header names, is not the public address',
    (address) => {
      const headers = { host: 'evil.example', 'x-twilio-signature': sign(address) };
      expect(verify({ headers, body: Buffer.alloc(0), nowMs, path: '/a', publicUrl })).toBe(false);
      expect(verify({ headers, body: Buffer.alloc(0), nowMs, path: '/a' })).toBe(true);
    },
  );

  test('a field that is there twice counts with both values', () => {
    const headers = { ...formType, 'x-twilio-signature': sign('https://mycompany.com/aA1A2B3') };
    expect(verify({ headers, body: Buffer.from('B=3&A=2&A=1&A=2'), nowMs, path: '/a', publicUrl })).toBe(true);
  });

  test('no body is signed but a form, or one whose digest is in the address', () => {
    const headers = { 'content-type': 'text/plain', 'x-twilio-signature': sign('https://mycompany.com/a') };
    expect(verify({ headers, body: Buffer.from('x'), nowMs, path: '/a', publicUrl })).toBe(false);
  });
});

describe('svix', () => {
  // The vector of Svix' documentation, which is that of Standard Webhooks.
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
  const body = Buffer.from('{"test": 2432232314}');
  const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  const atMs = 1_614_265_330_000;
  const verify = verifierOf('svix', [secret]);

  test.each(['svix', 'webhook'])('the published vector verifies under %s-id', (name) => {
    const headers = { [`${name}-id`]: id, [`${name}-timestamp`]: '1614265330', [`${name}-signature`]: signature };
    expect(verify({ headers, body, nowMs: atMs })).toBe(true);
    expect(verify({ headers, body, nowMs: atMs + 301_000 })).toBe(false);
  });

  test('what the library of Svix signs verifies', () => {
    const headers = {
      'svix-id': id,
      'svix-timestamp': String(nowMs / 1000),
      'svix-signature': new Webhook(secret).sign(id, new Date(nowMs), body.toString()),
    };
    expect(verify({ headers, body, nowMs })).toBe(true);
    expect(verify({ headers: { ...headers, 'svix-id': 'msg_x' }, body, nowMs })).toBe(false);
  });
});

describe('gitlab', () => {
  // GitLab publishes no vector: the token is sent as it is, and a signing token signs as Standard Webhooks do, whose vector this is.
  const signingToken = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const body = Buffer.from('{"test": 2432232314}');
  const atMs = 1_614_265_330_000;
  const signed = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  };

  test('the secret token verifies, nothing else', () => {
    const verify = verifierOf('gitlab', ['old token', 'token']);
    const check = (token: string | undefined): boolean => verify({ headers: { 'x-gitlab-token': token }, body, nowMs });
    expect(['token', 'old token'].map(check)).toEqual([true, true]);
    expect(['', 'Token', 'token ', 'toke', undefined].map(check)).toEqual([false, false, false, false, false]);
    expect(verifierOf('gitlab', [''])({ headers: { 'x-gitlab-token': '' }, body, nowMs })).toBe(false);
  });

  test('the signature of a signing token verifies', () => {
    const verify = verifierOf('gitlab', [signingToken]);
    expect(verify({ headers: signed, body, nowMs: atMs })).toBe(true);
    expect(verify({ headers: { ...signed, 'webhook-id': 'other' }, body, nowMs: atMs })).toBe(false);
    expect(verify({ headers: signed, body, nowMs: atMs + 301_000 })).toBe(false);
  });
});

describe('providers without a published vector', () => {
  // Made with `openssl dgst -sha256 -hmac` and `-sha1 -hmac`, as the providers' documentation describes it: Intercom shows a signature there,
  // but not the secret it was made with, and Sentry none.
  const body = Buffer.from('{"id":"820982911946154508","name":"#9999"}');
  test.each([
    ['intercom', 'x-hub-signature', 'sha1=fa1a3d24180e1e69ceaf4edad22494b90fffb3c2'],
    ['sentry', 'sentry-hook-signature', 'dfb6380d87d6b7d33893baf8fc7a2a0de642405076c61144b9fcddc4a67b82a8'],
  ] as const)('%s verifies what is in %s', (provider, header, value) => {
    const verify = verifierOf(provider, ['hush']);
    expect(verify({ headers: { [header]: value }, body, nowMs })).toBe(true);
    expect(verify({ headers: { [header]: value }, body: Buffer.from('{}'), nowMs })).toBe(false);
    expect(verify({ headers: { [header]: value.slice(0, -2) }, body, nowMs })).toBe(false);
    expect(verify({ headers: { [header]: `${value}00` }, body, nowMs })).toBe(false);
    expect(verify({ headers: {}, body, nowMs })).toBe(false);
  });
});

describe('custom', () => {
  // RFC 4231, test case 2, and RFC 2202, test case 2 (SHA-1).
  const body = Buffer.from('what do ya want for nothing?');
  const digests = {
    sha1: 'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79',
    sha256: '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    sha512:
      '164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737',
  };

  test.each(['sha1', 'sha256', 'sha512'] as const)('%s verifies in both encodings, behind the prefix', (algorithm) => {
    for (const encoding of ['hex', 'base64'] as const) {
      for (const prefix of ['', `${algorithm}=`]) {
        const verify = verifierOf('custom', ['Jefe'], { algorithm, header: 'x-signed', encoding, prefix });
        const value = prefix + Buffer.from(digests[algorithm], 'hex').toString(encoding);
        expect(verify({ headers: { 'x-signed': value }, body, nowMs })).toBe(true);
        expect(verify({ headers: { 'x-signed': `x${value}` }, body, nowMs })).toBe(false);
        expect(verify({ headers: { 'x-signed': value }, body: Buffer.from('nothing'), nowMs })).toBe(false);
        expect(verify({ headers: {}, body, nowMs })).toBe(false);
      }
    }
  });
});
