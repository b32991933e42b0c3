import { expect, test } from '@jest/globals';
import { passes } from '../../test/support/passes.ts';
import { startRedis } from '../../test/support/redis.ts';
import { commandConnection } from './connection.ts';

test('leaves a server that has become a replica, and writes once there is a master again', async () => {
  const redis = await startRedis();
  const connection = commandConnection(redis.url, { commandTimeoutMs: 10_000 });
  try {
    await connection.connect();
    const before = await connection.client('ID');
    await redis.client.replicaof('127.0.0.1', 1);
    await expect(connection.set('key', 'value')).rejects.toThrow('READONLY');
    await redis.client.replicaof('NO', 'ONE');
    await passes(async () => expect(await connection.set('key', 'value')).toBe('OK'));
    expect(await connection.client('ID')).not.toBe(before);
  } finally {
    connection.disconnect();
    await redis.stop();
  }
});
