import type { RedisDeliveryQueue } from '../../../data/queue/redis-delivery-queue.ts';
import type { WorkerContext } from '../worker-context.ts';
import { longestWorkMs, pauseBetweenStepsMs } from './work-limits.ts';

const intervalMs = 60_000;
const historyShare = 0.6;
const deadLettersShare = 0.7;

export interface HistoryRetentionOptions {
  context: WorkerContext;
  queue: Pick<RedisDeliveryQueue, 'prune' | 'expirePaused'>;
  /** Ends the work at once. */
  signal: AbortSignal;
}

/** Duty in one shard: removes history and pauses past the retention, and history before that while memory is short. */
export class HistoryRetention {
  readonly #options: HistoryRetentionOptions;
  #isFreeingMemory = false;
  #isBehind = false;
  #isPruning = false;
  #prunedAtMs: number;

  constructor(options: HistoryRetentionOptions) {
    this.#options = options;
    this.#prunedAtMs = options.context.clock.now();
  }

  /** Memory is short. */
  get isFreeingMemory(): boolean {
    return this.#isFreeingMemory;
  }

  /** More arrives than a pass can remove. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Removes what is past the retention, once a minute. */
  async pruneInTurn(): Promise<void> {
    if (this.#isPruning || this.#options.context.clock.now() - this.#prunedAtMs >= intervalMs) await this.#prune();
  }

  /**
   * Above 60 % of the memory limit finished history goes early, first that of the account that has most of it, then the oldest; above 70 % dead letters go,
   * too, and what no archive has written yet.
   */
  async freeMemory(memoryShare: number | null): Promise<void> {
    const { queue, context, signal } = this.#options;
    const { retention, clock, metrics, logger } = context;
    metrics.memoryShare.set(memoryShare ?? 0);
    this.#isBehind = false;
    if (memoryShare === null || memoryShare < historyShare) {
      this.#isFreeingMemory = false;
      return;
    }
    if (!this.#isFreeingMemory)
      logger.warn({ memoryShare }, 'Redis memory is short; finished messages are removed before their retention ends');
    this.#isFreeingMemory = true;
    const endMs = clock.now() + longestWorkMs;
    let share: number | null = memoryShare;
    while (share !== null && share >= historyShare && !signal.aborted && clock.now() < endMs) {
      const isScarce = share >= deadLettersShare;
      const step = await queue.prune({
        finishedMs: 0,
        deadLettersMs: isScarce ? 0 : retention.deadLettersMs,
        unwritten: isScarce ? 'goes' : 'goes where the archive fails',
        largestFirst: true,
      });
      metrics.prunedEarly.inc(step.removed);
      this.#onLost(step.lost);
      if (step.removed === 0 && !step.hasMore) return;
      share = step.memoryShare;
      await clock.sleep(pauseBetweenStepsMs, signal);
    }
    this.#isBehind = share !== null && share >= historyShare;
  }

  async #prune(): Promise<void> {
    const { queue, context, signal } = this.#options;
    const { retention, clock, logger } = context;
    const endMs = clock.now() + longestWorkMs;
    this.#isPruning = true;
    let expired = 0;
    while (this.#isPruning && !signal.aborted && clock.now() < endMs) {
      const step = await queue.prune(retention);
      this.#onLost(step.lost);
      const waits = await queue.expirePaused(retention.finishedMs);
      expired += waits.expired;
      this.#isPruning = step.hasMore || waits.hasMore;
      if (this.#isPruning) await clock.sleep(pauseBetweenStepsMs, signal);
    }
    this.#prunedAtMs = clock.now();
    if (expired > 0)
      logger.warn(
        { messages: expired },
        'messages that waited too long for a disabled route, destination or webhook endpoint became dead letters',
      );
  }

  #onLost(messages: number): void {
    if (messages === 0) return;
    const { metrics, logger } = this.#options.context;
    metrics.archiveLost.inc(messages);
    logger.warn({ messages }, 'finished messages were removed before they were archived');
  }
}
