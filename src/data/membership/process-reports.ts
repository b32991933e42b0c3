import { z } from 'zod';
import { isJson, parsePlainJson } from '../../core/plain-json.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

/** How long a report counts in milliseconds: a process that has ended has nothing to report. */
export const processReportMs = 60_000;

const report = z.object({
  role: z.string(),
  /** Name of its machine; in Kubernetes that of its pod. */
  host: z.string(),
  /** Checks of `/readyz` that fail, with their reasons. */
  failingChecks: z.record(z.string(), z.string()),
  /** Its clock minus that of Redis; null: it is not known. */
  redisClockSkewSeconds: z.number().nullable(),
  /** Its clock minus that of the API server of Kubernetes; null: it is not known, or there is none. */
  apiServerClockSkewSeconds: z.number().nullable(),
  /** Resources that are not Ready, by kind, as the leader counts them. */
  notReadyObjects: z.record(z.string(), z.int()),
});

/** Report of a process to operators through Redis; its metrics may be out of their reach. */
export type ProcessReport = z.output<typeof report>;

/** Reports of the processes that have something to report. Every method throws UNAVAILABLE when Redis does not answer. */
export class ProcessReports {
  readonly #redis: RedisClient;
  readonly #base: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    // In one slot, so that one command reads them.
    this.#base = `${prefix}{workers}:report`;
  }

  /** Replaces the last report of the process. */
  async write(each: ProcessReport): Promise<void> {
    const id = idOf(each);
    await this.#redis.set(this.#keyOf(id), JSON.stringify(each), 'PX', processReportMs).catch(throwUnavailable);
    await this.#redis.sadd(`${this.#base}s`, id).catch(throwUnavailable);
    await this.#redis.pexpire(`${this.#base}s`, processReportMs).catch(throwUnavailable);
  }

  async remove(each: Pick<ProcessReport, 'role' | 'host'>): Promise<void> {
    const id = idOf(each);
    await this.#redis.srem(`${this.#base}s`, id).catch(throwUnavailable);
    await this.#redis.del(this.#keyOf(id)).catch(throwUnavailable);
  }

  /** Reads those of the last minute, by role and host; forgets the names of the others. A report that another release has made in another form is left out. */
  async read(): Promise<ProcessReport[]> {
    const ids = (await this.#redis.smembers(`${this.#base}s`).catch(throwUnavailable)).sort();
    if (ids.length === 0) return [];
    const texts = await this.#redis.mget(ids.map((id) => this.#keyOf(id))).catch(throwUnavailable);
    const ended = ids.filter((_, i) => texts[i] === null);
    // Each report that is written keeps the names of all.
    if (ended.length > 0) await this.#redis.srem(`${this.#base}s`, ...ended).catch(throwUnavailable);
    return texts.flatMap((text) => {
      const parsed = report.safeParse(text !== null && isJson(text) ? parsePlainJson(text) : null);
      return parsed.success ? [parsed.data] : [];
    });
  }

  #keyOf(id: string): string {
    return `${this.#base}:${id}`;
  }
}

function idOf({ role, host }: Pick<ProcessReport, 'role' | 'host'>): string {
  return `${role}@${host}`;
}
