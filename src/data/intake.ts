import type { Clock } from '../core/clock.ts';
import type { RedisClient } from '../redis/connection.ts';
import { redisUnavailable } from '../redis/unavailable.ts';
import { type RateLimitState, takeRequest } from './rate-limit.ts';

/** What may come in: limits that hold over all replicas. Rejects with UNAVAILABLE when Redis does not answer. */
export interface Intake {
  /** Counts a request to the source against its limit per minute. */
  takeRequest(sourceId: string, limit: number): Promise<RateLimitState>;
}

export class RedisIntake implements Intake {
  readonly #options: { redis: RedisClient; prefix: string; clock: Clock };

  constructor(options: { redis: RedisClient; prefix: string; clock: Clock }) {
    this.#options = options;
  }

  async takeRequest(sourceId: string, limit: number): Promise<RateLimitState> {
    try {
      return await takeRequest(this.#options, sourceId, limit);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}
