import type { RedisClient } from '../redis/connection.ts';
import { redisUnavailable } from '../redis/unavailable.ts';
import { intakeKeys } from './intake-keys.ts';

const fiveMinutesMs = 300_000;
const hourMs = 3_600_000;
/** How far back five minutes can be told apart. */
const finestMs = 2 * hourMs;
const keptDays = 31;

/** Duplicates that ingest has dropped, by source. */
export class DuplicateCounts {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /**
   * Ids of sources with the number of their duplicates since `fromMs`: exact to five minutes for the last two hours, to an hour for the last
   * 31 days. `nowMs` by the clock that ingest uses, that of Redis. UNAVAILABLE without Redis.
   */
  async since(org: string, fromMs: number, nowMs: number): Promise<Map<string, number>> {
    const keys = intakeKeys(this.#prefix, org);
    const isFine = nowMs - fromMs <= finestMs;
    const unitMs = isFine ? fiveMinutesMs : hourMs;
    const hours = span(fromMs, nowMs, hourMs, 4);
    const hashes = isFine ? hours.map(keys.duplicatesOfHour) : span(fromMs, nowMs, 24 * hourMs, keptDays + 1).map(keys.duplicatesOfDay);
    const counts = new Map<string, number>();
    try {
      for (const hash of await Promise.all(hashes.map((key) => this.#redis.hgetall(key)))) {
        for (const [field, count] of Object.entries(hash)) {
          const [sourceId = '', unit] = field.split(' ');
          if (Number(unit) >= Math.floor(fromMs / unitMs)) counts.set(sourceId, (counts.get(sourceId) ?? 0) + Number(count));
        }
      }
    } catch (error) {
      throw redisUnavailable(error);
    }
    return counts;
  }
}

/** Numbers of the units that the time touches, at most the last `most`. */
function span(fromMs: number, nowMs: number, unitMs: number, most: number): number[] {
  const last = Math.floor(nowMs / unitMs);
  const first = Math.max(Math.floor(fromMs / unitMs), last - most + 1);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
