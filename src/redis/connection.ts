import { Redis, type RedisOptions } from 'ioredis';

/** What every module takes; made in `src/cmd` only. */
export type RedisClient = Redis;

const reconnectCeilingMs = 2000;

const common: RedisOptions = {
  // RESP3 would change reply shapes of HGETALL and the like.
  replyMapping: 'legacy',
  lazyConnect: true,
  retryStrategy: (attempt) => Math.min(reconnectCeilingMs, 50 * 2 ** Math.min(attempt, 10)) * (0.8 + Math.random() * 0.4),
};

/**
 * For commands and scripts. A command fails after `commandTimeoutMs` and is not queued while Redis is away; its effect
 * is then unknown, so every writing script is idempotent. ioredis re-sends what was in flight when a connection broke.
 */
export function commandConnection(url: string, options: { commandTimeoutMs?: number; name?: string } = {}): RedisClient {
  return new Redis(url, {
    ...common,
    connectionName: options.name ?? 'posthorn',
    commandTimeout: options.commandTimeoutMs ?? 2000,
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
  });
}

/** For BLPOP, XREAD BLOCK and the like: one reader each. `blockMs` is the longest block that the reader asks for. */
export function blockingConnection(url: string, options: { blockMs: number; name?: string }): RedisClient {
  return new Redis(url, {
    ...common,
    connectionName: options.name ?? 'posthorn-blocking',
    blockingTimeout: options.blockMs + 2000,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
  });
}
