import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type RunningControllers, startControllers } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import type { Clock } from '../core/clock.ts';
import { systemClock } from '../runtime/clock.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';

const shop = { name: 'shop', namespace: 'acme' };
const token = { name: 'token', namespace: 'acme' };

let redis: RedisServer;
let store: MemoryStore;
let controllers: RunningControllers;
/** Where the clock stands still, so that nothing is late; null: it runs. */
let stoppedAtMs: number | null;
const clock: Clock = { ...systemClock, now: () => stoppedAtMs ?? systemClock.now() };

beforeEach(async () => {
  redis = await startRedis();
  stoppedAtMs = systemClock.now();
  store = new MemoryStore(clock);
  controllers = startControllers({ store, redis: redis.client, prefix: 'test:', clock });
  await store.create({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, { manager: 'test' });
  await eventually(() => store.get('Namespace', { name: 'acme' }));
  const auth = { type: 'bearer' as const, tokenSecretRef: { name: 'token', key: 'value' } };
  await store.create({ kind: 'Destination', metadata: shop, spec: { http: { url: 'https://shop.example/', auth } } }, { manager: 'test' });
});
afterEach(async () => {
  await controllers.stop();
  await redis.stop();
});

const makeSecret = () => store.create({ kind: 'Secret', metadata: token, data: { value: 'Zmlyc3Q=' } }, { manager: 'test' });
const expectReady = (status: string, reason: string) =>
  eventually(async () => {
    const { conditions = [] } = (await store.get('Destination', shop)).status ?? {};
    expect(conditions.find(({ type }) => type === 'Ready')).toMatchObject({ status, reason });
  });
const news = () => controllers.events.filter(({ object }) => object.kind === 'Destination').map(({ reason }) => reason);

test('a Secret that is made just after what refers to it, as the API makes it, was never missing', async () => {
  // By then the controllers have looked at the destination.
  await sleep(500);
  expect((await store.get('Destination', shop)).status?.conditions).toBeUndefined();
  await makeSecret();
  await expectReady('True', 'Ready');
  expect(news()).toEqual([]);
});

test('a Secret that does not come is missing, and one that goes is missing at once', async () => {
  stoppedAtMs = null;
  await expectReady('False', 'SecretNotFound');
  expect(news()).toEqual(['SecretNotFound']);
  await makeSecret();
  await expectReady('True', 'Ready');
  await store.delete('Secret', token);
  await expectReady('False', 'SecretNotFound');
});
