import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { resourceId } from '../../src/core/ids.ts';
import { Keyring } from '../../src/core/sealing.ts';
import { IdempotentAnswers, idempotencyKeys } from '../../src/data/intake/idempotent-answers.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { eventually } from '../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { describeBrokenOffRequests } from './suites/broken-off-requests.ts';

describe('a request that was broken off before its answer was kept', () => {
  describeBrokenOffRequests((around) => startFacadeWorld({ store: around(new MemoryStore(systemClock)) }));
});

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const url = 'https://hooks.example.com/in';
let made = 0;
const newKey = (): string => `key-${++made}`;
const post = (path: string, key: string, body?: unknown, apiKey?: string) =>
  world.request('POST', path, { body, key: apiKey, headers: { 'idempotency-key': key } });
const countNamed = async (name: string): Promise<number> =>
  (await world.request('GET', `/api/destinations?search=${name}`)).body.pagination.total;

test('a repeated request gets the first answer again, and nothing is done twice', async () => {
  const key = newKey();
  const body = { name: 'Once', url: 'http://hooks.example.com/in', timeoutMs: 1234 };
  const first = await post('/api/destinations', key, body);
  expect(first.status).toBe(201);
  expect(first.headers.get('idempotent-replayed')).toBeNull();
  const { name, timeoutMs, url: plain } = body;
  for (const again of [body, { url: plain, timeoutMs, name }]) {
    const second = await post('/api/destinations', key, again);
    expect([second.status, second.text]).toEqual([201, first.text]);
    expect(second.headers.get('warning')).toBe(first.headers.get('warning'));
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'));
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
  }
  expect(await countNamed('Once')).toBe(1);
});

describe('an answer that is kept under an encryption key that is lost', () => {
  test.each([
    ['is told to be there', '/api/destinations', { name: 'Sealed', url }, 409],
    ['is given again where the request itself tells it', '/api/send-events', { events: [{ eventType: 'none.such', payload: 1 }] }, 201],
  ])('%s', async (_, path, body, status) => {
    const headers = { 'idempotency-key': newKey() };
    expect((await world.request('POST', path, { body, headers })).status).toBe(201);
    const request = await world.startReplica({ keyring: new Keyring([{ id: 'k1', key: randomBytes(32) }]) });
    const again = await request('POST', path, { body, headers, key: world.admin });
    expect([again.status, again.headers.get('x-error-code')]).toEqual([status, status === 409 ? 'IDEMPOTENCY_CONFLICT' : null]);
    expect(await countNamed('Sealed')).toBe(1);
  });
});

test('64 equal requests at once make one record', async () => {
  const key = newKey();
  const answers = await Promise.all(Array.from({ length: 64 }, () => post('/api/destinations', key, { name: 'Crowd', url })));
  const created = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(({ status }) => status === 409);
  expect(created.length).toBeGreaterThan(0);
  expect(created.length + refused.length).toBe(64);
  expect(new Set(created.map(({ text }) => text)).size).toBe(1);
  for (const { headers, body } of refused) {
    expect(body.code).toBe('IDEMPOTENCY_CONFLICT');
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
  expect(await countNamed('Crowd')).toBe(1);
});

test.each([
  ['another body', '/api/destinations', { name: 'Other', url }],
  ['another path', '/api/sources', { name: 'First' }],
])('%s with the same key is 409', async (_, path, body) => {
  const key = newKey();
  expect((await post('/api/destinations', key, { name: 'First', url })).status).toBe(201);
  const { status, body: answer } = await post(path, key, body);
  expect([status, answer.code]).toEqual([409, 'IDEMPOTENCY_CONFLICT']);
});

test('what only looks heeds no key, and keeps no answer', async () => {
  const key = newKey();
  const tried = (value: number) =>
    post('/api/filters/test', key, { conditions: [{ field: 'a', operator: 'equals', value }], payload: { a: 1 } });
  for (const [value, matches] of [
    [1, true],
    [2, false],
  ] as const) {
    const { status, headers, body } = await tried(value);
    expect([status, body.matches, headers.get('idempotent-replayed')]).toEqual([200, matches, null]);
  }
  expect((await post('/api/destinations', key, { name: 'After', url })).status).toBe(201);
});

test('what failed is not kept: the key can be used again', async () => {
  const key = newKey();
  expect((await post('/api/destinations', key, { name: 'Bad', url: 'nowhere' })).status).toBe(400);
  expect((await post('/api/destinations', key, { name: 'Good', url })).status).toBe(201);
});

test('keys of organizations are apart', async () => {
  await world.addOrganization('others');
  const theirs = await world.addKey('others');
  const key = newKey();
  const ours = await post('/api/sources', key, { name: 'Ours' });
  const other = await post('/api/sources', key, { name: 'Theirs' }, theirs);
  expect([ours.status, other.status]).toEqual([201, 201]);
  expect(other.body.id).not.toBe(ours.body.id);
});

test('a key that was left half by a crash is refused until its claim runs out, then the request is carried out', async () => {
  const key = newKey();
  const organization = (await world.store.get('Organization', { name: 'acme' })).metadata;
  const crashed = new IdempotentAnswers({ redis: world.redis.client, prefix: 'test:', claimMs: 60_000 });
  const body = { name: 'Left half', url };
  const half = await crashed.claim(resourceId('org_', organization), key, JSON.stringify(['/destinations', {}, body]), 'key_crashed');
  const refused = await post('/api/destinations', key, body);
  expect([refused.status, refused.body.code]).toEqual([409, 'IDEMPOTENCY_CONFLICT']);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
  if (half.state === 'claimed') await half.claim.renew(700);
  await eventually(async () => expect((await post('/api/destinations', key, body)).status).toBe(201));
  expect((await post('/api/destinations', key, body)).headers.get('idempotent-replayed')).toBe('true');
  expect(await countNamed('Left half')).toBe(1);
});

test('an answer that holds a secret is kept sealed', async () => {
  const key = newKey();
  const first = await post('/api/api-keys', key, { name: 'Sealed' });
  expect(first.status).toBe(201);
  expect((await post('/api/api-keys', key, { name: 'Sealed' })).body.key).toBe(first.body.key);
  const organization = (await world.store.get('Organization', { name: 'acme' })).metadata;
  const kept = await world.redis.client.hgetall(idempotencyKeys('test:', resourceId('org_', organization)).answers);
  expect(Object.keys(kept).length).toBeGreaterThan(1);
  expect(JSON.stringify(kept)).not.toContain(first.body.key);
});

describe('where no more answers can be kept', () => {
  const bytes = 256 * 1024 * 1024;
  let answers: string;
  beforeAll(async () => {
    answers = idempotencyKeys('test:', await world.organizationId('acme')).answers;
    expect((await world.request('POST', '/api/event-types', { body: { name: 'order.paid' } })).status).toBe(201);
  });
  const fill = () => world.redis.client.hincrby(answers, '#bytes', bytes);
  const empty = () => world.redis.client.hincrby(answers, '#bytes', -bytes);

  test('a new key is 429 with Retry-After, and the answers that are kept are given', async () => {
    const key = newKey();
    const first = await post('/api/sources', key, { name: 'Before' });
    await fill();
    try {
      const refused = await post('/api/sources', newKey(), { name: 'Beyond' });
      expect([refused.status, refused.body.code]).toEqual([429, 'RATE_LIMITED']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3600);
      expect((await world.request('GET', '/api/sources?search=Beyond')).body.data).toEqual([]);
      expect((await post('/api/sources', key, { name: 'Before' })).text).toBe(first.text);
    } finally {
      await empty();
    }
  });

  test('events are sent all the same, and once', async () => {
    const key = newKey();
    const event = { eventType: 'order.paid', payload: { id: key } };
    await fill();
    try {
      const first = await post('/api/send-event', key, event);
      expect(first.status).toBe(201);
      expect((await post('/api/send-event', key, event)).text).toBe(first.text);
    } finally {
      await empty();
    }
  });
});

test('the answer to events that is too large to be kept is given again', async () => {
  const key = newKey();
  await world.request('POST', '/api/event-types', { body: { name: 'order.sent' } });
  const events = { events: [{ eventType: 'order.sent', payload: { id: key } }] };
  const first = await post('/api/send-events', key, events);
  expect(first.status).toBe(201);
  const { answers } = idempotencyKeys('test:', await world.organizationId('acme'));
  const field = createHash('sha256').update(key).digest('base64url');
  const kept = await world.redis.client.hget(answers, field);
  // As stored for a response above 1 MiB.
  await world.redis.client.hset(answers, field, `${kept?.split('|').slice(0, 2).join('|')}|`);
  const second = await post('/api/send-events', key, events);
  expect([second.status, second.text, second.headers.get('idempotent-replayed')]).toEqual([201, first.text, 'true']);
});

test.each(['', 'a b', 'x'.repeat(256)])('the key %j is 400', async (key) => {
  const { status, body } = await post('/api/sources', key, { name: 'No' });
  expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
});

test('the header Idempotency-Key is described for every POST of the API that changes something', async () => {
  const { body } = await world.request('GET', '/openapi.json');
  const paths = Object.entries<Record<string, { operationId: string; parameters?: { name?: string; $ref?: string }[] }>>(body.paths);
  const posts = paths.flatMap(([path, { post: one }]) => (one === undefined || path.startsWith('/ingest/') ? [] : [one]));
  expect(posts.length).toBeGreaterThan(5);
  const without = posts.filter(
    ({ parameters = [] }) =>
      !parameters.some(
        ({ name, $ref = '' }) => (name ?? body.components.parameters[$ref.split('/').at(-1) ?? '']?.name) === 'Idempotency-Key',
      ),
  );
  expect(without.map(({ operationId }) => operationId).sort()).toEqual([
    'createSession',
    'getManifestPatch',
    'testFilter',
    'testSchema',
    'testWebhookSubscription',
    'validatePayload',
  ]);
});
