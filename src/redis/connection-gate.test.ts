import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type CuttableLine, startCuttableLine } from '../../test/support/cuttable-line.ts';
import { eventually } from '../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { PosthornError } from '../core/errors.ts';
import { blockingConnection, commandConnection, type RedisClient } from './connection.ts';
import { type ConnectionCheck, gateConnection } from './connection-gate.ts';

const key = 'owner';
let one: RedisServer;
let other: RedisServer;
let target: { host: string; port: number };
let line: CuttableLine;
let client: RedisClient;
beforeAll(async () => {
  [one, other] = await Promise.all([startRedis(), startRedis()]);
});
afterAll(() => Promise.all([one.stop(), other.stop()]));
beforeEach(async () => {
  await Promise.all([one, other].map((server) => server.client.flushall()));
  await other.client.set(key, 'somebody');
  target = { host: '127.0.0.1', port: one.port };
  line = await startCuttableLine(target);
});
afterEach(async () => {
  client.disconnect();
  await line.stop();
});

const check: ConnectionCheck = {
  keys: [key],
  ask: async (redis) => {
    if ((await redis.get(key)) !== null) throw new PosthornError('INVALID_CONFIG', 'another owner');
  },
};

async function connect(made: RedisClient): Promise<() => void> {
  client = made;
  client.on('error', () => {});
  const doubt = gateConnection(client, check);
  await client.connect();
  return doubt;
}
const command = (): RedisClient => commandConnection(`redis://127.0.0.1:${line.port}`);

/** Replaces the first server with the other one. */
async function replace(): Promise<void> {
  line.cut();
  target.port = other.port;
  line.mend();
  await eventually(() => expect(client.status).toBe('ready'));
}

const stored = async (server: RedisServer): Promise<string[]> => (await server.client.keys('*')).sort();

test('commands are sent in their order once the connection has passed its check, pipelines and transactions, too', async () => {
  await connect(command());
  const [set, piped, multi] = [client.set('a', '1'), client.pipeline().incr('a').incr('a').exec(), client.multi().incr('a').exec()];
  expect([await set, await piped, await multi]).toEqual([
    'OK',
    [
      [null, 2],
      [null, 3],
    ],
    [[null, 4]],
  ]);
  expect(await stored(one)).toEqual(['a']);
});

test('nothing is sent to a server that fails the check after it has replaced another, and the caller is told to try again', async () => {
  await connect(command());
  await client.set('before', '1');
  await replace();
  await expect(client.set('after', '1')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    cause: expect.objectContaining({ message: 'another owner' }),
  });
  expect(await client.pipeline().set('after', '1').exec()).toEqual([[expect.objectContaining({ code: 'UNAVAILABLE' }), undefined]]);
  expect(await stored(other)).toEqual([key]);
  await other.client.del(key);
  expect(await client.set('after', '1')).toBe('OK');
});

test('a command that was under way when the connection broke is not sent to a server that fails the check', async () => {
  await connect(command());
  await client.set('before', '1');
  const lost = line.swallow('+OK');
  const written = client.set('written', '1');
  await Promise.all([lost, replace(), expect(written).rejects.toMatchObject({ code: 'UNAVAILABLE' })]);
  expect(await stored(other)).toEqual([key]);
});

test('a command that was under way when the connection broke is sent again to a server that passes', async () => {
  await connect(command());
  const lost = line.swallow(':1');
  const counted = client.incr('counter');
  await lost;
  expect(await counted).toBe(2);
});

test('a blocking reader waits at a server that has passed', async () => {
  await connect(blockingConnection(`redis://127.0.0.1:${line.port}`, { blockMs: 5000 }));
  const read = client.blpop('list', 5);
  await one.client.rpush('list', 'a');
  expect(await read).toEqual(['list', 'a']);
});

test('after a doubt the check is made again', async () => {
  const doubt = await connect(command());
  await client.set('a', '1');
  await one.client.set(key, 'somebody');
  expect(await client.set('a', '2')).toBe('OK');
  doubt();
  await expect(client.set('a', '3')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(await one.client.get('a')).toBe('2');
});
