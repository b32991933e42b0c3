import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { errorCodes, PosthornError } from '../../src/core/errors.ts';
import { recordSealingContext } from '../../src/core/sealing-contexts.ts';
import { overShare } from '../../src/data/queue/byte-shares.ts';
import { families } from '../../src/facade/families/families.ts';
import { openApiDocument } from '../../src/facade/openapi/openapi.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, IngestUnderTest, signingSecret } from '../support/ingest.ts';
import { describedOperations, examplesIn, keylessOperations, members, type Schema, withReferents } from './described-operations.ts';
import { DocumentSchemas } from './document-schemas.ts';

const document: Schema = JSON.parse(JSON.stringify(await openApiDocument(families, '1.2.3')));
const schemas = new DocumentSchemas(document);
const operations = keylessOperations(document, '/ingest/{orgSlug}/{sourceSlug}');
const item = members(members(withReferents(document)['paths'])['/ingest/{orgSlug}/{sourceSlug}']);
const path = '/ingest/acme/github';
const answerOf = (method: string, status: number): Schema =>
  members(members(members(item[method.toLowerCase()])['responses'])[String(status)]);
/** The codes that have been seen, for the test that searches for those that were not. */
const seen = new Set<string>();

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest?.stop());
beforeEach(() => ingest.reset());

/** Absent without a limit. */
const ofLimit = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

/** That the response has the form, the code and exactly the headers of the document. */
function expectDescribed(answer: Answer, method = 'POST'): void {
  const described = operations.find((each) => each.method === method)?.answers.get(answer.status);
  const code = answer.headers['x-error-code'];
  expect([answer.status, schemas.complaints(described?.content.get('application/json') ?? { not: {} }, answer.body)]).toEqual([
    answer.status,
    [],
  ]);
  if (answer.status !== 200) expect(described?.codes).toContain(code);
  const headers = Object.keys(members(answerOf(method, answer.status)['headers'])).map((name) => name.toLowerCase());
  expect(Object.keys(answer.headers)).toEqual(expect.arrayContaining(headers.filter((name) => !ofLimit.includes(name))));
  const telling = ['allow', 'retry-after', 'x-error-code', 'x-request-id', ...ofLimit].filter((each) =>
    Object.hasOwn(answer.headers, each),
  );
  expect(headers).toEqual(expect.arrayContaining(telling));
  seen.add(typeof code === 'string' ? code : 'accepted');
}

describe('what the OpenAPI document says of ingest', () => {
  test('what the OpenAPI document says of ingest is beside the API, requires no key and names each method once', () => {
    expect(members(document)['paths']).toHaveProperty(
      ['/ingest/{orgSlug}/{sourceSlug}', 'servers'],
      [expect.objectContaining({ url: '/' })],
    );
    expect(operations.map(({ method }) => method)).toEqual(['POST', 'PUT', 'PATCH', 'GET', 'DELETE']);
    const ids = [...describedOperations(document), ...operations].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { method } of operations) expect(members(item[method.toLowerCase()])['security']).toEqual([]);
  });

  test('what the OpenAPI document says of ingest has examples that fit their schemas', () => {
    for (const { method } of operations)
      for (const status of Object.keys(members(members(item[method.toLowerCase()])['responses']))) {
        const media = members(members(answerOf(method, Number(status))['content'])['application/json']);
        const complaints = examplesIn(media).map((example) => schemas.complaints(members(media['schema']), example));
        expect([status, complaints]).toEqual([status, complaints.map(() => [])]);
        expect(complaints.length).toBeGreaterThan(0);
      }
  });

  test.each(['POST', 'PUT', 'PATCH', 'GET', 'DELETE'] as const)(
    'what the OpenAPI document says of ingest is what %s answers to an event, and to a duplicate',
    async (method) => {
      await ingest.publishSource({ allowedMethods: [method] });
      const send = () =>
        ingest.send(path, { method, headers: { 'X-GitHub-Delivery': 'a' }, body: method === 'GET' || method === 'DELETE' ? '' : '{}' });
      expectDescribed(await send(), method);
      const duplicate = await eventually('a duplicate', 30_000, async () => {
        const answer = await send();
        return answer.body.duplicate === true ? answer : undefined;
      });
      expectDescribed(duplicate, method);
    },
  );

  test('what the OpenAPI document says of ingest is what Slack gets as an answer to its question', async () => {
    await ingest.publishSignedSource({ provider: 'slack' });
    const body = '{"challenge":"abc","type":"url_verification"}';
    const seconds = Math.floor(Date.now() / 1000);
    const signature = createHmac('sha256', signingSecret).update(`v0:${seconds}:${body}`).digest('hex');
    const answer = await ingest.send(path, {
      headers: { 'X-Slack-Request-Timestamp': seconds, 'X-Slack-Signature': `v0=${signature}` },
      body,
    });
    expect(answer.body).toEqual({ challenge: 'abc' });
    expectDescribed(answer);
  });

  test.each([
    ['NOT_FOUND', async () => {}, '/ingest/acme/nothing'],
    ['SOURCE_DISABLED', () => ingest.publishSource({ enabled: false }), path],
    ['FORBIDDEN', () => ingest.publishSource({ provider: 'posthorn' }), path],
    ['IP_NOT_ALLOWED', () => ingest.publishSource({ ipFilter: { allow: null, deny: ['127.0.0.0/8'] } }), path],
    ['METHOD_NOT_ALLOWED', () => ingest.publishSource({ allowedMethods: ['PUT'] }), path],
    ['INVALID_SIGNATURE', () => ingest.publishSignedSource(), path],
    ['URI_TOO_LONG', () => ingest.publishSource({ rateLimitPerMinute: 100 }), `${path}?a=${'x'.repeat(8192)}`],
    ['PAYLOAD_TOO_LARGE', () => ingest.publishSource({ payloadLimitBytes: 1, rateLimitPerMinute: 100 }), path],
  ] as const)('what the OpenAPI document says of ingest is what %s answers', async (code, prepare, sentTo) => {
    await prepare();
    const answer = await ingest.send(sentTo);
    expect(answer.body.code).toBe(code);
    expectDescribed(answer);
  });

  test('what the OpenAPI document says of ingest is what an event of too many hops answers', async () => {
    await ingest.publishSource();
    const answer = await ingest.send(path, { headers: { 'X-Posthorn-Hop': '9' } });
    expect(answer.body.code).toBe('FORBIDDEN');
    expectDescribed(answer);
  });

  test('what the OpenAPI document says of ingest is what a wrong verify token answers, and says of challenges that they are text', async () => {
    const sealed = ingest.keyring.seal('right', recordSealingContext('org_a', 'source', 'src_a', 'verifyToken'));
    await ingest.publishSource({ handshake: { type: 'hub_challenge', verifyToken: sealed } });
    const question = `${path}?hub.mode=subscribe&hub.challenge=a&hub.verify_token=`;
    const answer = await ingest.send(`${question}wrong`, { method: 'GET', body: '' });
    expect(answer.body.code).toBe('FORBIDDEN');
    expectDescribed(answer, 'GET');
    const text = await ingest.sendRaw([`GET ${question}right HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`]);
    const type = /^content-type: ([^;\r]*)/im.exec(text)?.[1] ?? '';
    expect(type).toBe('text/plain');
    expect(members(answerOf('GET', 200)['content'])).toHaveProperty([type]);
  });

  test.each([
    ['RATE_LIMITED', { rateLimitPerMinute: 1 }],
    ['QUOTA_EXCEEDED', { monthlyMessages: 1 }],
  ] as const)('what the OpenAPI document says of ingest is what %s answers', async (code, limit) => {
    await ingest.publishSource(limit);
    await ingest.publishRoute();
    expectDescribed(await ingest.send(path));
    const answer = await ingest.send(path);
    expect(answer.body.code).toBe(code);
    expectDescribed(answer);
  });

  test.each([
    ['QUEUE_FULL', 'Too Many Requests', overShare()],
    ['UNAVAILABLE', 'Service Unavailable', new PosthornError('UNAVAILABLE', 'Redis does not answer', { retryAfterSeconds: 1 })],
    ['INTERNAL', 'Internal Server Error', new TypeError('a defect')],
  ] as const)('what the OpenAPI document says of ingest is what %s answers: %s', async (code, error, thrown) => {
    await ingest.publishSource();
    ingest.kept.hold = async () => {
      throw thrown;
    };
    const answer = await ingest.send(path);
    expect(answer.body).toEqual({ error, message: expect.not.stringContaining('a defect'), code });
    expectDescribed(answer);
  });

  test('what the OpenAPI document says of ingest is what a body that does not come answers', async () => {
    await ingest.reset({ bodyDeadlineMs: 50 });
    await ingest.publishSource();
    const text = await ingest.sendRaw([`POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\n{`]);
    const [head = '', body = ''] = text.split('\r\n\r\n');
    const [statusLine = '', ...lines] = head.split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
    );
    expectDescribed({ status: Number(statusLine.split(' ')[1]), headers, body: JSON.parse(body) });
  });

  test('the OpenAPI document lists no error code of ingest that was not seen here', () => {
    const codes = operations.flatMap(({ answers }) => [...answers.values()].flatMap((answer) => answer.codes));
    const own = codes.filter((code) => Object.hasOwn(errorCodes, code) && !['BAD_REQUEST', 'HEADERS_TOO_LARGE'].includes(code));
    expect([...new Set(own)].sort()).toEqual([...seen].filter((code) => code !== 'accepted').sort());
  });
});
