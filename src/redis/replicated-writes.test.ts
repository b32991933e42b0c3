import { randomBytes } from 'node:crypto';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../test/support/eventually.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { Keyring } from '../core/sealing.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { RedisStore } from '../store/redis/redis-store.ts';
import { blockingConnection, commandConnection, type RedisClient } from './connection.ts';
import { ReplicatedWrites } from './replicated-writes.ts';

const clock = new FakeClock();
const opened: RedisClient[] = [];
let alone: RedisServer;
let primary: RedisServer;
let replica: RedisServer;
/** Resumes a frozen replica. */
let thaw = (): void => {};

beforeAll(async () => {
  const apart = ['--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0'];
  [alone, primary] = await Promise.all([startRedis(), startRedis(apart)]);
  replica = await startRedis([...apart, '--replicaof', `127.0.0.1 ${primary.port}`]);
  await eventually('the replica to follow', 60_000, async () => (await primary.client.info('replication')).includes('state=online'));
});
afterEach(() => thaw());
afterAll(async () => {
  for (const connection of opened) connection.disconnect();
  for (const server of [replica, primary, alone]) await server.stop();
});

/** Stores on one server as the API has them, and how many of their writes no replica has acknowledged. */
async function openStores({ url, client: redis }: Pick<RedisServer, 'url' | 'client'>, limitMs: number) {
  const connection = commandConnection(url, { commandTimeoutMs: 90_000 });
  opened.push(connection);
  connection.on('error', () => {});
  await connection.connect();
  const registry = new Registry();
  const writes = new ReplicatedWrites({ redis: connection, clock, logger: silentLogger, registry, limitMs });
  const prefix = `t-${randomBytes(4).toString('hex')}:`;
  const openBlocking = () => blockingConnection(url, { blockMs: 1000 });
  const keyring = new Keyring([{ id: 'k1', key: randomBytes(32) }]);
  const resources = new RedisStore({ redis, writes, openBlocking, keyring, clock, prefix });
  return {
    putNamespace: (name: string) => resources.create({ kind: 'Namespace', metadata: { name } }, { manager: 'test' }),
    webhooks: new RedisWebhookStore({ redis, writes, clock, logger: silentLogger, prefix }),
    namespacesOn: (server: RedisServer) => server.client.hlen(`${prefix}{store}:objects:Namespace`),
    unacknowledged: async () => (await registry.getSingleMetric('posthorn_unreplicated_writes_total')?.get())?.values[0]?.value,
  };
}

/** Number of WAIT commands that the server got. */
async function waits({ client }: RedisServer): Promise<number> {
  return Number(/^cmdstat_wait:calls=(\d+)/m.exec(await client.info('commandstats'))?.[1] ?? 0);
}

/** Whether the answer is still owed after a while in which any other would have come. */
async function isOwed(answer: Promise<unknown>): Promise<boolean> {
  return await Promise.race([answer.then(() => false), sleep(300).then(() => true)]);
}

test('a change of a resource and of a webhook object is answered once a replica has it', async () => {
  const stores = await openStores(primary, 60_000);
  thaw = replica.freeze();
  const writing = stores.putNamespace('shop');
  await eventually('the primary to have it', 30_000, async () => (await stores.namespacesOn(primary)) === 1);
  expect(await isOwed(writing)).toBe(true);
  thaw();
  await writing;
  expect(await stores.namespacesOn(replica)).toBe(1);

  thaw = replica.freeze();
  const creating = stores.webhooks.createApplication({ org: 'org_a', name: 'a', shard: 0, externalId: 'x' });
  await eventually('the primary to have it', 30_000, async () =>
    (await stores.webhooks.applicationByExternalId('org_a', 'x')) === null ? undefined : true,
  );
  expect(await isOwed(creating)).toBe(true);
  thaw();
  await creating;
  expect(await stores.unacknowledged()).toBe(0);
});

test('changes at the same time wait together', async () => {
  const stores = await openStores(primary, 60_000);
  const before = await waits(primary);
  const names = Array.from({ length: 20 }, (_, i) => `n${i}`);
  await Promise.all(names.map((name) => stores.putNamespace(name)));
  expect(await stores.namespacesOn(replica)).toBe(names.length);
  expect((await waits(primary)) - before).toBeLessThan(5);
});

test('a replica that does not acknowledge in time fails no change, is counted, and holds up none of the next seconds', async () => {
  const stores = await openStores(primary, 50);
  const before = await waits(primary);
  thaw = replica.freeze();
  await stores.putNamespace('a');
  await stores.putNamespace('b');
  expect([await stores.unacknowledged(), (await waits(primary)) - before]).toEqual([2, 1]);
  await clock.advance(5000);
  await stores.putNamespace('c');
  expect([await stores.unacknowledged(), (await waits(primary)) - before]).toEqual([3, 2]);
});

test('where no replica follows nothing is waited for', async () => {
  const stores = await openStores(alone, 60_000);
  await stores.putNamespace('shop');
  await stores.webhooks.createApplication({ org: 'org_a', name: 'a', shard: 0 });
  expect([await stores.unacknowledged(), await waits(alone)]).toEqual([0, 0]);
});

test('an acknowledgement on another connection than that of the change counts for nothing', async () => {
  // Resets the connection that sends WAIT, once; its next commands are unaware of the change.
  let resets = 0;
  const line = createServer((near) => {
    const far = connect(primary.port, '127.0.0.1');
    near.on('data', (chunk) => {
      if (resets > 0 || !chunk.includes('\r\nwait\r\n')) return far.write(chunk);
      resets++;
      far.destroy();
      return near.resetAndDestroy();
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy());
    far.pipe(near);
  });
  await new Promise<void>((resolve) => line.listen(0, '127.0.0.1', resolve));
  const address = line.address();
  const url = `redis://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/0`;
  const stores = await openStores({ url, client: primary.client }, 60_000);
  await stores.putNamespace('a');
  expect([resets, await stores.unacknowledged()]).toEqual([1, 1]);
  await stores.putNamespace('b');
  expect(await stores.unacknowledged()).toBe(1);
  for (const connection of opened) connection.disconnect();
  await new Promise((resolve) => line.close(resolve));
});

test('a change of which nobody can say whether a replica follows is counted', async () => {
  await primary.client.call('ACL', 'SETUSER', 'uninformed', 'on', '>secret', '~*', '&*', '+@all');
  const stores = await openStores({ url: primary.url.replace('//', '//uninformed:secret@'), client: primary.client }, 60_000);
  await primary.client.call('ACL', 'SETUSER', 'uninformed', '-info');
  await stores.putNamespace('a');
  expect(await stores.unacknowledged()).toBe(1);
});
