import type { Counter } from 'prom-client';
import type { Logger } from '../../core/logger.ts';
import { OpenShares } from '../../core/open-shares.ts';
import type { CronBell, CronRun } from '../../data/cron/cron-runs.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';
import { lookMs, Wakeup } from '../loops/wakeup.ts';
import { attemptCronRun, type CronAttemptOptions } from './cron-attempt.ts';

/** Runs at the same time in one worker, besides its deliveries; one organization has at most half of them. */
const slots = 64;
const maxPerTake = 16;
/** A run that starts later than this after its slot is skipped. */
const latestMs = 600_000;

export interface CronRunnerOptions extends CronAttemptOptions {
  bell: CronBell;
  /** Of the worker; makes the tokens of this runner its own. */
  worker: string;
  logger: Logger;
  backoff: RedisBackoff;
  metrics: { cronRuns: Counter<'outcome'> };
}

/** Takes runs of cron jobs and makes their requests, with slots of its own. Sleeps on a doorbell. */
export class CronRunner {
  readonly #options: CronRunnerOptions;
  readonly #wakeup = new Wakeup();
  readonly #stopping = new AbortController();
  readonly #breakingOff = new AbortController();
  readonly #shares = new OpenShares({ all: slots, ofOwner: slots / 2 });
  /** Something has ended since the last take. */
  #hasEnded = false;
  #loop: Promise<unknown> = Promise.resolve();

  constructor(options: CronRunnerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#loop = Promise.all([this.#takeLoop(), this.#bellLoop()]);
  }

  /** Takes no more runs; those under way are aborted, and recorded as failed, after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    this.#options.bell.close();
    this.#wakeup.signal();
    await this.#loop;
    const cancelGrace = this.#options.clock.after(graceMs, () => this.#breakingOff.abort());
    while (this.#shares.open > 0) await this.#wakeup.wait();
    cancelGrace();
  }

  async #bellLoop(): Promise<void> {
    const { bell, runs, worker, clock, backoff } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await bell.wait();
        this.#wakeup.signal();
        // A worker that has become full takes nothing, which wakes the others.
        if (this.#shares.open >= slots) await runs.take(`${worker}.full`, 0, []);
        // A worker that is full, or excludes some organizations, leaves the doorbell to others until it has slots for all.
        while (this.#leavesBell() && !signal.aborted) {
          await clock.sleep(lookMs, signal);
          this.#wakeup.signal();
        }
      } catch (error) {
        if (signal.aborted) return;
        await clock.sleep(backoff.recordFailure(error), signal);
        this.#wakeup.signal();
      }
    }
  }

  #leavesBell(): boolean {
    return this.#shares.open >= slots || this.#shares.full.length > 0;
  }

  async #takeLoop(): Promise<void> {
    const { runs, worker, clock, backoff } = this.#options;
    const { signal } = this.#stopping;
    for (let takes = 1; !signal.aborted; ) {
      if (this.#shares.open >= slots) {
        await this.#wakeup.wait();
        continue;
      }
      try {
        this.#hasEnded = false;
        const { room, full } = this.#shares;
        const taken = await runs.take(`${worker}.${takes}`, Math.min(maxPerTake, room), full);
        backoff.recordSuccess();
        takes++;
        for (const run of taken.runs) this.#begin(run);
        if (!taken.hasMore && !this.#hasEnded) await this.#wakeup.wait();
      } catch (error) {
        await clock.sleep(backoff.recordFailure(error), signal);
      }
    }
  }

  #begin(run: CronRun): void {
    this.#shares.add(run.org);
    void this.#run(run).finally(() => {
      this.#shares.giveBack(run.org);
      this.#hasEnded = true;
      this.#wakeup.signal();
    });
  }

  /** Never rejects: what cannot be recorded ends as lost. */
  async #run(run: CronRun): Promise<void> {
    const { registry, runs, clock, logger, metrics } = this.#options;
    try {
      const job = await registry.getOf(run.org, 'cronJob', run.jobId);
      const isLate = clock.now() - run.slotMs > latestMs;
      if (job === null || !job.enabled || isLate) {
        await runs.release(run.id);
        metrics.cronRuns.inc({ outcome: isLate ? 'late' : 'dropped' });
        return;
      }
      const { status } = await attemptCronRun(this.#options, run, job, this.#breakingOff.signal);
      metrics.cronRuns.inc({ outcome: status });
    } catch (error) {
      logger.warn({ reason: error instanceof Error ? error.message : String(error), jobId: run.jobId }, 'a cron job run was not recorded');
    }
  }
}
