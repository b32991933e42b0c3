import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { commandConnection, type RedisClient } from '../../redis/connection.ts';
import { storeLayout } from '../registry/store-layout.ts';
import { connectedProcesses, earlierProcesses, processName } from './connected-processes.ts';

const prefix = 'test:';
let redis: RedisServer;
const clients: RedisClient[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  // Redis lists a client that has left without a word for a while.
  for (const client of clients.splice(0)) await client.quit();
});
afterAll(() => redis.stop());

async function connect(name: string, url = redis.url): Promise<void> {
  const client = commandConnection(url, { name });
  clients.push(client);
  await client.connect();
}
const earlier = (of = prefix) => earlierProcesses({ redis: redis.client, prefix: of });

test('processes of this release and other clients are none of an earlier one', async () => {
  await connect(processName({ role: 'delivery', prefix, version: '1.3.0' }));
  await connect(processName({ role: 'controller', prefix: 'other:', version: '1.3.0' }));
  await connect('posthorn-delivery-worker');
  await connect('somebody-else');
  expect(await earlier()).toEqual([]);
});

test('processes that name a lower layout are listed by role and address', async () => {
  await connect(`posthorn-api-main@${storeLayout - 1}@test%3A`);
  await connect(`posthorn-delivery-main@${storeLayout - 1}@test%3A`);
  await connect(`posthorn-controller-main@${storeLayout - 1}@test%3A`);
  expect(await earlier()).toEqual(['api at 127.0.0.1', 'controller at 127.0.0.1', 'delivery at 127.0.0.1']);
});

test('processes with the key prefix of another installation, or in another database, are not listed', async () => {
  await connect(`posthorn-delivery-main@${storeLayout - 1}@other%3A`);
  await connect(`posthorn-delivery-main@${storeLayout - 1}@test%3A`, redis.url.replace(/0$/, '1'));
  expect(await earlier()).toEqual([]);
  expect(await earlier('other:')).toEqual(['delivery at 127.0.0.1']);
});

test('a Redis that does not let its clients be listed is refused, with what to allow', async () => {
  await redis.client.call('ACL', 'SETUSER', 'few', 'on', '>word', '~*', '+@all', '-client|list');
  const client = commandConnection(redis.url.replace('redis://', 'redis://few:word@'));
  clients.push(client);
  await client.connect();
  await expect(earlierProcesses({ redis: client, prefix })).rejects.toMatchObject({
    code: 'INVALID_CONFIG',
    message: expect.stringContaining('CLIENT LIST'),
  });
});

test('processes report the version of their release, and those of releases that do not are shown without one', async () => {
  await connect(processName({ role: 'api', prefix, version: '1.3.0-rc.1+build@2' }));
  await connect(`posthorn-ingest-main@${storeLayout}@test%3A`);
  const found = await connectedProcesses({ redis: redis.client, prefix });
  expect(found.map(({ role, layout, version }) => [role, layout, version]).sort()).toEqual([
    ['api', storeLayout, '1.3.0-rc.1+build@2'],
    ['ingest', storeLayout, null],
  ]);
});
