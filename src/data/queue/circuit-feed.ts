import type { RedisClient } from '../../redis/connection.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { fields } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { type CircuitTransition, circuitStateOf } from './circuits.ts';

/** How long a read waits for the next transition. */
export const circuitFeedBlockMs = 30_000;
const entriesPerRead = 500;

/** In each stream the entry after which to read. */
export type FeedPosition = ReadonlyMap<string, string>;

interface FeedRead {
  transitions: CircuitTransition[];
  position: FeedPosition;
  isBehind: boolean;
}

/** The streams of circuit transitions of all shards, for one reader. Throws UNAVAILABLE when Redis does not answer. */
export class CircuitFeed {
  readonly #readers: readonly StreamReader[];
  #reading = new Map<StreamReader, Promise<{ reader: StreamReader; read: FeedRead }>>();

  /** `readers`: connections of this feed alone, ended by `close`, with the shards that each of them reads. `redis`: for what does not block. */
  constructor({
    redis,
    readers,
    prefix,
  }: {
    redis: RedisClient;
    readers: readonly { blocking: RedisClient; shards: readonly number[] }[];
    prefix: string;
  }) {
    this.#readers = readers.map(
      ({ blocking, shards }) =>
        new StreamReader(
          redis,
          blocking,
          shards.map((shard) => shardKeys(prefix, shard).circuits),
        ),
    );
  }

  /** Position after the newest transitions. */
  async head(): Promise<FeedPosition> {
    this.#reading = new Map();
    const positions = await Promise.all(this.#readers.map((reader) => reader.head()));
    return new Map(positions.flatMap((position) => [...position]));
  }

  /**
   * Entries after `position`; waits for them, and returns nothing after `circuitFeedBlockMs`. `isBehind`: there is so much that
   * some of it may have been trimmed before it was read.
   */
  async after(position: FeedPosition): Promise<FeedRead> {
    for (const reader of this.#readers) {
      if (this.#reading.has(reader)) continue;
      const reading = reader.after(position).then((read) => ({ reader, read }));
      reading.catch(() => undefined);
      this.#reading.set(reader, reading);
    }
    const { reader, read } = await Promise.race(this.#reading.values());
    this.#reading.delete(reader);
    return { ...read, position: new Map([...position, ...read.position]) };
  }

  close(): void {
    for (const reader of this.#readers) reader.close();
  }
}

/** Streams that can be read by one command. */
class StreamReader {
  readonly #redis: RedisClient;
  readonly #blocking: RedisClient;
  readonly #keys: readonly string[];

  constructor(redis: RedisClient, blocking: RedisClient, keys: readonly string[]) {
    this.#redis = redis;
    this.#blocking = blocking;
    this.#keys = keys;
  }

  async head(): Promise<FeedPosition> {
    try {
      // A read that blocks may be under way on the other connection.
      const newest = await Promise.all(this.#keys.map((key) => this.#redis.xrevrange(key, '+', '-', 'COUNT', 1)));
      return new Map(this.#keys.map((key, i) => [key, newest[i]?.[0]?.[0] ?? '0-0']));
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async after(position: FeedPosition): Promise<FeedRead> {
    try {
      if (this.#blocking.status === 'wait' || this.#blocking.status === 'end') await this.#blocking.connect();
      const from = this.#keys.map((key) => position.get(key) ?? '0-0');
      const reply = await this.#blocking.xread('COUNT', entriesPerRead, 'BLOCK', circuitFeedBlockMs, 'STREAMS', ...this.#keys, ...from);
      const streams = reply ?? [];
      return {
        transitions: streams.flatMap(([, entries]) => entries.map(([, fields]) => transitionOf(fields))),
        position: new Map(
          streams.flatMap(([key, entries]): [string, string][] => (entries.length === 0 ? [] : [[key, entries.at(-1)?.[0] ?? '']])),
        ),
        isBehind: streams.some(([, entries]) => entries.length === entriesPerRead),
      };
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  close(): void {
    this.#blocking.disconnect();
  }
}

function transitionOf(flat: readonly string[]): CircuitTransition {
  const entry = fields(flat);
  const field = (word: keyof typeof hashFields.transitions): string => entry.get(hashFields.transitions[word]) ?? '';
  return {
    routeId: field('route'),
    destinationId: field('destination'),
    state: circuitStateOf(field('state')),
    atMs: Number(field('atMs')),
    consecutiveFailures: Number(field('consecutiveFailures')),
  };
}
