import type { Clock } from '../../core/clock.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { isMigrated } from '../registry/store-layout.ts';

const againMs = 5000;

/**
 * Whether all processes read payloads that are stored in chunks: those of earlier releases would deliver them empty, and refuse to start once
 * `posthorn migrate` has said that the store is in the layout of this one.
 */
export class ChunkReaders {
  readonly #options: { redis: RedisClient; prefix: string; clock: Clock };
  #areAll = false;
  #askedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: { redis: RedisClient; prefix: string; clock: Clock }) {
    this.#options = options;
  }

  /** Rejects with UNAVAILABLE when Redis does not answer. */
  async areAll(): Promise<boolean> {
    const nowMs = this.#options.clock.now();
    if (this.#areAll || nowMs - this.#askedAtMs < againMs) return this.#areAll;
    this.#areAll = await isMigrated(this.#options);
    this.#askedAtMs = nowMs;
    return this.#areAll;
  }
}
