import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { type RedisAddress, redisNodes } from './address.ts';

/** What every module takes; made in `src/cmd` only. */
export type RedisClient = Redis | Cluster;

const reconnectCeilingMs = 2000;
/** A connection whose other end is silent for this much longer than a command may take is closed and made anew. */
const silenceMarginMs = 4000;
/** How often a connection to a Cluster asks for its slots unbidden; it also does when it is redirected. */
const slotsRefreshMs = { command: 10_000, blocking: 60_000 };

/**
 * For commands and scripts. A command fails after `commandTimeoutMs` and is not queued while Redis is away; its effect
 * is then unknown, so every writing script is idempotent. ioredis re-sends what was in flight when a connection broke.
 */
export function commandConnection(address: RedisAddress, options?: { commandTimeoutMs?: number; name?: string }): RedisClient;
export function commandConnection(url: string, options?: { commandTimeoutMs?: number; name?: string }): Redis;
export function commandConnection(
  address: RedisAddress | string,
  { commandTimeoutMs = 2000, name = 'posthorn' }: { commandTimeoutMs?: number; name?: string } = {},
): RedisClient {
  return connection(address, {
    connectionName: name,
    commandTimeout: commandTimeoutMs,
    socketTimeout: commandTimeoutMs + silenceMarginMs,
    maxRetriesPerRequest: 1,
  });
}

/** For BLPOP, XREAD BLOCK and the like: one reader each. `blockMs` is the longest block that the reader asks for. */
export function blockingConnection(
  address: RedisAddress | string,
  { blockMs, name = 'posthorn-blocking' }: { blockMs: number; name?: string },
): RedisClient {
  return connection(address, {
    connectionName: name,
    blockingTimeout: blockMs + 2000,
    socketTimeout: blockMs + silenceMarginMs,
    maxRetriesPerRequest: 0,
  });
}

function connection(address: RedisAddress | string, own: RedisOptions): RedisClient {
  const { mode, url, sentinel, tls } = typeof address === 'string' ? single(address) : address;
  const { nodes, path, usesTls, username, password, database } = redisNodes(url);
  const options: RedisOptions = {
    ...own,
    // RESP3 would change reply shapes of HGETALL and the like.
    replyMapping: 'legacy',
    // A master that has become a replica: who stays connected to it can never write again.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(usesTls && { tls: { minVersion: 'TLSv1.2', ...tls } }),
  };
  const alone: RedisOptions = { lazyConnect: true, enableOfflineQueue: false, db: database, retryStrategy: reconnectDelay };
  if (mode === 'cluster') {
    const cluster: ClusterOptions = {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: reconnectDelay,
      clusterNodeRetryStrategy: reconnectDelay,
      slotsRefreshTimeout: 2000,
      slotsRefreshInterval: own.blockingTimeout === undefined ? slotsRefreshMs.command : slotsRefreshMs.blocking,
      // Certificates name hosts, so names stay names.
      ...(usesTls && { dnsLookup: (host, callback) => callback(null, host) }),
      redisOptions: options,
    };
    return new Cluster(nodes, cluster);
  }
  if (mode === 'sentinel') {
    return new Redis({
      ...alone,
      ...options,
      sentinels: nodes,
      name: sentinel?.master ?? 'mymaster',
      ...(sentinel?.username !== undefined && { sentinelUsername: sentinel.username }),
      ...(sentinel?.password !== undefined && { sentinelPassword: sentinel.password }),
      ...(usesTls && { enableTLSForSentinelMode: true, sentinelTLS: { minVersion: 'TLSv1.2', ...tls } }),
      // No failoverDetector: when it speaks while ioredis reconnects by itself, the connection ends for good. Sentinel closes the connections to a
      // master that it demotes.
      sentinelCommandTimeout: 2000,
      sentinelRetryStrategy: reconnectDelay,
    });
  }
  const where: RedisOptions = path === null ? { ...nodes[0] } : { path };
  return new Redis({ ...alone, ...options, ...where });
}

/** The servers that hold data: each of them must be set up well, and each has keys of its own. */
export function mastersOf(redis: RedisClient): Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** Host and port of every server that the connection knows: of a Cluster all nodes, else the one that it has reached. */
export function knownServers(redis: RedisClient): { host: string; port: number }[] {
  if (redis instanceof Cluster)
    return redis.nodes('all').flatMap(({ options: { host, port } }) => (host === undefined || port === undefined ? [] : [{ host, port }]));
  const { remoteAddress: host, remotePort: port } = redis.stream ?? {};
  return host === undefined || port === undefined ? [] : [{ host, port }];
}

/** Shards that one blocking command can read together: all, but in a Cluster each by itself. */
export function blockingGroups(redis: RedisClient, shards: number): number[][] {
  const all = Array.from({ length: shards }, (_, shard) => shard);
  return redis instanceof Cluster ? all.map((shard) => [shard]) : [all];
}

function single(url: string): RedisAddress {
  return { mode: 'single', url };
}

function reconnectDelay(attempt: number): number {
  return Math.min(reconnectCeilingMs, 50 * 2 ** Math.min(attempt, 10)) * (0.8 + Math.random() * 0.4);
}
