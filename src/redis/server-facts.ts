import { Cluster, type Redis } from 'ioredis';
import { mastersOf, type RedisClient } from './connection.ts';
import { redisUnavailable } from './unavailable.ts';

/** Facts that a server with data reports. */
export interface ServerFacts {
  /** Host and port, or the path of a unix socket. */
  address: string;
  version: string;
  usedBytes: number;
  /** Its `maxmemory`; null: it has none. */
  limitBytes: number | null;
  evictionPolicy: string;
  /** Whether it writes an append-only file. */
  appendOnly: boolean;
  /** When it last saved a snapshot, or started, in milliseconds since the epoch; null: it does not report it. */
  snapshotAtMs: number | null;
  /** Whether the last snapshot and the last write of the append-only file worked. */
  isSaving: boolean;
  replicas: number;
}

export function redisMode(redis: RedisClient): 'single' | 'sentinel' | 'cluster' {
  if (redis instanceof Cluster) return 'cluster';
  return redis.options.sentinels === null || redis.options.sentinels === undefined ? 'single' : 'sentinel';
}

/** Facts about the primaries of the connection. `silent`: addresses of those that did not answer. Throws UNAVAILABLE when none did. */
export async function serverFacts(redis: RedisClient): Promise<{ servers: ServerFacts[]; silent: string[] }> {
  const primaries = mastersOf(redis);
  const answers = await Promise.allSettled(primaries.map(async (server) => factsOf(addressOf(server), await server.info())));
  const servers = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  if (servers.length === 0) throw redisUnavailable(answers.find((answer) => answer.status === 'rejected')?.reason);
  return { servers, silent: primaries.flatMap((server, at) => (answers[at]?.status === 'rejected' ? [addressOf(server)] : [])) };
}

function addressOf({ options: { path, host, port }, stream }: Redis): string {
  return path ?? `${stream?.remoteAddress ?? host}:${stream?.remotePort ?? port}`;
}

function factsOf(address: string, info: string): ServerFacts {
  const fields = new Map(
    info.split('\r\n').map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
  const text = (name: string): string => fields.get(name) ?? '';
  const number = (name: string): number => Number(fields.get(name) ?? 0);
  return {
    address,
    version: text('redis_version'),
    usedBytes: number('used_memory'),
    limitBytes: number('maxmemory') || null,
    evictionPolicy: text('maxmemory_policy'),
    appendOnly: text('aof_enabled') === '1',
    snapshotAtMs: number('rdb_last_save_time') * 1000 || null,
    isSaving: text('rdb_last_bgsave_status') !== 'err' && text('aof_last_write_status') !== 'err',
    replicas: number('connected_slaves'),
  };
}
