import { createHash, randomBytes } from 'node:crypto';
import type { RedisClient } from '../../src/redis/connection.ts';
import { scanKeys } from '../../src/redis/scan-keys.ts';

export const mebibyte = 1_048_576;

/** No two parts of it are alike, so that chunks in a wrong order or position are seen. */
export function largePayload(bytes = 3 * mebibyte + 17): Buffer {
  return randomBytes(bytes);
}

/** JSON of about so many bytes, with these members besides. */
export function largeJson(bytes: number, members: Record<string, unknown> = {}): Buffer {
  const item = { id: 12345, name: 'something', tags: ['a', 'b'], nested: { deep: [1, 2, 3], text: 'x'.repeat(40) } };
  const size = JSON.stringify(item).length + 1;
  return Buffer.from(JSON.stringify({ ...members, items: Array.from({ length: Math.ceil(bytes / size) }, () => item) }));
}

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** The chunks in these shards, with their lifetime in ms; -1: none. */
export async function chunksOf(redis: RedisClient, prefix: string, shards: number): Promise<{ key: string; ttlMs: number }[]> {
  const found: { key: string; ttlMs: number }[] = [];
  for (let shard = 0; shard < shards; shard++) {
    for (const key of await scanKeys(redis, `${prefix}{s${shard}}:`, 'c:*')) found.push({ key, ttlMs: await redis.pttl(key) });
  }
  return found;
}
