import type { RedisDeliveryQueue } from '../../../data/queue/redis-delivery-queue.ts';
import type { WorkerContext } from '../worker-context.ts';
import { longestWorkMs } from './work-limits.ts';

export interface JobReclaimOptions {
  context: WorkerContext;
  queue: Pick<RedisDeliveryQueue, 'reclaim'>;
}

/** Duty in one shard: requeues abandoned jobs. */
export class JobReclaim {
  readonly #options: JobReclaimOptions;

  constructor(options: JobReclaimOptions) {
    this.#options = options;
  }

  /** Requeues leases of dead workers and leases past their deadline; false: there is more. Rejects when Redis is down. */
  async reclaim(deadWorkers: readonly string[]): Promise<boolean> {
    const { queue, context } = this.#options;
    const { metrics, logger, clock } = context;
    let total = 0;
    const endMs = clock.now() + longestWorkMs;
    let hasMore = true;
    while (hasMore && clock.now() < endMs) {
      const step = await queue.reclaim(deadWorkers);
      total += step.requeued;
      hasMore = step.hasMore;
    }
    metrics.requeued.inc(total);
    if (total > 0) logger.warn({ messages: total }, 'requeued messages leased by dead workers');
    return !hasMore;
  }
}
