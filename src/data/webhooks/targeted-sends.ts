import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { integer } from '../script-reply.ts';
import type { WebhookRateLimits } from './webhooks.ts';

const script = new Script(new URL('../scripts/rate-windows.lua', import.meta.url));

/**
 * What is sent to one application on purpose is counted against its limits when it is sent (API decisions, "Family B"); what a broadcast
 * queues is held back when it is delivered.
 */
export class TargetedSends {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Counts so many messages. Throws APPLICATION_RATE_LIMITED beyond a limit, and then has counted none; UNAVAILABLE without Redis. */
  async count(applicationId: string, messages: number, { perSecond, perMinute, perHour }: WebhookRateLimits): Promise<void> {
    const windows = [1000, perSecond, 60_000, perMinute, 3_600_000, perHour];
    const reply = await script
      .run(this.#redis, [`${this.#prefix}{rate:${applicationId}}`], [messages, ...windows])
      .catch((error: unknown) => {
        throw redisUnavailable(error);
      });
    const waitMs = integer(reply);
    if (waitMs === 0) return;
    throw new PosthornError('APPLICATION_RATE_LIMITED', 'The application gets no more messages than its limits allow.', {
      retryAfterSeconds: waitMs / 1000,
    });
  }
}
