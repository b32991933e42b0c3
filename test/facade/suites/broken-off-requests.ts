import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PosthornError } from '../../../src/core/errors.ts';
import type { Kind } from '../../../src/resources/kinds.ts';
import type { ResourceStore } from '../../../src/store/store.ts';
import { passes } from '../../support/passes.ts';
import { withOther } from '../../support/with-other.ts';
import { breakOff } from '../broken-off.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** Requests with an Idempotency-Key that were broken off before their answer was kept, with any store behind the API. */
export function describeBrokenOffRequests(start: (around: (store: ResourceStore) => ResourceStore) => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let loseNextAnswer = false;
  beforeAll(async () => {
    world = await start((store) => losingAnswers(store, isLost));
  });
  afterAll(() => world.stop());

  function isLost(kind: Kind): boolean {
    if (!loseNextAnswer || kind !== 'Destination') return false;
    loseNextAnswer = false;
    return true;
  }
  const url = 'https://hooks.example.com/in';
  let made = 0;
  const newKey = (): string => `key-${++made}`;
  const post = (path: string, key: string, body: unknown) => world.request('POST', path, { body, headers: { 'idempotency-key': key } });
  const countNamed = async (name: string): Promise<number> =>
    (await world.request('GET', `/api/destinations?search=${name}`)).body.pagination.total;

  test('is completed by the next: the record is there once', async () => {
    const key = newKey();
    const body = { name: 'Completed', url, authType: 'bearer', authConfig: { token: 'a-long-token-000042' } };
    const first = await post('/api/destinations', key, body);
    await breakOff(world, key);
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
    await breakOff(world, key);
    const second = await post('/api/destinations', key, body);
    expect([second.status, second.body.authConfig]).toEqual([201, { token: '••••0042' }]);
    expect([second.body.slug, second.body.id === first.body.id]).toEqual([first.body.slug, false]);
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
    await breakOff(world, key);
    const second = await post('/api/api-keys', key, { name: 'Unseen' });
    expect([second.status, second.body.key === first.body.key]).toEqual([201, false]);
    await passes(async () => {
      const { data } = (await world.request('GET', '/api/api-keys?pageSize=100')).body;
      expect(data.filter(({ name }: { name: string }) => name === 'Unseen')).toHaveLength(1);
    });
    expect((await world.request('GET', '/api/sources', { key: second.body.key })).status).toBe(200);
  });
}

/** A store that carries a create out and then fails, as an API server whose answer is lost. */
function losingAnswers(store: ResourceStore, isNext: (kind: Kind) => boolean): ResourceStore {
  const create: ResourceStore['create'] = async (object, options) => {
    const made = await store.create(object, options);
    if (!isNext(object.kind)) return made;
    throw new PosthornError('UNAVAILABLE', 'the answer was lost');
  };
  return withOther(store, 'create', create);
}
