import { parseTimedId } from '../core/ids.ts';

const keyStart = 'msg_00'.length;

/** What stands for an id in its shard's keys: the id without prefix and shard number. Null when it is not an id of that shard. */
export function recordKey(id: string, shard: number): string | null {
  return parseTimedId(id)?.shard === shard ? id.slice(keyStart) : null;
}

/** The id behind a record key. */
export function recordId(prefix: 'evt_' | 'msg_', shard: number, key: string): string {
  return prefix + shard.toString(36).padStart(2, '0') + key;
}
