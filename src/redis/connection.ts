import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { type RedisAddress, type RedisSecrets, redisNodes } from './address.ts';

/** Client type of every module; made in `src/cmd` only. */
export type RedisClient = Redis | Cluster;

const minTls = { minVersion: 'TLSv1.2' } as const;
const reconnectCeilingMs = 2000;
/** A connection whose other end is silent for this much longer than a command may take is reopened. */
const silenceMarginMs = 4000;
/** Interval at which a connection to a Cluster reloads its slots; it also does when it is redirected. */
const slotsRefreshMs = { command: 10_000, blocking: 60_000 };

/**
 * For commands and scripts. A command fails after `commandTimeoutMs` and is not queued while Redis is down; its effect
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

/** For BLPOP, XREAD BLOCK and the like: one reader each. `blockMs` is the longest block of the reader. */
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
  const { mode, url, sentinel, tls, current } = typeof address === 'string' ? single(address) : address;
  const { nodes, path, usesTls, username, password, database } = redisNodes(url);
  const options: RedisOptions = {
    ...own,
    // RESP3 would change reply shapes of HGETALL and the like.
    replyMapping: 'legacy',
    // A master that has become a replica: who stays connected to it can never write again.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(usesTls && { tls: { ...minTls, ...tls } }),
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
    const client = new Cluster(nodes, cluster);
    // Connections of the pool, and copies of these: the one that reads the slots, the one of subscriptions.
    if (current !== undefined) client.on('+node', (node: Redis) => followSecrets(node.options, usesTls, current));
    return client;
  }
  if (mode === 'sentinel') {
    const client = new Redis({
      ...alone,
      ...options,
      sentinels: nodes,
      name: sentinel?.master ?? 'mymaster',
      ...(sentinel?.username !== undefined && { sentinelUsername: sentinel.username }),
      ...(sentinel?.password !== undefined && { sentinelPassword: sentinel.password }),
      ...(usesTls && { enableTLSForSentinelMode: true, sentinelTLS: { ...minTls, ...tls } }),
      // No failoverDetector: when it speaks while ioredis reconnects by itself, the connection ends for good. Sentinel closes the connections to a
      // master that it demotes.
      sentinelCommandTimeout: 2000,
      sentinelRetryStrategy: reconnectDelay,
    });
    if (current !== undefined) followSecrets(client.options, usesTls, current);
    return client;
  }
  const where: RedisOptions = path === null ? { ...nodes[0] } : { path };
  const client = new Redis({ ...alone, ...options, ...where });
  if (current !== undefined) followSecrets(client.options, usesTls, current);
  return client;
}

/** Makes ioredis, which reads its options whenever it connects, find there what the secrets are at that time. */
function followSecrets(options: RedisOptions, usesTls: boolean, current: () => RedisSecrets): void {
  const follow = (name: keyof RedisOptions, get: () => unknown) =>
    Object.defineProperty(options, name, { get, enumerable: true, configurable: true });
  follow('username', () => current().username);
  follow('password', () => current().password);
  if (usesTls) follow('tls', () => ({ ...minTls, ...current().tls }));
  if (options.sentinels == null) return;
  follow('sentinelPassword', () => current().sentinelPassword);
  if (usesTls) follow('sentinelTLS', () => ({ ...minTls, ...current().tls }));
}

/** The servers that hold data: each of them must be set up well, and each has keys of its own. */
export function mastersOf(redis: RedisClient): Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/**
 * Follows the connections to the nodes of a Cluster, which break and are reopened while the whole is `ready`; does nothing for another client.
 * `isServed`: a master is connected, or has not been needed yet.
 */
export function watchNodes(
  redis: RedisClient,
  { onError, onReady }: { onError(node: string, error: Error, isServed: boolean): void; onReady(node: string): void },
): void {
  if (!(redis instanceof Cluster)) return;
  redis.on('node error', (error: Error, node: string) => {
    const states = mastersOf(redis).map(({ status }) => status);
    onError(node, error, states.includes('ready') || states.every((status) => status === 'wait'));
  });
  redis.on('+node', (node: Redis) => node.on('ready', () => onReady(`${node.options.host}:${node.options.port}`)));
}

/** Host and port of every server of the connection: of a Cluster all nodes, else the one that it has reached. */
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
