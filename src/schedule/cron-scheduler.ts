import { createHash } from 'node:crypto';
import type { CronFieldCollection } from 'cron-parser';
import { withJitter } from '../core/backoff.ts';
import type { Clock } from '../core/clock.ts';
import { parseCronExpression } from '../core/cron-expression.ts';
import { cronSlotsAround } from '../core/cron-slots.ts';
import { PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { CronJobRecord } from '../core/records.ts';
import { isTimeZone } from '../core/time-zone.ts';
import { type CronExecutions, newExecutionId } from '../data/cron/cron-executions.ts';
import type { CronRun, CronRuns } from '../data/cron/cron-runs.ts';
import type { RegistryPublisher, RegistryReader } from '../data/registry/registry.ts';

export interface CronSchedulerOptions {
  /** Id of this process alone. */
  id: string;
  registry: Pick<RegistryReader, 'getOfAny' | 'onChange'>;
  published: Pick<RegistryPublisher, 'ids'>;
  runs: CronRuns;
  executions: CronExecutions;
  clock: Clock;
  logger: Logger;
}

/** The lock is renewed more often than it expires: a killed scheduler is replaced within these. */
const turnMs = 15_000;
const turnEveryMs = 5000;
/** A missed slot is made up once if it is at most this old; older ones are skipped, so that an outage is not followed by a burst of runs. */
const makeUpMs = 600_000;
const batch = 100;
const longestRetryMs = 5000;
/** A search over years takes up to a millisecond. */
const searchesPerTurn = 10;

interface Job {
  record: CronJobRecord;
  fields: CronFieldCollection;
  revision: string;
}

/**
 * Claims the slots of all cron jobs as they come, and gives their runs to the workers. Any number of processes may run it, with Redis
 * alone: one of them has the lock, and a slot is claimed once, by any of them.
 */
export class CronScheduler {
  readonly #options: CronSchedulerOptions;
  readonly #jobs = new Map<string, Job>();
  /** Jobs by their next slot. */
  readonly #due = new Map<number, Set<string>>();
  readonly #plannedMs = new Map<string, number>();
  readonly #changed = new Set<string>();
  readonly #unreadable = new Set<string>();
  #mustLoad = true;
  /** How far the clock here is ahead of that of Redis. */
  #aheadMs = 0;
  #wake: () => void = () => {};

  constructor(options: CronSchedulerOptions) {
    this.#options = options;
  }

  /** Until the signal aborts; waits and continues while Redis fails. */
  async run(signal: AbortSignal): Promise<void> {
    const { registry, runs, clock, logger, id } = this.#options;
    const unsubscribe = registry.onChange((changeKey) => this.#note(changeKey));
    let hadTurn = false;
    for (let failures = 0; !signal.aborted; ) {
      try {
        const askedAtMs = clock.now();
        const turn = await runs.turn(id, turnMs);
        this.#aheadMs = Math.max(0, askedAtMs - turn.timeMs);
        if (turn.isOurs) {
          // Somebody else may have scheduled meanwhile.
          if (!hadTurn) this.#mustLoad = true;
          await this.#serve(turn.lost, signal);
        }
        hadTurn = turn.isOurs;
        failures = 0;
        await this.#sleep(hadTurn ? this.#untilNextMs() : turnEveryMs, signal, hadTurn);
      } catch (error) {
        hadTurn = false;
        if (failures++ === 0)
          logger.warn({ reason: error instanceof Error ? error.message : String(error) }, 'cron jobs could not be scheduled; retrying');
        await clock.sleep(withJitter(Math.min(longestRetryMs, 100 * 2 ** Math.min(failures, 10))), signal);
      }
    }
    unsubscribe();
    if (hadTurn) await runs.endTurn(id).catch(() => undefined);
  }

  #note(changeKey: string): void {
    if (changeKey === '*') this.#mustLoad = true;
    else if (changeKey.startsWith('cronJob:')) this.#changed.add(changeKey.slice('cronJob:'.length));
    else return;
    this.#wake();
  }

  async #serve(lost: readonly CronRun[], signal: AbortSignal): Promise<void> {
    for (const run of lost) await this.#endLost(run);
    if (this.#mustLoad) await this.#loadAll();
    else if (this.#changed.size > 0) await this.#load([...this.#changed]);
    await this.#claimDue(signal);
  }

  async #endLost(run: CronRun): Promise<void> {
    const { executions, runs, clock } = this.#options;
    const newest = await executions.newest(run.org, run.jobId, batch).catch((error: unknown) => {
      if (isUnavailable(error)) throw error;
      return [];
    });
    const known = newest.find(({ id }) => id === run.id);
    const completedAtMs = clock.now();
    await executions.write({
      id: run.id,
      jobId: run.jobId,
      org: run.org,
      status: 'failed',
      responseStatus: null,
      responseBody: null,
      errorMessage: 'worker_lost: the worker that made this run ended before the run did',
      latencyMs: null,
      startedAtMs: known?.startedAtMs ?? run.slotMs,
      completedAtMs,
    });
    await runs.release(run.id);
  }

  async #loadAll(): Promise<void> {
    const { published, runs } = this.#options;
    this.#mustLoad = false;
    try {
      const ids = new Set([...(await published.ids('cronJob')), ...(await runs.jobIds()), ...this.#jobs.keys()]);
      await this.#load([...ids]);
    } catch (error) {
      this.#mustLoad = true;
      throw error;
    }
  }

  /** Brings these jobs to what is published, makes up what was missed, and forgets those that are gone. */
  async #load(ids: readonly string[]): Promise<void> {
    const { runs, executions } = this.#options;
    for (let i = 0; i < ids.length; i += batch) {
      const some = ids.slice(i, i + batch);
      for (const id of some) this.#changed.delete(id);
      try {
        const records = await Promise.all(some.map((id) => this.#read(id)));
        for (const id of some.filter((_, j) => records[j] === null)) {
          this.#drop(id);
          await executions.remove(id);
          await runs.forget(id);
        }
        await this.#take(records.flatMap((record) => (record === null || record === 'unreadable' ? [] : jobOf(record))));
      } catch (error) {
        for (const id of some) this.#changed.add(id);
        throw error;
      }
    }
  }

  /** A job whose record cannot be read stays as it was; the others continue. */
  async #read(id: string): Promise<CronJobRecord | null | 'unreadable'> {
    const { registry, logger } = this.#options;
    try {
      const record = await registry.getOfAny('cronJob', id);
      this.#unreadable.delete(id);
      return record;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      if (!this.#unreadable.has(id)) logger.warn({ reason: String(error), jobId: id }, 'the record of a cron job is invalid');
      this.#unreadable.add(id);
      return 'unreadable';
    }
  }

  async #take(jobs: readonly Job[]): Promise<void> {
    if (jobs.length === 0) return;
    const { runs, executions } = this.#options;
    const nowMs = this.#now();
    const seen = await runs.seen(
      jobs.map(({ record, revision }) => ({ id: record.id, revision })),
      nowMs,
    );
    await Promise.all(jobs.filter((_, i) => seen[i]?.isNew === true).map(({ record }) => executions.allow(record.id)));
    const missed: [Job, number][] = [];
    for (const [i, job] of jobs.entries()) {
      await turnFor(i);
      const { claimedMs = nowMs } = seen[i] ?? {};
      const { id, enabled, timeZone } = job.record;
      this.#drop(id);
      this.#jobs.set(id, job);
      if (!enabled) continue;
      const { last, next } = cronSlotsAround(job.fields, timeZone, Math.max(claimedMs, nowMs - makeUpMs), nowMs);
      if (last !== null) missed.push([job, last]);
      this.#plan(id, next);
    }
    await this.#claim(missed);
  }

  /** All slots that have come, batch by batch, oldest first. */
  async #claimDue(signal: AbortSignal): Promise<void> {
    const nowMs = this.#now();
    for (const slot of [...this.#due.keys()].filter((each) => each <= nowMs).sort((a, b) => a - b)) {
      const ids = [...(this.#due.get(slot) ?? [])];
      for (let i = 0; i < ids.length && !signal.aborted; i += batch) {
        const jobs = ids.slice(i, i + batch).flatMap((id) => this.#jobs.get(id) ?? []);
        // After a stop of this process the slot may be long ago: then it counts as missed.
        const planned: { job: Job; last: number | null; next: number }[] = [];
        for (const [j, job] of jobs.entries()) {
          await turnFor(j);
          planned.push({ job, ...cronSlotsAround(job.fields, job.record.timeZone, Math.max(slot - 1, nowMs - makeUpMs), nowMs) });
        }
        await this.#claim(planned.flatMap(({ job, last }): [Job, number][] => (last === null ? [] : [[job, last]])));
        for (const { job, next } of planned) {
          this.#due.get(slot)?.delete(job.record.id);
          this.#plan(job.record.id, next);
        }
      }
      if (this.#due.get(slot)?.size === 0) this.#due.delete(slot);
    }
  }

  async #claim(claims: readonly [Job, number][]): Promise<void> {
    const { runs, clock } = this.#options;
    if (claims.length === 0) return;
    await runs.claim(
      claims.map(([{ record, revision }, slotMs]) => ({
        id: newExecutionId(clock.now()),
        jobId: record.id,
        org: record.org,
        slotMs,
        timeoutMs: record.http.timeoutMs,
        revision,
      })),
    );
  }

  #plan(id: string, slot: number): void {
    const due = this.#due.get(slot);
    this.#plannedMs.set(id, slot);
    if (due === undefined) this.#due.set(slot, new Set([id]));
    else due.add(id);
  }

  #drop(id: string): void {
    this.#jobs.delete(id);
    const slot = this.#plannedMs.get(id);
    this.#plannedMs.delete(id);
    if (slot === undefined) return;
    const ids = this.#due.get(slot);
    if (ids?.delete(id) === true && ids.size === 0) this.#due.delete(slot);
  }

  #untilNextMs(): number {
    if (this.#mustLoad || this.#changed.size > 0) return 0;
    const nowMs = this.#now();
    return Math.min(turnEveryMs, ...[...this.#due.keys()].map((slot) => Math.max(0, slot - nowMs)));
  }

  /** Never ahead of Redis, which refuses slots that have not come. */
  #now(): number {
    return this.#options.clock.now() - this.#aheadMs;
  }

  /** A change wakes the lock's holder. */
  async #sleep(ms: number, signal: AbortSignal, isWoken: boolean): Promise<void> {
    const woken = new AbortController();
    this.#wake = isWoken ? () => woken.abort() : () => {};
    await this.#options.clock.sleep(ms, AbortSignal.any([signal, woken.signal]));
    this.#wake = () => {};
  }
}

async function turnFor(search: number): Promise<void> {
  if (search > 0 && search % searchesPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
}

function isUnavailable(error: unknown): boolean {
  return error instanceof PosthornError && error.code === 'UNAVAILABLE';
}

function jobOf(record: CronJobRecord): Job[] {
  try {
    const { enabled, schedule, timeZone } = record;
    const revision = createHash('sha256').update(`${enabled} ${schedule} ${timeZone}`).digest('hex').slice(0, 16);
    return isTimeZone(timeZone) ? [{ record, fields: parseCronExpression(schedule), revision }] : [];
  } catch {
    // A release that takes more forms has published it.
    return [];
  }
}
