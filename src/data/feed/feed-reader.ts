import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import { blockingGroups, type RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import type { FeedPosition } from './feed-position.ts';

const watchScript = new Script(new URL('./watch.lua', import.meta.url));

/** How long a single Redis is asked for rows at a time. */
export const feedBlockMs = 2000;
/** How often a Cluster is asked. */
const clusterPauseMs = 100;
const rowsPerRead = 200;
/** For so long shards write their feeds after the last one has watched. */
export const interestMs = 60_000;

/** A row as it stands in the feed of its shard. */
export interface StoredRow {
  shard: number;
  /** Of its entry. */
  id: string;
  text: string;
}

export interface FeedReaderOptions {
  redis: RedisClient;
  /** Of this reader alone, which connects it; of a single Redis. */
  blocking: RedisClient;
  prefix: string;
  shards: () => number;
  clock: Clock;
}

/** Reads the feeds of all shards (`includes/feed.lua`). Throws UNAVAILABLE when Redis does not answer. */
export class FeedReader {
  readonly #options: FeedReaderOptions;

  constructor(options: FeedReaderOptions) {
    this.#options = options;
  }

  /**
   * Makes all shards write their feeds for `interestMs` more. Returns where they end, and whether the rows of `since` are all there: then nothing
   * behind them is lost.
   */
  async watch(since: FeedPosition | null): Promise<FeedPosition & { hasAll: boolean }> {
    const { redis, prefix, shards } = this.#options;
    const epoch = randomBytes(6).toString('hex');
    try {
      const replies = await Promise.all(
        Array.from({ length: shards() }, async (_, shard) => {
          const reply = await watchScript.run(redis, shardKeys(prefix, shard).declared, [epoch, interestMs, since?.rows[shard] ?? '']);
          const [own, newest, isThere] = list(reply);
          return { epoch: text(own), newest: text(newest), isThere: integer(isThere) === 1 };
        }),
      );
      const digest = createHash('sha256')
        .update(replies.map((reply) => reply.epoch).join())
        .digest('hex');
      const together = digest.slice(0, 12);
      const isSame = since === null || (since.epoch === together && since.rows.length === replies.length);
      return { epoch: together, rows: replies.map(({ newest }) => newest), hasAll: isSame && replies.every(({ isThere }) => isThere) };
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** Waits a while for rows behind these. `isComplete` false: rows were trimmed before they were read. */
  async after(rows: readonly string[], signal: AbortSignal): Promise<{ rows: StoredRow[]; isComplete: boolean }> {
    try {
      return blockingGroups(this.#options.redis, rows.length).length > 1 ? await this.#poll(rows, signal) : await this.#block(rows);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** Up to `rowsPerRead` rows of one shard from behind `first` to `last`; null: that of `first` is gone, and others may be. */
  async between(shard: number, first: string, last: string): Promise<StoredRow[] | null> {
    const { redis, prefix } = this.#options;
    try {
      const found = await redis.xrange(shardKeys(prefix, shard).feed, first, last, 'COUNT', rowsPerRead + 1);
      return found[0]?.[0] === first ? found.slice(1).map(([id, fields]) => stored(shard, id, fields)) : null;
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  close(): void {
    this.#options.blocking.disconnect();
  }

  async #block(rows: readonly string[]): Promise<{ rows: StoredRow[]; isComplete: boolean }> {
    const { redis, blocking, prefix } = this.#options;
    if (blocking.status === 'wait' || blocking.status === 'end') await blocking.connect();
    const keys = rows.map((_, shard) => shardKeys(prefix, shard).feed);
    const shardOf = new Map(keys.map((key, shard) => [key, shard]));
    const streams = (await blocking.xread('COUNT', rowsPerRead, 'BLOCK', feedBlockMs, 'STREAMS', ...keys, ...rows)) ?? [];
    // Where there was room for more, the feed was read to its end and is shorter than what it is trimmed to.
    const full = streams.filter(([, entries]) => entries.length === rowsPerRead).map(([key]) => key);
    const there = await Promise.all(full.map((key) => redis.xrange(key, rowOf(key), rowOf(key), 'COUNT', 1)));
    function rowOf(key: string): string {
      return rows[shardOf.get(key) ?? 0] ?? '0-0';
    }
    return {
      rows: streams.flatMap(([key, entries]) => entries.map(([id, fields]) => stored(shardOf.get(key) ?? 0, id, fields))),
      isComplete: there.every((entries) => entries.length > 0),
    };
  }

  async #poll(rows: readonly string[], signal: AbortSignal): Promise<{ rows: StoredRow[]; isComplete: boolean }> {
    const found = await Promise.all(rows.map((row, shard) => this.between(shard, row, '+')));
    const hasMore = found.some((each) => each === null || each.length >= rowsPerRead);
    if (!hasMore) await this.#options.clock.sleep(clusterPauseMs, signal);
    return { rows: found.flatMap((each) => each ?? []), isComplete: found.every((each) => each !== null) };
  }
}

function stored(shard: number, id: string, [, text = '']: readonly string[]): StoredRow {
  return { shard, id, text };
}
