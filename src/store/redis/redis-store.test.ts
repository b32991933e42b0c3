import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { Keyring } from '../../core/sealing.ts';
import { blockingConnection } from '../../redis/connection.ts';
import type { Kind } from '../../resources/kinds.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import type { ResourceStore, Version, WatchEvent } from '../store.ts';
import { RedisStore } from './redis-store.ts';

const blockMs = 500;
const keyring = new Keyring([{ id: 'k1', key: randomBytes(32) }]);
let server: RedisServer;
let opened = 0;

function open(prefix: string, keys = keyring): RedisStore {
  return new RedisStore({
    redis: server.client,
    openBlocking: () => {
      opened++;
      // A server that is blocked for a while is waited for.
      return blockingConnection(server.url, { blockMs: blockMs + 30_000 });
    },
    keyring: keys,
    clock: systemClock,
    prefix,
    blockMs,
  });
}

beforeAll(async () => {
  server = await startRedis(['--save', '', '--appendonly', 'yes', '--appendfsync', 'always']);
});
afterAll(() => server.stop());

let prefix: string;
let store: RedisStore;
beforeEach(() => {
  prefix = `t-${randomBytes(4).toString('hex')}:`;
  store = open(prefix);
  opened = 0;
});

const putNamespace = (name: string, label = '') =>
  store.apply({ kind: 'Namespace', metadata: { name, labels: { label } } }, { manager: 'test' });

/** Watches until `stop`; `ended` resolves with its end. */
function collect<K extends Kind>(of: ResourceStore, kind: K, from: Version) {
  const stop = new AbortController();
  const events: WatchEvent<K>[] = [];
  const ended = (async (): Promise<string> => {
    try {
      for await (const event of of.watch(kind, from, stop.signal)) events.push(event);
      return 'closed';
    } catch (error) {
      return (error as { code?: string }).code ?? String(error);
    }
  })();
  const opening = () => eventually('the watch to be open', 30_000, () => events.length > 0);
  return { events, ended, opening, stop: () => stop.abort() };
}

test('the value of a Secret is nowhere in Redis, and reads back in the clear', async () => {
  await putNamespace('shop');
  const data = { password: Buffer.from('correct horse battery staple').toString('base64') };
  await store.create({ kind: 'Secret', metadata: { name: 's', namespace: 'shop' }, data }, { manager: 'test' });
  expect((await store.getSecret({ name: 's', namespace: 'shop' })).data).toEqual(data);
  const hashes = Object.values(await server.client.hgetall(`${prefix}{store}:objects:Secret`));
  const log = JSON.stringify(await server.client.xrange(`${prefix}{store}:changes`, '-', '+'));
  expect(hashes.join()).toContain('sealed.v1.');
  expect(hashes.join() + log).not.toContain(data.password);
});

test('a sealed value that was moved to another Secret does not open', async () => {
  await putNamespace('shop');
  await store.create({ kind: 'Secret', metadata: { name: 's', namespace: 'shop' }, data: { a: 'YQ==' } }, { manager: 'test' });
  const key = `${prefix}{store}:objects:Secret`;
  const stored = (await server.client.hget(key, 'shop/s')) ?? '';
  await server.client.hset(key, 'shop/t', stored.replaceAll('"name":"s"', '"name":"t"'));
  expect((await store.getSecret({ name: 't', namespace: 'shop' })).data).toEqual({ a: expect.stringMatching(/^sealed\.v1\./) });
});

test('a Secret whose encryption key is lost can be read, replaced and deleted', async () => {
  await putNamespace('shop');
  const name = { name: 's', namespace: 'shop' };
  const secret = (value: string) => ({ kind: 'Secret' as const, metadata: name, data: { a: Buffer.from(value).toString('base64') } });
  await store.create(secret('one'), { manager: 'test' });
  const other = open(prefix, new Keyring([{ id: 'k1', key: randomBytes(32) }]));
  expect((await other.getSecret(name)).data).toEqual({ a: expect.stringMatching(/^sealed\.v1\./) });
  expect((await store.getSecret(name)).data).toEqual(secret('one').data);
  await other.apply(secret('two'), { manager: 'test' });
  expect((await other.getSecret(name)).data).toEqual(secret('two').data);
  await store.delete('Secret', name);
  await expect(other.getSecret(name)).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
});

test('every key begins with the prefix and has one hash tag', async () => {
  await putNamespace('shop');
  const keys = await server.client.keys(`${prefix}*`);
  expect(keys.length).toBeGreaterThan(0);
  expect(keys.every((key) => key.startsWith(`${prefix}{store}:`))).toBe(true);
});

test('what one process writes another one sees', async () => {
  const { version } = await store.list('Namespace');
  const other = open(prefix);
  const watch = collect(other, 'Namespace', version);
  await watch.opening();
  await putNamespace('shop');
  await eventually('the event', 30_000, () => watch.events.length > 1);
  expect(watch.events[1]).toMatchObject({ type: 'added', object: { metadata: { name: 'shop' } } });
  watch.stop();
  expect(await watch.ended).toBe('closed');
});

test('all watches share one connection, which goes with the last of them', async () => {
  const { version } = await store.list('Namespace');
  const watches = [collect(store, 'Namespace', version), collect(store, 'Route', version), collect(store, 'Secret', version)];
  await Promise.all(watches.map((watch) => watch.opening()));
  await eventually('one connection', 30_000, () => opened === 1);
  for (const watch of watches) watch.stop();
  await eventually('no blocked client', 30_000, async () => (await server.client.info('clients')).includes('blocked_clients:0'));
});

test('a watch of a kind that nobody touches gets bookmarks, so that its version stays in the log', async () => {
  const { version } = await store.list('Namespace');
  const watch = collect(store, 'Route', version);
  await watch.opening();
  for (let i = 0; i < 600; i++) await putNamespace('busy', `${i}`);
  await eventually('a bookmark', 30_000, () => watch.events.length > 1);
  expect(watch.events.map((event) => event.type)).toEqual(['bookmark', 'bookmark']);
  watch.stop();
});

test('an emptied Redis ends watches EXPIRED, and a version from before fits nothing made after', async () => {
  await putNamespace('shop');
  const { version } = await store.list('Namespace');
  const watch = collect(store, 'Namespace', version);
  await watch.opening();
  await server.client.flushall();
  expect(await watch.ended).toBe('EXPIRED');
  for (let i = 0; i < 5; i++) await putNamespace('shop', `${i}`);
  expect(await collect(store, 'Namespace', version).ended).toBe('EXPIRED');
});

test('a Redis that is killed ends watches EXPIRED, for a failover may have lost what they have seen; back again, it is watched from a version', async () => {
  await putNamespace('shop');
  const { version } = await store.list('Namespace');
  const watch = collect(store, 'Namespace', version);
  await watch.opening();
  await server.kill('SIGKILL');
  expect(await watch.ended).toBe('EXPIRED');
  await expect(putNamespace('late')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await server.start();
  await eventually('a write', 30_000, () => putNamespace('late').then(() => true));
  const again = collect(store, 'Namespace', version);
  await eventually('the event', 30_000, () => again.events.some((event) => event.type === 'added'));
  again.stop();
});

test('a sweep finishes the deletion of a namespace and of orphans that a dead process has begun', async () => {
  const owner = await putNamespace('owner');
  await putNamespace('shop');
  const reference = { apiVersion: 'v1', kind: 'Namespace', name: 'owner', uid: owner.metadata.uid };
  await store.create(
    { kind: 'Secret', metadata: { name: 'orphan', namespace: 'shop', ownerReferences: [reference] } },
    { manager: 'test' },
  );
  // As a process leaves it that dies between its steps.
  const key = `${prefix}{store}:objects:Namespace`;
  await server.client.hdel(key, '/owner');
  await server.client.zrem(`${prefix}{store}:names:Namespace`, '/owner');
  await putNamespace('going');
  for (const name of ['s', 't']) await store.create({ kind: 'Secret', metadata: { name, namespace: 'going' } }, { manager: 'test' });
  const going = (await server.client.hget(key, '/going')) ?? '';
  await server.client.hset(key, '/going', going.replace('"metadata":{', '"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",'));
  const ending = new AbortController();
  const remove = store.delete.bind(store);
  jest.spyOn(store, 'delete').mockImplementation(async (...args) => {
    await remove(...args);
    ending.abort();
  });
  await store.sweep(ending.signal);
  expect((await store.list('Secret')).items.map(({ metadata }) => metadata.name).sort()).toEqual(['orphan', 't']);
  await store.sweep(new AbortController().signal);
  expect((await store.list('Secret')).items).toEqual([]);
  expect((await store.list('Namespace')).items.map((each) => each.metadata.name)).toEqual(['shop']);
});
