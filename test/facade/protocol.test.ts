import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PosthornError } from '../../src/core/errors.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { eventually } from '../support/eventually.ts';
import { inBatches } from '../support/in-batches.ts';
import { newEvent } from '../support/new-event.ts';
import { assertProperty } from '../support/property.ts';
import { type FacadeWorld, type RequestOptions, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
  await world.addOrganization('other');
});
afterAll(() => world.stop());

const collections = [
  'sources',
  'destinations',
  'routes',
  'filters',
  'transforms',
  'schemas',
  'notification-channels',
  'api-keys',
  'events',
  'deliveries',
];

describe('credentials', () => {
  test.each(['authorization', 'x-api-key'])('credentials are taken from %s', async (header) => {
    const value = header === 'authorization' ? `Bearer ${world.admin}` : world.admin;
    expect((await world.request('GET', '/api/destinations', { key: null, headers: { [header]: value } })).status).toBe(200);
  });

  test.each([
    ['none', {}],
    ['a wrong key', { authorization: `Bearer ph_${'a'.repeat(52)}` }],
    ['another scheme', { authorization: 'Basic YTpi' }],
    ['an empty key', { 'x-api-key': '' }],
  ])('%s is 401', async (_, headers) => {
    const { status, body, headers: answered } = await world.request('GET', '/api/routes', { key: null, headers });
    expect(status).toBe(401);
    expect(body).toEqual({ error: 'Unauthorized', message: expect.any(String), code: 'UNAUTHORIZED' });
    expect(answered.get('x-error-code')).toBe('UNAUTHORIZED');
  });

  test('an expired key is 401', async () => {
    const key = await world.addKey('acme', { expiresAt: '2020-01-01T00:00:00Z' });
    expect((await world.request('GET', '/api/routes', { key })).status).toBe(401);
  });

  test('a viewer reads and does not write', async () => {
    const key = await world.addKey('acme', { role: 'viewer' });
    expect((await world.request('GET', '/api/sources', { key })).status).toBe(200);
    expect(await world.request('POST', '/api/sources', { key, body: { name: 'No' } })).toMatchObject({
      status: 403,
      body: { code: 'FORBIDDEN' },
    });
  });

  test('a developer does not manage keys', async () => {
    const key = await world.addKey('acme', { role: 'developer' });
    expect((await world.request('POST', '/api/api-keys', { key, body: { name: 'No' } })).status).toBe(403);
    expect((await world.request('POST', '/api/sources', { key, body: { name: 'Yes' } })).status).toBe(201);
  });

  test('a key without the scope delete does not delete', async () => {
    const key = await world.addKey('acme', { role: 'admin', scopes: ['read', 'write'] });
    const { body } = await world.request('POST', '/api/filters', {
      key,
      body: { name: 'Kept', conditions: [{ field: 'a', operator: 'exists' }] },
    });
    expect((await world.request('DELETE', `/api/filters/${body.id}`, { key })).status).toBe(403);
  });
});

describe('organizations', () => {
  test.each(['acme'])('the long prefix takes the slug %s', async (org) => {
    expect((await world.request('GET', `/api/organizations/${org}/sources`)).status).toBe(200);
  });

  test("another's prefix is 404, and so are its records", async () => {
    const key = await world.addKey('other');
    const { body } = await world.request('POST', '/api/sources', { key, body: { name: 'Theirs' } });
    expect((await world.request('GET', '/api/organizations/other/sources')).status).toBe(404);
    expect(await world.request('GET', `/api/sources/${body.id}`)).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } });
    expect((await world.request('DELETE', `/api/sources/${body.id}`)).status).toBe(404);
    expect((await world.request('GET', `/api/sources/${body.id}`, { key })).status).toBe(200);
  });
});

describe('requests that cannot be served', () => {
  test.each<[string, string, RequestOptions, number, string]>([
    [
      'a body of 10 MB',
      '/api/sources',
      { rawBody: JSON.stringify({ name: 'x'.repeat(10_000_000) }) },
      413,
      'The body is larger than 1048576 bytes.',
    ],
    [
      'text that calls itself gzip',
      '/api/sources',
      { rawBody: '{"name":"a"}', headers: { 'content-encoding': 'gzip' } },
      400,
      'The body does not match its Content-Encoding.',
    ],
    [
      'text that calls itself zstd',
      '/api/sources',
      { rawBody: '{"name":"a"}', headers: { 'content-encoding': 'zstd' } },
      400,
      'The body does not match its Content-Encoding.',
    ],
    [
      'an unknown encoding',
      '/api/sources',
      { rawBody: '{"name":"a"}', headers: { 'content-encoding': 'zip' } },
      415,
      'Send the body uncompressed, or with Content-Encoding gzip, deflate or br.',
    ],
  ])('%s: the answer says what to do', async (_, path, options, status, message) => {
    const answer = await world.request('POST', path, options);
    expect([answer.status, answer.body.message]).toEqual([status, message]);
  });

  test.each([
    ['/api/sources?page=1&page=2', 'Query: page must be given once.'],
    ['/api/events?cursor=made-up', 'Query: cursor must be the nextCursor of an answer to this query, with the same filters.'],
  ])('%s: the answer names what is wrong with the query', async (path, message) => {
    const { status, body } = await world.request('GET', path);
    expect([status, body.code, body.message]).toEqual([400, 'INVALID_QUERY', message]);
  });

  test.each([
    ['malformed JSON', 'POST', '/api/sources', { rawBody: '{"name":' }, 400, 'MALFORMED_JSON'],
    ['an unknown field', 'POST', '/api/sources', { body: { name: 'a', nmae: 'b' } }, 400, 'UNKNOWN_FIELD'],
    ['a body that is no object', 'POST', '/api/sources', { body: [] }, 400, 'VALIDATION_FAILED'],
    [
      'another content type',
      'POST',
      '/api/sources',
      { rawBody: 'a=b', headers: { 'content-type': 'text/plain' } },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['a field where there is no body', 'POST', '/api/routes/any/reset-circuit', { body: { force: true } }, 400, 'UNKNOWN_FIELD'],
    [
      'text where there is no body',
      'POST',
      '/api/routes/any/reset-circuit',
      { rawBody: 'a=b', headers: { 'content-type': 'text/plain' } },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['a body of 10 MB', 'POST', '/api/sources', { rawBody: JSON.stringify({ name: 'x'.repeat(10_000_000) }) }, 413, 'PAYLOAD_TOO_LARGE'],
    ['an unknown path', 'GET', '/api/nothing', {}, 404, 'NOT_FOUND'],
    ['a wrong method', 'PUT', '/api/sources', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['page 0', 'GET', '/api/sources?page=0', {}, 400, 'INVALID_QUERY'],
    ['a filter that is misspelt', 'GET', '/api/destinations?enabeld=false', {}, 400, 'INVALID_QUERY'],
    ['a filter that is misspelt in an export', 'GET', '/api/destinations/export?id=dst_a', {}, 400, 'INVALID_QUERY'],
    ['a page where there are cursors', 'GET', '/api/events?page=2', {}, 400, 'INVALID_QUERY'],
    ['a page size over 100', 'GET', '/api/sources?pageSize=101', {}, 400, 'INVALID_QUERY'],
    ['a limit over 100', 'GET', '/api/events?limit=101', {}, 400, 'INVALID_QUERY'],
    ['a forged cursor', 'GET', '/api/events?cursor=AAAAAAAAAAAAAAAA', {}, 400, 'INVALID_QUERY'],
    ['an id that is a path', 'GET', '/api/sources/..%2f..%2fetc%2fpasswd', {}, 404, 'RESOURCE_NOT_FOUND'],
    ['an unknown record', 'GET', '/api/sources/src_aaaaaaaaaaaaaaaaaaaaaaaaaa', {}, 404, 'RESOURCE_NOT_FOUND'],
  ] as const)('%s', async (_, method, path, options, status, code) => {
    const answer = await world.request(method, path, options);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.body).toMatchObject({ error: expect.any(String), message: expect.any(String) });
    expect(answer.headers.get('x-error-code')).toBe(code);
  });

  test('the unknown field is named', async () => {
    expect((await world.request('POST', '/api/sources', { body: { name: 'a', nmae: 'b' } })).body.message).toContain('nmae');
  });

  test('a wrong method names those that are possible', async () => {
    expect((await world.request('PUT', '/api/sources')).headers.get('allow')).toContain('POST');
  });

  test('no generated body or path is answered by 5xx, or in another form', async () => {
    const method = fc.constantFrom('POST', 'PATCH', 'GET', 'DELETE');
    const tail = fc.oneof(
      fc.constant(''),
      fc.string({ maxLength: 20 }).map((text) => `/${encodeURIComponent(text)}`),
    );
    const body = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.record(
        { name: fc.jsonValue({ maxDepth: 1 }), url: fc.jsonValue({ maxDepth: 1 }), __proto__: fc.jsonValue({ maxDepth: 0 }) },
        { requiredKeys: [] },
      ),
      fc.constantFrom(JSON.parse('{"__proto__":{"a":1}}'), { constructor: { prototype: { a: 1 } } }),
    );
    await assertProperty(
      fc.asyncProperty(fc.constantFrom(...collections), method, tail, body, async (collection, verb, rest, sent) => {
        const options = verb === 'GET' || verb === 'DELETE' ? {} : { body: sent };
        const answer = await world.request(verb, `/api/${collection}${rest}`, options);
        expect(answer.status).toBeLessThan(500);
        if (answer.status >= 400)
          expect(answer.body).toMatchObject({ error: expect.any(String), message: expect.any(String), code: expect.any(String) });
      }),
      150,
    );
  });
});

describe('every answer', () => {
  test('every answer echoes a harmless request id and makes one otherwise', async () => {
    const id = async (sent: string) =>
      (await world.request('GET', '/api/sources', { headers: { 'x-request-id': sent } })).headers.get('x-request-id');
    expect(await id('abc-1')).toBe('abc-1');
    expect(await id('<script>')).toMatch(/^req_/);
  });

  test('every answer reports no rate limit of an organization that has no plan: it is enterprise', async () => {
    await world.store.apply(
      { kind: 'Organization', metadata: { name: 'planless' }, spec: { namespace: 'planless' } },
      { manager: 'kubectl' },
    );
    await eventually(() => world.store.get('Namespace', { name: 'planless' }));
    const key = await world.addKey('planless');
    const { status, headers } = await world.request('GET', '/api/sources', { key });
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, null]);
  });

  test('every answer reports the rate limit of an organization that has one, and 429 beyond it', async () => {
    await world.addOrganization('small', 'free');
    const key = await world.addKey('small', { role: 'viewer' });
    const { client } = world.redis;
    const counters = () => client.keys('test:{rate:*');
    const before = await counters();
    const first = await world.request('GET', '/api/sources', { key });
    expect(first.headers.get('x-ratelimit-limit')).toBe('1000');
    expect(Number(first.headers.get('x-ratelimit-remaining'))).toBeLessThan(1000);
    // A slow machine does not make so many requests within a minute.
    const [counter = ''] = (await counters()).filter((each) => !before.includes(each));
    await client.incrby(counter, 950);
    const answers = await inBatches(100, () => world.request('GET', '/api/sources', { key }));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused[0]?.body).toEqual({ error: 'Too Many Requests', message: expect.any(String), code: 'RATE_LIMITED' });
  });
});

describe('events and deliveries', () => {
  test('events and deliveries are listed newest first by cursor, which new ones do not disturb', async () => {
    const { body: source } = await world.request('POST', '/api/sources', { body: { name: 'Listed' } });
    const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
    const send = async () => {
      const event = newEvent({ org, sourceId: source.id, sourceSlug: source.slug });
      await world.acceptor.accept(event);
      return event.id;
    };
    const sent = [await send(), await send(), await send()];
    const first = await world.request('GET', `/api/events?sourceId=${source.id}&limit=2`);
    expect(first.body.data.map(({ id }: { id: string }) => id)).toEqual([sent[2], sent[1]]);
    expect(first.body.pagination).toEqual({ hasMore: true, nextCursor: expect.any(String), scanned: expect.any(Number) });
    await send();
    const next = await world.request('GET', `/api/events?sourceId=${source.id}&limit=2&cursor=${first.body.pagination.nextCursor}`);
    expect(next.body).toMatchObject({ data: [{ id: sent[0] }], pagination: { hasMore: false, nextCursor: null } });

    const { body: event } = await world.request('GET', `/api/events/${sent[0]}`);
    expect(event).toMatchObject({
      id: sent[0],
      sourceId: source.id,
      status: 'pending',
      method: 'POST',
      size: 7,
      signatureValid: null,
      duplicateOf: null,
    });
    expect(event.deliveries).toMatchObject([{ eventId: sent[0], status: 'pending', attempts: 0, maxAttempts: 3 }]);
    const { body: delivery } = await world.request('GET', `/api/deliveries/${event.deliveries[0].id}`);
    expect(delivery).toMatchObject({ id: event.deliveries[0].id, eventId: sent[0] });
  });
});

test('the OpenAPI document names every collection, and its references resolve', async () => {
  const { body } = await world.request('GET', '/openapi.json', { key: null });
  expect(body.openapi).toMatch(/^3\.1/);
  for (const collection of collections) expect(body.paths).toHaveProperty([`/${collection}`]);
  const resolve = (reference: string) =>
    reference
      .slice(2)
      .split('/')
      .reduce((at, part) => at?.[part], body);
  for (const [, reference = ''] of JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)) expect(resolve(reference)).toBeDefined();
});

test('the documentation page loads nothing from elsewhere', async () => {
  const { status, text } = await world.request('GET', '/docs/', { key: null });
  expect(status).toBe(200);
  expect(text).not.toMatch(/(src|href)="https?:/);
});

test('reads are 503 with Retry-After while Redis is unreachable', async () => {
  const own = await startFacadeWorld();
  try {
    await own.redis.kill('SIGKILL');
    const { status, body, headers } = await own.request('GET', '/api/events');
    expect([status, body.code]).toEqual([503, 'UNAVAILABLE']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  } finally {
    await own.stop();
  }
});

test('a defect is 500 and reports nothing of itself, but to the log', async () => {
  const store = new MemoryStore(systemClock);
  const own = await startFacadeWorld({ store });
  try {
    store.get = () => Promise.reject(new TypeError('what is in the code'));
    const { status, body, headers } = await own.request('GET', '/api/sources/shop');
    expect([status, body]).toEqual([500, { error: 'Internal Server Error', message: expect.any(String), code: 'INTERNAL' }]);
    expect([headers.get('x-error-code'), body.message]).toEqual(['INTERNAL', expect.not.stringContaining('what is in the code')]);
    const requestId = headers.get('x-request-id') ?? 'none';
    expect(own.logLines.some((line) => line.includes('what is in the code') && line.includes(requestId))).toBe(true);
  } finally {
    await own.stop();
  }
});

test('why the store of resources does not answer is told to the log, not to clients', async () => {
  const store = new MemoryStore(systemClock);
  const own = await startFacadeWorld({ store });
  try {
    store.get = () => {
      const cause = new Error('connect ECONNREFUSED 10.96.0.1:443');
      return Promise.reject(new PosthornError('UNAVAILABLE', `GET /apis/posthorn.dev failed: ${cause.message}`, { cause }));
    };
    const { status, text } = await own.request('GET', '/api/sources/shop');
    expect([status, JSON.parse(text).message]).toEqual([503, 'A service that this needs does not respond; send the request again later.']);
    expect(own.logLines.some((line) => line.includes('10.96.0.1'))).toBe(true);
  } finally {
    await own.stop();
  }
});
