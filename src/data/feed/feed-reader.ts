import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import { blockingGroups, type RedisClient } from '../../redis/connection.ts';
import { namedArgument } from '../../redis/script.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { list, text } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import type { FeedPosition } from './feed-position.ts';

const watchScript = new ShardScript(new URL('./watch.lua', import.meta.url));
const pageScript = new ShardScript(new URL('./feed-page.lua', import.meta.url));

/** Maximum block of a read of a single Redis. */
export const feedBlockMs = 2000;
/** Poll interval of a Cluster. */
const clusterPauseMs = 100;
export const rowsPerRead = 200;
/** Time for which shards write their feeds after the last watcher. */
export const interestMs = 60_000;

/** A row as stored in the feed of its shard. */
export interface StoredRow {
  shard: number;
  /** Id of its entry. */
  id: string;
  text: string;
}

interface ShardRows {
  rows: StoredRow[];
  /** Organizations that have lost rows between these. */
  losers: string[];
}

interface FeedRows {
  rows: StoredRow[];
  losers: readonly string[] | null;
}

export interface FeedReaderOptions {
  redis: RedisClient;
  /** Connection of this reader alone, which connects it; used with a single Redis. */
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

  /** Makes all shards write their feeds for `interestMs` more. Returns where they end. */
  async watch(): Promise<FeedPosition> {
    const { redis, prefix, shards } = this.#options;
    const epoch = randomBytes(6).toString('hex');
    try {
      const replies = await Promise.all(
        Array.from({ length: shards() }, async (_, shard) => {
          const [own, newest] = list(await watchScript.run(redis, shardKeys(prefix, shard).declared, [epoch, interestMs]));
          return { epoch: text(own), newest: text(newest) };
        }),
      );
      const digest = createHash('sha256')
        .update(replies.map((reply) => reply.epoch).join())
        .digest('hex');
      return { epoch: digest.slice(0, 12), rows: replies.map(({ newest }) => newest) };
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** Returns the rows behind these, after a bounded wait for the first one. `losers`: organizations that have lost rows before they were read; null: any may have. */
  async after(rows: readonly string[], signal: AbortSignal): Promise<FeedRows> {
    try {
      return blockingGroups(this.#options.redis, rows.length).length > 1 ? await this.#poll(rows, signal) : await this.#block(rows);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** Up to `rowsPerRead` rows of one shard from behind `first` to `last`; null: rows of the organization may be gone. */
  async between(shard: number, first: string, last: string, organization: string): Promise<StoredRow[] | null> {
    try {
      return (await this.#behind(shard, first, last, organization))?.rows ?? null;
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** The same; without an organization also which have lost some of these rows. Null: any, or that organization, may have. */
  async #behind(shard: number, first: string, last: string, organization?: string): Promise<ShardRows | null> {
    const { redis, prefix } = this.#options;
    const found = await redis.xrange(shardKeys(prefix, shard).feed, first, last, 'COUNT', rowsPerRead + 1);
    if (found[0]?.[0] === first) return { rows: found.slice(1).map(([id, fields]) => stored(shard, id, fields)), losers: [] };
    return await this.#left(shard, first, last, organization);
  }

  /** The same of a position whose row has left the feed. */
  async #left(shard: number, first: string, last: string, organization?: string): Promise<ShardRows | null> {
    const { redis, prefix } = this.#options;
    const page = namedArgument({ after: first, last, maxRows: rowsPerRead, org: organization });
    const reply = await pageScript.run(redis, shardKeys(prefix, shard).declared, [page]);
    if (reply === null) return null;
    const [rows, losers] = list(reply);
    const entries = list(rows).map((row) => {
      const [id, fields] = list(row);
      return stored(shard, text(id), list(fields).map(text));
    });
    return { rows: entries, losers: list(losers).map(text) };
  }

  close(): void {
    this.#options.blocking.disconnect();
  }

  async #block(rows: readonly string[]): Promise<FeedRows> {
    const { redis, blocking, prefix } = this.#options;
    if (blocking.status === 'wait' || blocking.status === 'end') await blocking.connect();
    const keys = rows.map((_, shard) => shardKeys(prefix, shard).feed);
    const shardOf = new Map(keys.map((key, shard) => [key, shard]));
    const streams = (await blocking.xread('COUNT', rowsPerRead, 'BLOCK', feedBlockMs, 'STREAMS', ...keys, ...rows)) ?? [];
    return allOf(
      await Promise.all(
        streams.map(async ([key, entries]) => {
          const shard = shardOf.get(key) ?? 0;
          const row = rows[shard] ?? '0-0';
          // A reply below the limit means that the feed was read to its end and is shorter than its trim length.
          const isThere = entries.length < rowsPerRead || (await redis.xrange(key, row, row, 'COUNT', 1)).length > 0;
          return isThere
            ? { rows: entries.map(([id, fields]) => stored(shard, id, fields)), losers: [] }
            : await this.#left(shard, row, '+');
        }),
      ),
    );
  }

  async #poll(rows: readonly string[], signal: AbortSignal): Promise<FeedRows> {
    const found = await Promise.all(rows.map((row, shard) => this.#behind(shard, row, '+')));
    const hasMore = found.some((each) => each === null || each.rows.length >= rowsPerRead);
    if (!hasMore) await this.#options.clock.sleep(clusterPauseMs, signal);
    return allOf(found);
  }
}

/** Joins the rows of several shards; null: rows of any organization may be gone in one of them. */
function allOf(found: readonly (ShardRows | null)[]): FeedRows {
  const rows = found.flatMap((each) => each?.rows ?? []);
  return { rows, losers: found.includes(null) ? null : found.flatMap((each) => each?.losers ?? []) };
}

function stored(shard: number, id: string, [, text = '']: readonly string[]): StoredRow {
  return { shard, id, text };
}
