import { Cluster } from 'ioredis';
import { mastersOf, type RedisClient } from './connection.ts';

/** What a server that holds data says of itself. */
export interface ServerFacts {
  version: string;
  usedBytes: number;
  /** Its `maxmemory`; null: it has none. */
  limitBytes: number | null;
  evictionPolicy: string;
  /** Whether it writes an append-only file. */
  appendOnly: boolean;
  /** When it last saved a snapshot, or started, in milliseconds since the epoch; null: it says nothing of it. */
  snapshotAtMs: number | null;
  /** Whether the last snapshot and the last write of the append-only file worked. */
  isSaving: boolean;
  replicas: number;
}

export function redisMode(redis: RedisClient): 'single' | 'cluster' {
  return redis instanceof Cluster ? 'cluster' : 'single';
}

/** Of the primaries that the connection knows. Rejects when one does not answer. */
export function serverFacts(redis: RedisClient): Promise<ServerFacts[]> {
  return Promise.all(mastersOf(redis).map(async (server) => factsOf(await server.info())));
}

function factsOf(info: string): ServerFacts {
  const fields = new Map(
    info.split('\r\n').map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
  const text = (name: string): string => fields.get(name) ?? '';
  const number = (name: string): number => Number(fields.get(name) ?? 0);
  return {
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
