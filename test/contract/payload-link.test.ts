import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { errorCodes, PosthornError } from '../../src/core/errors.ts';
import { PayloadLinks, payloadLinkMs } from '../../src/core/payload-link.ts';
import { families } from '../../src/facade/families/families.ts';
import { openApiDocument } from '../../src/facade/openapi/openapi.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { testKeyring } from '../support/controllers.ts';
import { type PayloadLinkServer, startPayloadLinks } from '../support/payload-links.ts';
import { RecordRegistry } from '../support/record-registry.ts';
import { organizationRecord } from '../support/records.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { describedOperations, examplesIn, keylessOperations, members, type Schema, withReferents } from './described-operations.ts';
import { DocumentSchemas } from './document-schemas.ts';

const document: Schema = JSON.parse(JSON.stringify(await openApiDocument(families, '1.2.3', '/hooks')));
const schemas = new DocumentSchemas(document);
const operations = keylessOperations(document, '/payload');
const item = members(members(withReferents(document)['paths'])['/payload']);
const answerOf = (status: number): Schema => members(members(members(item['get'])['responses'])[String(status)]);
/** The codes that have been seen, for the test that searches for those that were not. */
const seen = new Set<string>();
const ofLimit = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

let redis: RedisServer;
let registry: RecordRegistry;
const servers: PayloadLinkServer[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis?.stop());
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

async function serve(own: Partial<Parameters<typeof startPayloadLinks>[0]> = {}, plan: 'free' | 'enterprise' = 'enterprise') {
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord({ plan }));
  const server = await startPayloadLinks({ redis: redis.client, prefix: 'posthorn:', registry, ...own });
  servers.push(server);
  return server;
}
const linked = (payload: string | null, nowMs = Date.now(), id = 'msg_00') => {
  const message = payload === null ? { id, outputOf: null, contentType: null, contentEncoding: null } : null;
  return new PayloadLinks('', testKeyring).make({ org: 'org_a', message, payload }, nowMs).url;
};

/** That the response has the form, the code and exactly the headers of the document. */
async function expectDescribed(answer: Response, code: string | null): Promise<void> {
  const body: unknown = code === null ? null : await answer.json();
  const described = operations[0]?.answers.get(answer.status);
  expect([answer.status, answer.headers.get('x-error-code')]).toEqual([
    code === null ? 200 : errorCodes[code as keyof typeof errorCodes].status,
    code,
  ]);
  if (code !== null) {
    expect(schemas.complaints(described?.content.get('application/json') ?? { not: {} }, body)).toEqual([]);
    expect(described?.codes).toContain(code);
    seen.add(code);
  }
  const headers = Object.keys(members(answerOf(answer.status)['headers'])).map((name) => name.toLowerCase());
  const names = [...answer.headers.keys()];
  expect(names).toEqual(expect.arrayContaining(headers.filter((name) => !ofLimit.includes(name))));
  const telling = ['allow', 'retry-after', 'x-error-code', 'x-request-id', ...ofLimit].filter((each) => names.includes(each));
  expect(headers).toEqual(expect.arrayContaining(telling));
}

describe('what the OpenAPI document says of the links of thin events', () => {
  test('what the OpenAPI document says of the links of thin events names one operation without a key, which no path of an organization has', () => {
    expect(members(document)['paths']).toHaveProperty(['/payload', 'servers'], [expect.objectContaining({ url: '/hooks/api' })]);
    expect(operations.map(({ id, method, needsKey }) => [id, method, needsKey])).toEqual([['fetchPayload', 'GET', false]]);
    expect(members(item['get'])['security']).toEqual([]);
    expect(describedOperations(document).map(({ id }) => id)).not.toContain('fetchPayload');
    for (const status of Object.keys(members(members(item['get'])['responses'])).filter((each) => each !== '200')) {
      const media = members(members(answerOf(Number(status))['content'])['application/json']);
      expect(examplesIn(media).map((example) => schemas.complaints(members(media['schema']), example))).toEqual(
        examplesIn(media).map(() => []),
      );
    }
  });

  test('what the OpenAPI document says of the links of thin events is what a payload is answered with', async () => {
    const { url } = await serve({}, 'free');
    const answer = await fetch(url + linked('{"a":1}'));
    expect(await answer.text()).toBe('{"a":1}');
    await expectDescribed(answer, null);
  });

  test.each<[string, () => string, RequestInit]>([
    ['NOT_FOUND', () => '/api/payload?token=x', {}],
    ['NOT_FOUND', () => '/api/payload', {}],
    ['FORBIDDEN', () => linked('1'), { headers: { 'sec-fetch-dest': 'script' } }],
    ['METHOD_NOT_ALLOWED', () => linked('1'), { method: 'POST' }],
    ['EXPIRED', () => linked('1', Date.now() - payloadLinkMs), {}],
    ['EXPIRED', () => linked(null), {}],
  ])('what the OpenAPI document says of the links of thin events is what %s answers', async (code, path, request) => {
    const { url } = await serve({}, 'free');
    await expectDescribed(await fetch(url + path(), request), code);
  });

  test('what the OpenAPI document says of the links of thin events is what a fetch beyond the limit answers', async () => {
    const clock = { ...systemClock, now: () => 1_800_000_000_000 };
    const { url } = await serve({ clock }, 'free');
    const path = linked('1', clock.now());
    for (let sent = 0; sent < 1000; sent += 100)
      await Promise.all(Array.from({ length: 100 }, async () => (await fetch(url + path)).arrayBuffer()));
    await expectDescribed(await fetch(url + path), 'RATE_LIMITED');
  }, 60_000);

  test.each<[string, Error]>([
    ['UNAVAILABLE', new PosthornError('UNAVAILABLE', 'Redis does not answer', { retryAfterSeconds: 1 })],
    ['INTERNAL', new TypeError('a defect')],
  ])('what the OpenAPI document says of the links of thin events is what %s answers', async (code, thrown) => {
    const { url } = await serve();
    registry.get = () => Promise.reject(thrown);
    await expectDescribed(await fetch(url + linked('1')), code);
  });

  test('what the OpenAPI document says of the links of thin events has no code of the handler that was not seen here', () => {
    const codes = operations.flatMap(({ answers }) => [...answers.values()].flatMap((answer) => answer.codes));
    const own = codes.filter((code) => !['BAD_REQUEST', 'HEADERS_TOO_LARGE'].includes(code));
    expect([...new Set(own)].sort()).toEqual([...seen].sort());
  });
});
