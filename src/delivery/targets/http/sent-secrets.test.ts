import { describe, expect, test } from '@jest/globals';
import { withinProcessorTime } from '../../../../test/support/short-work.ts';
import { httpTarget } from './http-target.ts';
import { SentSecrets, secretsInSecretUrl } from './sent-secrets.ts';

const secret = `s3cr&t/+<wörd>='"\\ of 7`;
const secrets = new SentSecrets([secret, 'short']);
const base64 = (text: string, encoding: 'base64' | 'base64url' = 'base64') => Buffer.from(text).toString(encoding);
const form = new URLSearchParams({ secret }).toString().slice('secret='.length);

const writings: Record<string, string> = {
  'as it is': secret,
  'in JSON': JSON.stringify({ secret }),
  'in JSON within JSON': JSON.stringify({ body: JSON.stringify({ secret }) }),
  'in JSON with escaped slashes': JSON.stringify({ secret }).replaceAll('/', '\\/'),
  'in JSON that may stand in HTML': JSON.stringify({ secret }).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
  'in JSON of ASCII alone': JSON.stringify({ secret }).replace('ö', '\\u00f6'),
  'URL-encoded': encodeURIComponent(secret),
  'URL-encoded in lower case': encodeURIComponent(secret).replace(/%../g, (byte) => byte.toLowerCase()),
  'as a field of a form': form,
  'in HTML': secret
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;'),
  'in Base64': base64(secret),
  'in Base64 for URLs': base64(secret, 'base64url'),
  'in hex': Buffer.from(secret).toString('hex'),
};

describe('a secret that a receiver repeats', () => {
  test.each(Object.entries(writings))('a secret that a receiver repeats is masked %s', (_, text) => {
    const shown = secrets.maskedIn(`You sent: ${text}; bye`);
    expect(shown).not.toContain(text);
    expect(shown).toMatch(/^You sent: .*••••.*; bye$/);
  });

  test.each([0, 1, 2, 3])('a secret that a receiver repeats is masked in Base64 of a text in which it is after %i characters', (offset) => {
    const token = 'CANARY-0123456789-abcdef';
    const text = base64(`${'x'.repeat(offset)}${token} and more`);
    const shown = new SentSecrets([token]).maskedIn(text);
    expect(Buffer.from(shown.replaceAll('•', ''), 'base64').toString()).not.toContain('CANARY-01');
    expect(shown).toContain('••••');
  });

  test('a secret that a receiver repeats is masked as often as it is there, also beside another one that begins with it', () => {
    const both = new SentSecrets(['token-of-one', 'token-of-one-and-two']);
    expect(both.maskedIn('token-of-one token-of-one-and-two token-of-one')).toBe('•••• •••• ••••');
  });

  test('a secret that a receiver repeats is masked without the line break that its file ended with', () => {
    expect(new SentSecrets(['a-long-token\n']).maskedIn('[a-long-token]')).toBe('[••••]');
  });

  test('a secret that a receiver repeats stays when it has fewer than 8 characters, which may be there by chance', () => {
    expect(secrets.maskedIn('a short text')).toBe('a short text');
  });
});

test.each([
  ['Bearer', 'authorization', 'Bearer a-token-of-the-shop', 'a-token-of-the-shop'],
  ['Basic, decoded', 'authorization', `Basic ${base64('shop:a-password')}`, 'shop:a-password'],
  ['Basic, the password alone', 'authorization', `Basic ${base64('shop:a-password')}`, 'user=shop pass=a-password'],
  ['a cookie', 'cookie', 'a=1; session=a-long-session', 'session is a-long-session'],
  ['the key of a sender', 'x-api-key', 'a-key-of-the-sender', 'key: a-key-of-the-sender'],
])('a credential in a header of the request is masked: %s', (_, name, value, text) => {
  const shown = SentSecrets.none.maskedIn(`<${text}>`, { sent: { path: '/', headers: ['content-type', 'text/plain', name, value] } });
  expect(shown).toMatch(/••••>$/);
});

test('a credential in the query of the URL is masked, and nothing else of it', () => {
  const sent = { path: '/hook?event=order-paid-today&api_key=a-key-in-the-url', headers: [] };
  expect(SentSecrets.none.maskedIn('order-paid-today a-key-in-the-url', { sent })).toBe('order-paid-today ••••');
});

test.each([
  ['escapes in lower case', 'a%2fkey%2bin%3dthe', 'a/key+in=the'],
  ['escapes that need not be', 'a%2Dkey%7Ein%61URL', 'a-key~inaURL'],
  ['characters that encoders escape', "a'key(in)the|URL", "a'key(in)the|URL"],
])('a credential in the query of the URL is masked as it is written and decoded: %s', (_, written, decoded) => {
  const sent = { path: `/hook?token=${written}&page=2`, headers: [] };
  expect(SentSecrets.none.maskedIn(`[${written}] [${decoded}]`, { sent })).toBe('[••••] [••••]');
});

test.each([
  "https://hooks.example/services/T0'B0/it's-secret?sig='quoted-text'",
  'https://hooks.example/services/%54%30%2f%42%30-secret?sig=%2fquoted%2ftext',
])('a URL that is a credential is masked as it is written, as a whole and in parts: %s', (url) => {
  const all = new SentSecrets(secretsInSecretUrl(url, httpTarget(url)));
  const [path = '', sig = ''] = url.slice('https://hooks.example'.length).split('?sig=');
  for (const text of [url, `${path}?sig=${sig}`, path.split('/').at(-1) ?? '', sig]) expect(all.maskedIn(text)).toBe('••••');
});

test('headers that are no credentials are kept', () => {
  const sent = { path: '/', headers: ['x-team', 'platform-team', 'idempotency-key', 'order-1234567'] };
  expect(SentSecrets.none.maskedIn('platform-team order-1234567', { sent })).toBe('platform-team order-1234567');
});

test('nothing of a secret stays in a text that was cut in its middle, in whatever form', () => {
  const token = 'CANARY/0123456789';
  for (const written of [token, encodeURIComponent(token), base64(token)])
    for (let length = 1; length < written.length; length++)
      expect(new SentSecrets([token]).maskedIn(`some text before: ${written.slice(0, length)}`, { isCut: true })).toBe(
        'some text before: ••••',
      );
});

test('a text that was not cut keeps its end', () => {
  expect(new SentSecrets(['CANARY/0123456789']).maskedIn('some text: CAN')).toBe('some text: CAN');
});

test('a long secret whose letters the cut text repeats is searched for in linear time', () => {
  const secrets = new SentSecrets([`${'a'.repeat(60_000)}b`]);
  const text = `c${'a'.repeat(60_000)}`;
  expect(withinProcessorTime(() => secrets.maskedIn(`${text}c`, { isCut: true }))).toBe(`${text}c`);
});

const cookies = (count: number, value: (i: number) => string) => Array.from({ length: count }, (_, i) => `c${i}=${value(i)}`).join('; ');
const page = '<html>The order could not be placed. '.repeat(430);

test.each([
  ['1,100 short cookies', cookies(1100, (i) => `${i}`.padStart(8, 's'))],
  ['5,000 short cookies', cookies(5000, (i) => `${i}`.padStart(8, 's'))],
  ['150 cookies of signs that encoders escape', cookies(150, (i) => `${'/+&'.repeat(12)}${i}`)],
  ['140 short cookies of such signs', cookies(140, (i) => `/+&="'<${i}`)],
  ['cookies that begin alike', cookies(90, (i) => `${'a'.repeat(60)}${i}`)],
  ['one cookie of 30,000 such signs', cookies(1, () => '/+'.repeat(15_000))],
  ['one cookie of 7,800 such signs', cookies(1, () => '/+'.repeat(3900))],
])('an answer to a request with %s is masked soon', (_, cookie) => {
  for (const part of ['a', '/+', '/+&', page]) {
    const text = part.repeat(Math.ceil(16_384 / part.length)).slice(0, 16_384);
    withinProcessorTime(() => SentSecrets.none.maskedIn(text, { isCut: true, sent: { path: '/', headers: ['cookie', cookie] } }), 100);
  }
});

test('each of 40 cookies is masked in a long answer, of which the rest stays', () => {
  const value = (i: number) => `v/${i}+<'of-a-cookie>`;
  const sent = { path: '/', headers: ['cookie', cookies(40, value)] };
  const repeated = Array.from({ length: 40 }, (_, i) => `${i}: ${value(i)}, ${encodeURIComponent(value(i))}, ${base64(value(i))};`).join(
    '',
  );
  const masked = Array.from({ length: 40 }, (_, i) => `${i}: ••••, ••••, ••••;`).join('');
  expect(SentSecrets.none.maskedIn(page + repeated + page, { sent })).toBe(page + masked + page);
});

test('nothing of an answer is kept where the request had too many credentials', () => {
  const sent = { path: '/', headers: ['cookie', cookies(400, (i) => `value-of-cookie-${i}`)] };
  expect(SentSecrets.none.maskedIn('no such order', { sent })).toBe('••••');
});
