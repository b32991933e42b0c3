import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import { isJson, parsePlainJson } from '../../core/plain-json.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

/** How long a report counts in milliseconds, so that one of controllers that have ended is not taken for the present. */
const lifetimeMs = 60_000;

const report = z.object({
  name: z.string(),
  replicas: z.object({ wanted: z.int(), ready: z.int() }).nullable(),
  conditions: z.array(
    z.object({
      type: z.string(),
      status: z.enum(['True', 'False', 'Unknown']),
      reason: z.string(),
      message: z.string(),
      lastTransitionTime: z.string(),
    }),
  ),
});

/** The controller's data about a DeliveryPool. */
export type PoolReport = z.output<typeof report>;

/** The DeliveryPools as the leading controller reports them to the API, which has no right to read them. Throws UNAVAILABLE when Redis does not answer. */
export class PoolReports {
  readonly #redis: RedisClient;
  readonly #key: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    // In the slot of the workers of these pools.
    this.#key = `${prefix}{workers}:pools`;
  }

  /** Replaces the last report. */
  async write(pools: readonly PoolReport[]): Promise<void> {
    await this.#redis.set(this.#key, JSON.stringify(pools), 'PX', lifetimeMs).catch(throwUnavailable);
  }

  /** Null: no controller has reported within a minute. INTERNAL when the report is malformed. */
  async read(): Promise<PoolReport[] | null> {
    const text = await this.#redis.get(this.#key).catch(throwUnavailable);
    if (text === null) return null;
    const parsed = z.array(report).safeParse(isJson(text) ? parsePlainJson(text) : null);
    if (!parsed.success) throw new PosthornError('INTERNAL', 'The report of the DeliveryPools in Redis is malformed.');
    return parsed.data;
  }
}
