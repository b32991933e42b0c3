import { expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { startRedis } from '../../test/support/redis.ts';
import { commandConnection } from './connection.ts';
import { hasTimedOut } from './unavailable.ts';

test('a connection leaves a server that has become a replica, and writes once there is a master again', async () => {
  const redis = await startRedis();
  const connection = commandConnection(redis.url, { commandTimeoutMs: 10_000 });
  try {
    await connection.connect();
    const before = await connection.client('ID');
    await redis.client.replicaof('127.0.0.1', 1);
    await expect(connection.set('key', 'value')).rejects.toThrow('READONLY');
    await redis.client.replicaof('NO', 'ONE');
    await eventually(async () => expect(await connection.set('key', 'value')).toBe('OK'));
    expect(await connection.client('ID')).not.toBe(before);
  } finally {
    connection.disconnect();
    await redis.stop();
  }
});

test('a command fails after 2 seconds without an answer, and without a connection at once', async () => {
  const redis = await startRedis();
  const connection = commandConnection(redis.url);
  connection.on('error', () => {});
  try {
    expect(connection.options.commandTimeout).toBe(2000);
    connection.connect().catch(() => {});
    await eventually(() => expect(connection.status).toBe('ready'));
    redis.freeze();
    const refused = await connection.ping().catch((error: unknown) => error);
    expect([refused, hasTimedOut(refused)]).toEqual([expect.any(Error), true]);
    await redis.kill('SIGKILL');
    await eventually(() => expect(connection.status).not.toBe('ready'));
    expect(hasTimedOut(await connection.ping().catch((error: unknown) => error))).toBe(false);
  } finally {
    connection.disconnect();
    await redis.stop();
  }
});
