import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { shardKeys } from '../shard/shard-keys.ts';

/** Errors of the archive of an organization. Times are milliseconds since the epoch. */
export interface ArchiveFailure {
  /** Null: what was written last has been stored. */
  failing: { sinceMs: number; message: string } | null;
  /** Messages that were removed before they were written, lately; null: none. */
  lost: { messages: number; lastMs: number } | null;
}

/** Archives that fail, or have lost something, by organization. */
export class ArchiveFailures {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: number;

  constructor({ redis, prefix, shards = 1 }: { redis: RedisClient; prefix: string; shards?: number }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
  }

  /** Throws UNAVAILABLE when Redis does not answer. */
  async all(): Promise<Map<string, ArchiveFailure>> {
    const found = new Map<string, ArchiveFailure>();
    const { failingSinceMs, lastError, lost: lostMessages, lastLossMs } = hashFields.archive;
    const names = [failingSinceMs, lastError, lostMessages, lastLossMs];
    for (let shard = 0; shard < this.#shards; shard++) {
      const keys = shardKeys(this.#prefix, shard);
      for (const org of await this.#redis.smembers(keys.archiveFailures).catch(throwUnavailable)) {
        const [since, message, lost, lostAt] = await this.#redis.hmget(keys.archive(org), ...names).catch(throwUnavailable);
        const failure: ArchiveFailure = {
          failing: since == null ? null : { sinceMs: Number(since), message: message ?? '' },
          lost: lost == null ? null : { messages: Number(lost), lastMs: Number(lostAt) },
        };
        found.set(org, joined(found.get(org), failure));
      }
    }
    return found;
  }
}

function joined(one: ArchiveFailure | undefined, other: ArchiveFailure): ArchiveFailure {
  if (one === undefined) return other;
  const isEarlier = one.failing !== null && (other.failing === null || one.failing.sinceMs <= other.failing.sinceMs);
  const lost = [one.lost, other.lost].filter((each) => each !== null);
  return {
    failing: isEarlier ? one.failing : other.failing,
    lost:
      lost.length === 0
        ? null
        : { messages: lost.reduce((sum, { messages }) => sum + messages, 0), lastMs: Math.max(...lost.map(({ lastMs }) => lastMs)) },
  };
}
