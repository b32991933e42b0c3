import { defaultPool } from '../../core/default-pool.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script, type ScriptArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { poolSuffix } from '../shard/pool-suffix.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { ringBell } from '../tasks/ring-bell.ts';
import { cronBlockSeconds, cronKeys } from './cron-keys.ts';

const seenScript = new Script(new URL('./cron-seen.lua', import.meta.url));
const claimScript = new Script(new URL('./cron-claim.lua', import.meta.url));
const holdScript = new Script(new URL('./cron-hold.lua', import.meta.url));
const takeScript = new Script(new URL('./cron-take.lua', import.meta.url));
const turnScript = new Script(new URL('./cron-turn.lua', import.meta.url));
const endTurnScript = new Script(new URL('./cron-end-turn.lua', import.meta.url));

/** A worker that has not ended a run so long after the run's own timeout is lost. */
const lostAfterMs = 10_000;

/** One run of a job, on its way to an execution. */
export interface CronRun {
  /** Id of the execution. */
  id: string;
  jobId: string;
  org: string;
  /** Milliseconds since the epoch. */
  slotMs: number;
  timeoutMs: number;
}

/** A slot of a job, by the revision of its schedule. */
export interface CronClaim extends CronRun {
  revision: string;
}

/** Runs of cron jobs between scheduler and workers. Every call may be sent again. Throws UNAVAILABLE when Redis does not answer. */
export class CronRuns {
  readonly #redis: RedisClient;
  readonly #keys: ReturnType<typeof cronKeys>;
  readonly #poolSuffix: string;

  /** `pool`: for queries of its waiting runs. */
  constructor({ redis, prefix, pool = defaultPool }: { redis: RedisClient; prefix: string; pool?: string }) {
    this.#redis = redis;
    this.#poolSuffix = poolSuffix(pool);
    this.#keys = cronKeys(prefix);
  }

  /**
   * Whether this scheduler leads for the next `turnMs`, the time of Redis, and which runs are lost. Leadership only saves work: that no slot is claimed
   * twice is up to `claim`.
   */
  async turn(scheduler: string, turnMs: number): Promise<{ isOurs: boolean; timeMs: number; lost: CronRun[] }> {
    const { turn, held, runs } = this.#keys;
    const [isOurs, timeMs, ...lost] = list(await this.#run(turnScript, [turn, held, runs], [scheduler, turnMs]));
    return { isOurs: integer(isOurs) === 1, timeMs: integer(timeMs), lost: lost.map((each) => parseRun(text(each))) };
  }

  async endTurn(scheduler: string): Promise<void> {
    await this.#run(endTurnScript, [this.#keys.turn], [scheduler]);
  }

  /** Per job the time up to which its slots are claimed; `isNew`: it was not known with this revision, and nothing is made up. */
  async seen(jobs: readonly { id: string; revision: string }[], nowMs: number): Promise<{ claimedMs: number; isNew: boolean }[]> {
    const known = namedArgument({ nowMs, jobs: jobs.map(({ id, revision }) => ({ id, revision })) });
    const slots = list(await this.#run(seenScript, [this.#keys.slots], [known])).map(integer);
    return slots.map((slot) => ({ claimedMs: Math.abs(slot), isNew: slot < 0 }));
  }

  /** Queues the runs of unclaimed slots, each for the pool of its organization; returns how many. At most 100 at a time. */
  async claim(claims: readonly CronClaim[]): Promise<number> {
    const { slots, last, waiting, ready, bell, base, pools } = this.#keys;
    const named = claims.map((claim) => {
      const { jobId, org, slotMs, revision, id } = claim;
      return { job: jobId, org, slotMs, revision, run: id, text: runText(claim) };
    });
    const queued = list(
      await this.#run(claimScript, [slots, last, waiting, ready, bell, `${base}q:`, pools], [namedArgument({ claims: named })]),
    );
    return queued.map(integer).filter((each) => each === 1).length;
  }

  /** Up to `count` runs of the pool, each for the newest slot of its job, none of the organizations in `without`. After an error the same `token` gives the same runs. */
  async take(token: string, count: number, without: readonly string[]): Promise<{ runs: CronRun[]; hasMore: boolean }> {
    const { ready, waiting, runs, held, ran, bell, take, base, last } = this.#keys;
    const keys = [ready, waiting, runs, held, ran, bell, take(token), `${base}q:`, last];
    const [more, ...taken] = list(
      await this.#run(takeScript, keys, [namedArgument({ count, lostAfterMs, mark: this.#poolSuffix, without })]),
    );
    return { runs: taken.map((each) => parseRun(text(each))), hasMore: integer(more) === 1 };
  }

  /** Holds a run that was not scheduled, so that it ends as lost when its worker dies. */
  async hold(run: CronRun): Promise<void> {
    const { runs, held, ran } = this.#keys;
    const holding = { id: run.id, job: run.jobId, lostAfterMs: run.timeoutMs + lostAfterMs, text: runText(run) };
    await this.#run(holdScript, [runs, held, ran], [namedArgument(holding)]);
  }

  /** The run has ended and is recorded. */
  async release(runId: string): Promise<void> {
    await this.#all(this.#redis.multi().hdel(this.#keys.runs, runId).zrem(this.#keys.held, runId));
  }

  /** How many organizations of the pool have runs that wait. */
  async organizationsWaiting(): Promise<number> {
    return await this.#redis.llen(`${this.#keys.ready}${this.#poolSuffix}`).catch(throwUnavailable);
  }

  /** When the jobs ran last, in milliseconds since the epoch; null: never. */
  async lastRunsMs(jobIds: readonly string[]): Promise<(number | null)[]> {
    if (jobIds.length === 0) return [];
    const found = await this.#redis.hmget(this.#keys.ran, ...jobIds).catch(throwUnavailable);
    return found.map((each) => (each === null ? null : Number(each)));
  }

  /** The last slot of each job that was given to the workers. */
  async lastSlots(): Promise<Map<string, number>> {
    const found = await this.#redis.hgetall(this.#keys.last).catch(throwUnavailable);
    return new Map(Object.entries(found).map(([job, slot]) => [job, Number(slot)]));
  }

  /** Jobs that something is known of. */
  async jobIds(): Promise<string[]> {
    return await this.#redis.hkeys(this.#keys.slots).catch(throwUnavailable);
  }

  /** Forgets a deleted job; a run of it that waits is dropped when a worker takes it. */
  async forget(jobId: string): Promise<void> {
    const { slots, last, ran } = this.#keys;
    await this.#all(this.#redis.multi().hdel(slots, jobId).hdel(last, jobId).hdel(ran, jobId));
  }

  async #all(transaction: { exec(): Promise<unknown> }): Promise<void> {
    await transaction.exec().catch(throwUnavailable);
  }

  async #run(script: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return await script.run(this.#redis, keys, args).catch(throwUnavailable);
  }
}

/** Lets a worker of a pool sleep until there are runs for it. Owns its connection, which blocks. */
export class CronDoorbell {
  readonly #redis: RedisClient;
  readonly #blocking: RedisClient;
  readonly #key: string;

  constructor({
    redis,
    blocking,
    prefix,
    pool = defaultPool,
  }: { redis: RedisClient; blocking: RedisClient; prefix: string; pool?: string }) {
    this.#redis = redis;
    this.#blocking = blocking;
    this.#key = `${cronKeys(prefix).bell}${poolSuffix(pool)}`;
    // Errors reject the wait under way; the event is redundant.
    blocking.on('error', () => undefined);
  }

  /** Resolves on a signal, or after a timeout. Rejects when Redis is down or the doorbell was closed. */
  async wait(): Promise<void> {
    if (this.#blocking.status === 'wait' || this.#blocking.status === 'end') await this.#blocking.connect();
    await this.#blocking.blpop(this.#key, cronBlockSeconds);
  }

  /** Wakes another worker of the pool. */
  async ring(): Promise<void> {
    await ringBell(this.#redis, this.#key);
  }

  close(): void {
    this.#blocking.disconnect();
  }
}

function runText({ id, jobId, org, slotMs, timeoutMs }: CronRun): string {
  return `${id} ${jobId} ${org} ${slotMs} ${timeoutMs}`;
}

function parseRun(value: string): CronRun {
  const [id = '', jobId = '', org = '', slotMs = '', timeoutMs = ''] = value.split(' ');
  return { id, jobId, org, slotMs: Number(slotMs), timeoutMs: Number(timeoutMs) };
}
