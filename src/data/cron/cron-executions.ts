import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { base32 } from '../../core/ids.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { type AttemptDetail, fittingDetail, unpackedDetail } from '../shard/attempt-detail.ts';
import { integer } from '../shard/script-reply.ts';
import { executionKeys } from './cron-keys.ts';

const writeScript = new Script(new URL('./execution-write.lua', import.meta.url));

/** Size of the history of a job. `bodyBytes`: of all response bodies, which is 25 of the largest size. */
const executionLimits = { count: 100, bodyBytes: 256 * 1024, days: 30 };
/** Maximum size of the detail of one execution. */
const detailBytes = 2048;
const dayMs = 86_400_000;
/** Jobs searched for an execution at a time. */
const jobsAtOnce = 50;
/** Longer than any run takes that is under way when its job is deleted. */
const goneMs = 600_000;

const entry = z.object({
  id: z.string(),
  jobId: z.string(),
  org: z.string(),
  status: z.enum(['running', 'success', 'failed']),
  responseStatus: z.int().nullable(),
  errorMessage: z.string().nullable(),
  latencyMs: z.int().nullable(),
  startedAtMs: z.int(),
  completedAtMs: z.int().nullable(),
  /** Packed. */
  detail: z.array(z.unknown()).optional(),
});

/** One recorded run of a cron job. `responseBody` is kept for the newest runs that fit into the limit. */
export type CronExecution = Omit<z.output<typeof entry>, 'detail'> & {
  responseBody: string | null;
  /** Absent: it is not kept. */
  detail?: AttemptDetail;
};

export function newExecutionId(nowMs: number): string {
  return `exec_${nowMs.toString(36).padStart(9, '0')}${base32(randomBytes(10))}`;
}

/** The history of cron jobs. Throws UNAVAILABLE when Redis does not answer. */
export class CronExecutions {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Writes an execution. Returns false, and writes nothing, if it has ended before or its job was deleted. */
  async write({ responseBody, detail, ...execution }: CronExecution): Promise<boolean> {
    const { order, entries, bodies, gone } = executionKeys(this.#prefix, execution.jobId);
    const { count, bodyBytes, days } = executionLimits;
    const kept = { ...execution, ...(detail !== undefined && { detail: fittingDetail(detail, detailBytes) }) } satisfies z.input<
      typeof entry
    >;
    const written = namedArgument({
      id: execution.id,
      startedAtMs: execution.startedAtMs,
      hasEnded: execution.status !== 'running',
      entry: JSON.stringify(kept),
      body: responseBody === '' ? null : responseBody,
      maxExecutions: count,
      maxBodyBytes: bodyBytes,
      oldestMs: execution.startedAtMs - days * dayMs,
      // A job may run once in four years.
      keptMs: 5 * 366 * dayMs,
    });
    return integer(await writeScript.run(this.#redis, [order, entries, bodies, gone], [written]).catch(throwUnavailable)) === 1;
  }

  /** Returns the newest executions of a job of this organization, newest first. */
  async newest(org: string, jobId: string, limit: number): Promise<CronExecution[]> {
    const { order, entries, bodies } = executionKeys(this.#prefix, jobId);
    const ids = (await this.#redis.zrange(order, `${-limit}`, '-1').catch(throwUnavailable)).reverse();
    if (ids.length === 0) return [];
    const [found, texts] = await Promise.all([this.#redis.hmget(entries, ...ids), this.#redis.hmget(bodies, ...ids)]).catch(
      throwUnavailable,
    );
    return found.flatMap((each, i) => executionOf(org, each, texts[i] ?? null) ?? []);
  }

  /** Returns the outcome of the newest execution of each job, in the order of the jobs; null: none is kept. */
  async lastStatuses(org: string, jobIds: readonly string[]): Promise<(CronExecution['status'] | null)[]> {
    const statuses: (CronExecution['status'] | null)[] = [];
    const statusOf = async (jobId: string): Promise<CronExecution['status'] | null> => {
      const { order, entries } = executionKeys(this.#prefix, jobId);
      const [newest] = await this.#redis.zrange(order, '-1', '-1');
      return newest === undefined ? null : (executionOf(org, await this.#redis.hget(entries, newest), null)?.status ?? null);
    };
    for (let i = 0; i < jobIds.length; i += jobsAtOnce)
      statuses.push(...(await Promise.all(jobIds.slice(i, i + jobsAtOnce).map(statusOf)).catch(throwUnavailable)));
    return statuses;
  }

  /** Finds an execution of one of the jobs by its id, without its response body; null: none has it. */
  async find(org: string, jobIds: readonly string[], id: string): Promise<CronExecution | null> {
    for (let i = 0; i < jobIds.length; i += jobsAtOnce) {
      const entries = jobIds.slice(i, i + jobsAtOnce).map((jobId) => this.#redis.hget(executionKeys(this.#prefix, jobId).entries, id));
      for (const each of await Promise.all(entries).catch(throwUnavailable)) {
        const found = executionOf(org, each, null);
        if (found !== null) return found;
      }
    }
    return null;
  }

  /** Removes the history of a deleted job. Runs under way write nothing afterwards. */
  async remove(jobId: string): Promise<void> {
    const { order, entries, bodies, gone } = executionKeys(this.#prefix, jobId);
    await this.#redis.multi().set(gone, 1, 'PX', goneMs).del(order, entries, bodies).exec().catch(throwUnavailable);
  }

  /** Allows writes for a job that exists, perhaps after a deletion. */
  async allow(jobId: string): Promise<void> {
    await this.#redis.del(executionKeys(this.#prefix, jobId).gone).catch(throwUnavailable);
  }
}

/** Reads a stored entry; null: there is none, or it is another organization's. `responseBody` null: without a body, or it is not kept any more. */
function executionOf(org: string, stored: string | null, responseBody: string | null): CronExecution | null {
  if (stored === null) return null;
  const { detail: packed, ...execution } = entry.parse(parsePlainJson(stored.slice(1)));
  if (execution.org !== org) return null;
  const detail = unpackedDetail(packed);
  return { ...execution, responseBody, ...(detail !== null && { detail }) };
}
