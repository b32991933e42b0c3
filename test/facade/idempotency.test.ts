import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PosthornError } from '../../src/core/errors.ts';
import { resourceId } from '../../src/core/ids.ts';
import { IdempotentAnswers, idempotencyKeys } from '../../src/data/idempotent-answers.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import type { ResourceStore } from '../../src/store/store.ts';
import { passes } from '../support/passes.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let loseNextAnswer = false;
beforeAll(async () => {
  world = await startFacadeWorld({ store: losingAnswers(new MemoryStore(systemClock)) });
});
afterAll(() => world.stop());

/** A store that carries a create out and then fails, as an API server whose answer is lost. */
function losingAnswers(store: MemoryStore): ResourceStore {
  const create: ResourceStore['create'] = async (object, options) => {
    const made = await store.create(object, options);
    if (!loseNextAnswer || object.kind !== 'Destination') return made;
    loseNextAnswer = false;
    throw new PosthornError('UNAVAILABLE', 'the answer was lost');
  };
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = name === 'create' ? create : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

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
  const crashed = new IdempotentAnswers({ redis: world.redis.client, prefix: 'test:', claimMs: 700 });
  const body = { name: 'Left half', url };
  await crashed.claim(resourceId('org_', organization), key, JSON.stringify(['/destinations', {}, body]));
  const refused = await post('/api/destinations', key, body);
  expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([409, 'IDEMPOTENCY_CONFLICT', '1']);
  await passes(async () => expect((await post('/api/destinations', key, body)).status).toBe(201));
  expect((await post('/api/destinations', key, body)).headers.get('idempotent-replayed')).toBe('true');
  expect(await countNamed('Left half')).toBe(1);
});

describe('a request that was broken off before its answer was kept', () => {
  /** As a process leaves it that was killed: the claim has run out. */
  async function breakOff(key: string): Promise<void> {
    const { answers } = idempotencyKeys('test:', resourceId('org_', (await world.store.get('Organization', { name: 'acme' })).metadata));
    const field = createHash('sha256').update(key).digest('base64url');
    const request = (await world.redis.client.hget(answers, field))?.split('|')[1];
    await world.redis.client.hset(answers, field, `c|killed|${request}|1`);
  }

  test('is completed by the next: the record is there once', async () => {
    const key = newKey();
    const body = { name: 'Completed', url, authType: 'bearer', authConfig: { token: 'a-long-token-000042' } };
    const first = await post('/api/destinations', key, body);
    await breakOff(key);
    const second = await post('/api/destinations', key, body);
    expect([second.status, second.body]).toEqual([201, first.body]);
    expect((await post('/api/destinations', key, body)).text).toBe(second.text);
    expect(await countNamed('Completed')).toBe(1);
  });

  test('and left a record without its Secret, is carried out anew in its place', async () => {
    const key = newKey();
    const body = { name: 'Partial', url, authType: 'bearer', authConfig: { token: 'a-long-token-000042' } };
    const first = await post('/api/destinations', key, body);
    const { spec } = await world.store.get('Destination', { namespace: 'acme', name: first.body.slug });
    await world.store.delete('Secret', { namespace: 'acme', name: spec.http?.auth?.tokenSecretRef?.name ?? '' });
    await breakOff(key);
    const second = await post('/api/destinations', key, body);
    expect([second.status, second.body.authConfig]).toEqual([201, { token: '••••0042' }]);
    expect(second.body.id).not.toBe(first.body.id);
    await passes(async () => expect(await countNamed('Partial')).toBe(1));
  });

  test('by an answer of the API server that was lost is completed at once', async () => {
    const key = newKey();
    const body = { name: 'Unanswered', url };
    loseNextAnswer = true;
    expect((await post('/api/destinations', key, body)).status).toBe(503);
    expect((await post('/api/destinations', key, body)).status).toBe(201);
    expect(await countNamed('Unanswered')).toBe(1);
  });

  test('leaves no API key that nobody has seen', async () => {
    const key = newKey();
    const first = await post('/api/api-keys', key, { name: 'Unseen' });
    await breakOff(key);
    const second = await post('/api/api-keys', key, { name: 'Unseen' });
    expect([second.status, second.body.key === first.body.key]).toEqual([201, false]);
    await passes(async () => {
      const { data } = (await world.request('GET', '/api/api-keys?pageSize=100')).body;
      expect(data.filter(({ name }: { name: string }) => name === 'Unseen')).toHaveLength(1);
    });
    expect((await world.request('GET', '/api/sources', { key: second.body.key })).status).toBe(200);
  });
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

test.each(['', 'a b', 'x'.repeat(256)])('the key %j is 400', async (key) => {
  const { status, body } = await post('/api/sources', key, { name: 'No' });
  expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
});

test('is described for every POST', async () => {
  const { body } = await world.request('GET', '/openapi.json');
  const posts = Object.values<Record<string, { parameters?: { name: string }[] }>>(body.paths).flatMap(({ post: one }) => one ?? []);
  expect(posts.length).toBeGreaterThan(5);
  for (const { parameters } of posts) expect(parameters?.map(({ name }) => name)).toContain('Idempotency-Key');
});
