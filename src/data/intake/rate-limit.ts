import type { ServerResponse } from 'node:http';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { hasTimedOut, redisUnavailable } from '../../redis/unavailable.ts';

/** The usage of an organization or a source in its window. */
export interface RateLimitState {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** End of the window, milliseconds since the epoch by the clock of Redis. */
  resetAtMs: number;
  retryAfterSeconds: number;
}

/** Sets the `X-RateLimit-…` headers of a response. */
export function setRateLimitHeaders(response: Pick<ServerResponse, 'setHeader'>, { limit, remaining, resetAtMs }: RateLimitState): void {
  response.setHeader('X-RateLimit-Limit', String(limit));
  response.setHeader('X-RateLimit-Remaining', String(remaining));
  response.setHeader('X-RateLimit-Reset', String(Math.ceil(resetAtMs / 1000)));
}

export interface RateLimiterOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  logger: Logger;
}

const minuteMs = 60_000;
const pauseAfterFailureMs = 5000;
const script = new Script(new URL('./rate-limit.lua', import.meta.url));

/** Counts requests of `subject` against `limit` in a window, by default a minute, all or none, over all replicas in one call of Redis. Rejects when that fails. */
export async function takeRequest(
  { redis, prefix, clock }: Pick<RateLimiterOptions, 'redis' | 'prefix' | 'clock'>,
  subject: string,
  limit: number,
  requests = 1,
  windowMs = minuteMs,
): Promise<RateLimitState> {
  const reply = await script.run(redis, [`${prefix}{rate:${subject}}`], [windowMs, requests, limit]);
  const [allowed, count, resetAtMs] = numbers(reply);
  const retryAfterSeconds = Math.max(1, Math.ceil((resetAtMs - clock.now()) / 1000));
  return { allowed: allowed === 1, limit, remaining: Math.max(0, limit - count), resetAtMs, retryAfterSeconds };
}

/**
 * Requests of an organization, by default per minute. Without Redis no request is refused, but a request that has waited for it gets UNAVAILABLE: what the request is
 * for would wait as long again.
 */
export class RateLimiter {
  readonly #options: RateLimiterOptions;
  #pausedUntilMs = 0;

  constructor(options: RateLimiterOptions) {
    this.#options = options;
  }

  /** Null when Redis does not answer. */
  async take(subject: string, limit: number, requests = 1, windowMs = minuteMs): Promise<RateLimitState | null> {
    const { clock, logger } = this.#options;
    if (clock.now() < this.#pausedUntilMs) return null;
    try {
      return await takeRequest(this.#options, subject, limit, requests, windowMs);
    } catch (error) {
      this.#pausedUntilMs = clock.now() + pauseAfterFailureMs;
      logger.warn({ err: error }, 'requests are not rate limited because Redis is unreachable');
      if (hasTimedOut(error)) throw redisUnavailable(error);
      return null;
    }
  }
}

function numbers(reply: unknown): [number, number, number] {
  if (!Array.isArray(reply)) throw new Error('rate-limit.lua answered no list');
  return [Number(reply[0]), Number(reply[1]), Number(reply[2])];
}
