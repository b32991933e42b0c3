import type { RedisDeliveryQueue } from '../../../data/queue/redis-delivery-queue.ts';
import type { RedisBackoff } from '../../loops/redis-backoff.ts';
import type { HeldJobs } from '../held-jobs.ts';
import type { ShardSignals } from '../shard-signals.ts';

export interface BatchEndingOptions {
  queue: Pick<RedisDeliveryQueue, 'endBatches'>;
  backoff: RedisBackoff;
  held: HeldJobs;
  signals: ShardSignals;
}

/** Duty in one shard: ends the members of ended batches, in steps, so that Redis serves others in between. */
export class BatchEnding {
  readonly #options: BatchEndingOptions;
  #isUnderWay = false;
  #isStopped = false;

  constructor(options: BatchEndingOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
  }

  begin(): void {
    if (!this.#isUnderWay) void this.#end();
  }

  /** The rest after a failure of Redis is found by the next check. */
  async #end(): Promise<void> {
    const { queue, backoff, held, signals } = this.#options;
    this.#isUnderWay = true;
    try {
      for (let hasMore = true; hasMore && !this.#isStopped; ) {
        const step = await queue.endBatches();
        hasMore = step.hasEndedBatches;
        signals.report(step);
      }
    } catch (error) {
      backoff.recordFailure(error);
      held.noteActivity();
    } finally {
      this.#isUnderWay = false;
    }
  }
}
