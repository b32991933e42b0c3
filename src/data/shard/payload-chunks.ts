import { randomBytes } from 'node:crypto';
import { freeBuffer } from '../../core/free-buffer.ts';
import { Semaphore } from '../../core/semaphore.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';
import { setUncopied } from '../../redis/uncopied-set.ts';
import { shardKeys } from './shard-keys.ts';
import { ShardScript } from './shard-script.ts';

/** The same in `includes/chunks.lua`. */
const chunkBytes = 524_288;

/** Lifetime of chunks that no event has named: longer than a payload takes to be stored, with what is tried again. */
const unnamedMs = 60_000;
/** Most chunks under way on one connection, of all callers together: 2 MiB. More would delay the other commands on it. */
const chunksUnderWay = 4;
const chunksOfOne = 2;
const underWay = new WeakMap<RedisClient, Semaphore>();

/** Names the chunks of a payload in the first line of its event's text. */
export interface ChunkedPayload {
  token: string;
  bytes: number;
}

const dropScript = new ShardScript(new URL('./chunks-drop.lua', import.meta.url));

/** A payload that is at hand, in the form of one that is streamed; null: it is gone. */
export async function* onePiece(payload: Buffer | null): AsyncGenerator<Buffer | null> {
  yield payload;
}

/**
 * The chunks of payloads above 1 MiB (`includes/chunks.lua`). They are plain strings, written and read one by one, because one long argument of a script holds
 * up everybody else in Redis (docs/decisions/0009-payload-chunks.md). All methods reject with UNAVAILABLE when Redis does not answer.
 */
export class PayloadChunks {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #underWay: Semaphore;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#underWay = underWay.get(redis) ?? new Semaphore(chunksUnderWay);
    underWay.set(redis, this.#underWay);
  }

  /** Writes the chunks, which are gone after a minute unless an event names them. What was written of a payload that fails is removed. */
  async write(shard: number, payload: Buffer): Promise<ChunkedPayload> {
    const chunked = { token: randomBytes(9).toString('hex'), bytes: payload.length };
    try {
      await this.#each(chunked, (k) => this.#set(shard, chunked, k, payload.subarray(k * chunkBytes, (k + 1) * chunkBytes)));
    } catch (error) {
      this.drop(shard, chunked).catch(() => undefined);
      throw error;
    }
    return chunked;
  }

  /** The whole payload; null when it is gone. */
  async read(shard: number, chunked: ChunkedPayload): Promise<Buffer | null> {
    const payload = Buffer.allocUnsafe(chunked.bytes);
    let copied = 0;
    await this.#each(chunked, async (k) => {
      const chunk = await this.#get(shard, chunked, k);
      if (chunk === null) return;
      copied += chunk.copy(payload, k * chunkBytes);
      freeBuffer(chunk);
    });
    return copied === chunked.bytes ? payload : null;
  }

  /** The chunks in their order. Null for one that is gone, and then there are no more. */
  async *stream(shard: number, chunked: ChunkedPayload): AsyncGenerator<Buffer | null, void> {
    for (let k = 0; k < countOf(chunked); k++) {
      const chunk = await this.#underWay.run(1, () => this.#get(shard, chunked, k));
      yield chunk;
      if (chunk === null) return;
    }
  }

  /**
   * Writes them in another shard, too, where they are there already or have a minute to be named. False when one is gone: then none is left there of those
   * that no event has named.
   */
  async copy(from: number, to: number, chunked: ChunkedPayload): Promise<boolean> {
    let isWhole = true;
    await this.#each(chunked, async (k) => {
      const chunk = isWhole ? await this.#get(from, chunked, k) : null;
      if (chunk === null) isWhole = false;
      else await this.#set(to, chunked, k, chunk);
    });
    if (!isWhole) await this.drop(to, chunked);
    return isWhole;
  }

  /** Removes what no event has named. */
  async drop(shard: number, { token, bytes }: ChunkedPayload): Promise<void> {
    await dropScript.run(this.#redis, shardKeys(this.#prefix, shard).declared, [token, bytes]).catch(throwUnavailable);
  }

  async #each(chunked: ChunkedPayload, work: (k: number) => Promise<void>): Promise<void> {
    const count = countOf(chunked);
    let next = 0;
    let failed = false;
    const one = async (): Promise<void> => {
      while (next < count && !failed) {
        const k = next++;
        try {
          await this.#underWay.run(1, () => work(k));
        } catch (error) {
          failed = true;
          throw redisUnavailable(error);
        }
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: chunksOfOne }, one));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #set(shard: number, { token }: ChunkedPayload, k: number, chunk: Buffer): Promise<void> {
    await setUncopied(this.#redis, shardKeys(this.#prefix, shard).chunk(token, k), chunk, ['PX', unnamedMs, 'NX']).catch(throwUnavailable);
  }

  async #get(shard: number, { token }: ChunkedPayload, k: number): Promise<Buffer | null> {
    return await this.#redis.getBuffer(shardKeys(this.#prefix, shard).chunk(token, k)).catch(throwUnavailable);
  }
}

function countOf({ bytes }: ChunkedPayload): number {
  return Math.ceil(bytes / chunkBytes);
}
