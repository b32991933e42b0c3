import type { Counter } from 'prom-client';
import type { Logger } from '../../core/logger.ts';
import type { CronDoorbell, CronRun } from '../../data/cron/cron-runs.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';
import { SlotLoop } from '../loops/slot-loop.ts';
import { attemptCronRun, type CronAttemptOptions } from './cron-attempt.ts';

/** Number of concurrent runs of one worker, besides its deliveries. One organization gets at most half of them. */
const slots = 64;
const maxPerTake = 16;
/** A run is skipped if it would start later than this after its slot. */
const latestMs = 600_000;

export interface CronRunnerOptions extends CronAttemptOptions {
  bell: CronDoorbell;
  /** Id of the worker. It makes the tokens of this runner unique. */
  worker: string;
  logger: Logger;
  backoff: RedisBackoff;
  metrics: { cronRuns: Counter<'outcome'> };
}

/** Takes runs of cron jobs and makes their requests, with slots of its own. Sleeps on a doorbell. */
export class CronRunner {
  readonly #options: CronRunnerOptions;
  readonly #loop: SlotLoop<CronRun>;

  constructor(options: CronRunnerOptions) {
    this.#options = options;
    const { bell, runs, worker, clock, backoff } = options;
    this.#loop = new SlotLoop({
      slots,
      slotsOfOrganization: slots / 2,
      bell,
      take: async (token, room, full) => {
        const taken = await runs.take(token, Math.min(maxPerTake, room), full);
        return { items: taken.runs, hasMore: taken.hasMore };
      },
      run: (run, signal) => this.#run(run, signal),
      worker,
      clock,
      backoff,
    });
  }

  start(): void {
    this.#loop.start();
  }

  /** Takes no more runs. After `graceMs` aborts those under way and records them as failed. */
  async stop(graceMs: number): Promise<void> {
    await this.#loop.stop(graceMs);
  }

  /** Never rejects. A run whose result cannot be recorded is reported as lost later. */
  async #run(run: CronRun, signal: AbortSignal): Promise<void> {
    const { registry, runs, clock, logger, metrics } = this.#options;
    try {
      const job = await registry.getOf(run.org, 'cronJob', run.jobId);
      const isLate = clock.now() - run.slotMs > latestMs;
      if (job === null || !job.enabled || isLate) {
        await runs.release(run.id);
        metrics.cronRuns.inc({ outcome: isLate ? 'late' : 'dropped' });
        return;
      }
      const { status } = await attemptCronRun(this.#options, run, job, signal);
      metrics.cronRuns.inc({ outcome: status });
    } catch (error) {
      logger.warn({ reason: error instanceof Error ? error.message : String(error), jobId: run.jobId }, 'a cron job run was not recorded');
    }
  }
}
