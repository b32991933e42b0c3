import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { IngestUnderTest, signingSecret } from '../../test/support/ingest.ts';
import type { SourceRecord } from '../core/records.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const path = '/ingest/acme/github';
const subscription = 'hub.mode=subscribe&hub.topic=t&hub.challenge=';
type Type = NonNullable<SourceRecord['handshake']>['type'];

/** The answer as text. `target`: after the path. */
async function ask(method: string, target: string, headers: string[] = []): Promise<{ status: number; head: string; body: string }> {
  const lines = [`${method} ${path}${target} HTTP/1.1`, 'Host: a', 'Connection: close', 'Content-Length: 0', ...headers];
  const text = Buffer.from(await ingest.sendRaw([`${lines.join('\r\n')}\r\n\r\n`]), 'latin1').toString();
  const at = text.indexOf('\r\n\r\n');
  return { status: Number(text.split(' ')[1]), head: text.slice(0, at).toLowerCase(), body: text.slice(at + 4) };
}
const publish = (type: Type, fields: Partial<SourceRecord> = {}) =>
  ingest.publishSource({ provider: 'generic', handshake: { type }, ...fields });
const tokenOf = (verifyToken: string) => ingest.keyring.seal(verifyToken, recordSealingContext('org_a', 'source', 'src_a', 'verifyToken'));

describe('a challenge in the query', () => {
  test.each<[Type, string, string, string]>([
    ['hub_challenge', 'GET', `?${subscription}1158201444`, '1158201444'],
    ['hub_challenge', 'GET', `?hub.challenge=a%2Bb+c&hub.mode=subscribe&hub.lease_seconds=9`, 'a+b c'],
    ['hub_challenge', 'GET', `?${subscription}%3Cscript%3Ealert(1)%3C/script%3E`, '<script>alert(1)</script>'],
    ['validation_token', 'POST', '?validationToken=Validation%3A+Testing%20%C3%BC', 'Validation: Testing ü'],
    ['validation_token', 'GET', '?validationToken=%zz', '%zz'],
    ['challenge', 'GET', '?challenge=abc', 'abc'],
    ['challenge', 'GET', `?challenge=${'x'.repeat(4096)}`, 'x'.repeat(4096)],
  ])(
    'a challenge in the query with the handshake %s, %s %s, is sent back as text and is no event',
    async (type, method, target, challenge) => {
      await publish(type);
      const { status, head, body } = await ask(method, target);
      expect([status, body]).toEqual([200, challenge]);
      expect(head).toContain('content-type: text/plain; charset=utf-8');
      expect(head).toContain('x-content-type-options: nosniff');
      expect(ingest.kept.events).toEqual([]);
      expect(await ingest.outcomes()).toEqual({ handshake: 1 });
    },
  );

  test.each<[string, Type | null, string, string, number]>([
    ['a source without a handshake', null, 'GET', '?challenge=a', 405],
    ['a source with another handshake', 'challenge', 'GET', `?${subscription}a`, 405],
    ['another method', 'challenge', 'PUT', '?challenge=a', 405],
    ['the end of a subscription', 'hub_challenge', 'GET', '?hub.mode=unsubscribe&hub.challenge=a', 405],
    ['no mode', 'hub_challenge', 'GET', '?hub.challenge=a', 405],
    ['no challenge', 'hub_challenge', 'GET', '?hub.mode=subscribe', 405],
    ['an empty challenge', 'challenge', 'GET', '?challenge=', 405],
    ['a challenge that is too long', 'challenge', 'GET', `?challenge=${'x'.repeat(4097)}`, 400],
    ['an event', 'validation_token', 'POST', '?validation=a', 200],
  ])('a challenge in the query is not sent back: %s', async (_case, type, method, target, status) => {
    await ingest.publishSource({ provider: 'generic', ...(type !== null && { handshake: { type } }) });
    const answer = await ask(method, target);
    expect(answer.status).toBe(status);
    expect(answer.head).toContain('content-type: application/json');
    expect(ingest.kept.events).toHaveLength(status === 200 ? 1 : 0);
  });

  test('a challenge in the query is not sent back by a source that is disabled, does not take the address, or has had its requests', async () => {
    await publish('challenge', { enabled: false });
    expect((await ask('GET', '?challenge=a')).status).toBe(403);
    await publish('challenge', { ipFilter: { allow: ['10.0.0.0/8'], deny: [] }, generation: 2 });
    expect((await ask('GET', '?challenge=a')).status).toBe(403);
    await publish('challenge', { rateLimitPerMinute: 1, generation: 3 });
    expect([(await ask('GET', '?challenge=a')).status, (await ask('GET', '?challenge=a')).status]).toEqual([200, 429]);
  });
});

describe('with a verify token', () => {
  beforeEach(() => publish('hub_challenge', { handshake: { type: 'hub_challenge', verifyToken: tokenOf('the token') } }));

  test.each([
    ['&hub.verify_token=the%20token', 200, 'a'],
    ['&hub.verify_token=the+token', 200, 'a'],
    ['&hub.verify_token=The+token', 403, 'FORBIDDEN'],
    ['&hub.verify_token=', 403, 'FORBIDDEN'],
    ['&hub.verify_token=x&hub.verify_token=the+token', 403, 'FORBIDDEN'],
    ['', 403, 'FORBIDDEN'],
  ])('a subscription with %j is %i', async (token, status, text) => {
    const answer = await ask('GET', `?${subscription}a${token}`);
    expect(answer.status).toBe(status);
    expect(answer.body).toContain(text);
    expect(answer.body).not.toContain('the token');
    expect(ingest.kept.events).toEqual([]);
  });
});

describe('crc_token', () => {
  const verification = { algorithm: 'sha256', header: 'x-twitter-webhooks-signature', encoding: 'base64', prefix: 'sha256=' } as const;
  const signed = (text: string) => `sha256=${createHmac('sha256', signingSecret).update(text).digest('base64')}`;
  beforeEach(() => ingest.publishSignedSource({ provider: 'custom', verification, handshake: { type: 'crc_token' } }));

  test('is answered with its HMAC under the signing secret', async () => {
    const { status, body } = await ask('GET', '?crc_token=ZGVtbw%3D%3D&nonce=1');
    expect([status, JSON.parse(body)]).toEqual([200, { response_token: signed('ZGVtbw==') }]);
    expect(ingest.kept.events).toEqual([]);
  });

  test.each(['{}', '{"a":1}', '[1]', '"a"', 'a b', 'v0:1:a', 'x'.repeat(257)])(
    '%j, which could be an event, is not signed',
    async (token) => {
      const { status, body } = await ask('GET', `?crc_token=${encodeURIComponent(token)}`);
      expect([status, JSON.parse(body).code]).toEqual([400, 'BAD_REQUEST']);
    },
  );

  test.each(['1', 'true', 'ZGVtbw==', ''])('the signature of the answer to %j makes no event', async (token) => {
    const headers = { 'X-Twitter-Webhooks-Signature': signed(token) };
    expect((await ingest.send(path, { headers, body: token })).body.code).toBe('INVALID_SIGNATURE');
  });

  test('events of X are taken', async () => {
    const body = '{"for_user_id":"1"}';
    expect((await ingest.send(path, { headers: { 'X-Twitter-Webhooks-Signature': signed(body) }, body })).status).toBe(200);
  });
});

describe('OPTIONS of CloudEvents', () => {
  test.each<[string, Partial<SourceRecord>, string]>([
    ['eventgrid.azure.net', {}, '*'],
    ['*', { rateLimitPerMinute: 120 }, '120'],
    ['eventemitter.example.com:8443', { allowedMethods: ['POST', 'PUT'] }, '*'],
  ])('OPTIONS of CloudEvents from %s is allowed', async (origin, fields, rate) => {
    await publish('cloudevents', fields);
    const { status, head, body } = await ask('OPTIONS', '', [`WebHook-Request-Origin: ${origin}`, 'WebHook-Request-Rate: 9999']);
    expect([status, body]).toEqual([200, '']);
    expect(head.split('\r\n')).toEqual(
      expect.arrayContaining([
        `webhook-allowed-origin: ${origin}`,
        `webhook-allowed-rate: ${rate}`,
        `allow: ${(fields.allowedMethods ?? ['POST']).join(', ').toLowerCase()}`,
      ]),
    );
    expect(ingest.kept.events).toEqual([]);
  });

  test.each<[string, Type, string[]]>([
    ['without an origin', 'cloudevents', []],
    ['with an origin that is none', 'cloudevents', ['WebHook-Request-Origin: a b, "c"']],
    ['at a source with another handshake', 'challenge', ['WebHook-Request-Origin: a.example']],
  ])('%s is 405', async (_case, type, headers) => {
    await publish(type);
    const { status, head } = await ask('OPTIONS', '?challenge=a', headers);
    expect([status, head.includes('webhook-allowed')]).toEqual([405, false]);
  });
});
