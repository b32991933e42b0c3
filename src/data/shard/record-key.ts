import { shardOfTimedId } from '../../core/ids.ts';

const prefixLength = 'msg_'.length;
const keyStart = 'msg_00'.length;
const foreignLength = 27;

/**
 * The form of an id in a shard's keys: the id without prefix and, in its home shard, without shard number. Null when it
 * is no id.
 */
export function recordKey(id: string, shard: number): string | null {
  const home = shardOfTimedId(id);
  if (home === null) return null;
  return id.slice(home === shard ? keyStart : prefixLength);
}

/** The id behind a key of a shard. */
export function recordId(prefix: 'evt_' | 'msg_', shard: number, key: string): string {
  return key.length === foreignLength ? prefix + key : prefix + shard.toString(36).padStart(2, '0') + key;
}

/** Where an event or a message is at home, and its key there; null when it is no id of one. */
export function recordLocation(id: string): { shard: number; key: string } | null {
  const shard = homeShard(id);
  const key = shard === null ? null : recordKey(id, shard);
  return shard === null || key === null ? null : { shard, key };
}

/** The shard that an id names; null when it is no id of an event or a message. */
export function homeShard(id: string): number | null {
  return shardOfTimedId(id);
}
