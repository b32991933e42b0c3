import { withJitter } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { DeliveryQueue, ShardState } from '../../data/queue/delivery-queue.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';
import type { DeliveryMetrics } from '../metrics.ts';

const intervalMs = 3000;
/** A shard in which nothing happens is looked at less often, so that many shards cost little. */
const idleIntervalMs = 30_000;
const pruneIntervalMs = 60_000;
const pauseBetweenStepsMs = 10;
const historyShare = 0.6;
const deadLettersShare = 0.7;
/** The next look must not be late for the work of this one. */
const longestWorkMs = 1000;

export interface ShardMaintenanceOptions {
  queue: DeliveryQueue;
  worker: string;
  clock: Clock;
  logger: Logger;
  metrics: DeliveryMetrics;
  backoff: RedisBackoff;
  retention: { finishedMs: number; deadLettersMs: number };
  totalSlots: () => number;
  /** Whether this worker has had to do with the shard lately. */
  isActive: () => boolean;
  onState: (state: ShardState) => void;
}

/** Periodic duties in one shard: missed work, leases past their deadline, history and pauses past the retention, memory that runs out. */
export class ShardMaintenance {
  readonly #options: ShardMaintenanceOptions;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #marker: string | null = null;
  #isMakingRoom = false;
  /** More comes in than a look has made room for. */
  #isBehind = false;
  #isPruning = false;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #prunedAtMs: number;

  constructor(options: ShardMaintenanceOptions) {
    this.#options = options;
    this.#prunedAtMs = options.clock.now();
  }

  start(): void {
    this.#loop = this.#tend();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #tend(): Promise<void> {
    const { clock, backoff, isActive } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      let waitMs = withJitter(intervalMs);
      try {
        if (this.#isMakingRoom || isActive() || clock.now() - this.#lookedAtMs >= idleIntervalMs) await this.#look();
        if (this.#isPruning || clock.now() - this.#prunedAtMs >= pruneIntervalMs) await this.#prune();
        if (this.#isBehind) waitMs = pauseBetweenStepsMs;
      } catch (error) {
        waitMs = backoff.recordFailure(error);
      }
      await clock.sleep(waitMs, signal);
    }
  }

  async #look(): Promise<void> {
    const { queue, worker, clock, totalSlots, onState } = this.#options;
    const state = await queue.tend(worker, totalSlots());
    this.#lookedAtMs = clock.now();
    this.#compareMarker(state.marker);
    onState(state);
    if (state.hasOverdueWork) await this.reclaim([]);
    if (state.hasTallies) await this.#foldTallies();
    await this.#makeRoom(state.memoryShare);
  }

  /** Puts back what the dead workers held and what is held past its deadline; false: there is more. */
  async reclaim(deadWorkers: readonly string[]): Promise<boolean> {
    const { queue, metrics, logger, clock } = this.#options;
    let total = 0;
    const endMs = clock.now() + longestWorkMs;
    let hasMore = true;
    while (hasMore && clock.now() < endMs) {
      const step = await queue.reclaim(deadWorkers);
      total += step.putBack;
      hasMore = step.hasMore;
    }
    metrics.putBack.inc(total);
    if (total > 0) logger.warn({ messages: total }, 'requeued messages leased by dead workers');
    return !hasMore;
  }

  async #foldTallies(): Promise<void> {
    const { queue, clock } = this.#options;
    const endMs = clock.now() + longestWorkMs;
    const { signal } = this.#stopping;
    while (!signal.aborted && (await queue.foldTallies()) && clock.now() < endMs) await clock.sleep(pauseBetweenStepsMs, signal);
  }

  async #prune(): Promise<void> {
    const { queue, retention, clock, logger } = this.#options;
    const endMs = clock.now() + longestWorkMs;
    this.#isPruning = true;
    let expired = 0;
    while (this.#isPruning && !this.#stopping.signal.aborted && clock.now() < endMs) {
      const step = await queue.prune(retention);
      this.#onLost(step.lost);
      const waits = await queue.expirePaused(retention.finishedMs);
      expired += waits.expired;
      this.#isPruning = step.hasMore || waits.hasMore;
      if (this.#isPruning) await clock.sleep(pauseBetweenStepsMs, this.#stopping.signal);
    }
    this.#prunedAtMs = clock.now();
    if (expired > 0)
      logger.warn({ messages: expired }, 'messages that waited too long for a disabled route or destination became dead letters');
  }

  /**
   * Above 60 % of the memory limit finished history goes early, first that of the account that has most of it, then the oldest; above 70 % dead letters go,
   * too, and what no archive has written yet.
   */
  async #makeRoom(memoryShare: number | null): Promise<void> {
    const { queue, retention, clock, metrics, logger } = this.#options;
    metrics.memoryShare.set(memoryShare ?? 0);
    this.#isBehind = false;
    if (memoryShare === null || memoryShare < historyShare) {
      this.#isMakingRoom = false;
      return;
    }
    if (!this.#isMakingRoom)
      logger.warn({ memoryShare }, 'Redis memory is short; finished messages are removed before their retention ends');
    this.#isMakingRoom = true;
    const endMs = clock.now() + longestWorkMs;
    let share: number | null = memoryShare;
    while (share !== null && share >= historyShare && !this.#stopping.signal.aborted && clock.now() < endMs) {
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
      await clock.sleep(pauseBetweenStepsMs, this.#stopping.signal);
    }
    this.#isBehind = share !== null && share >= historyShare;
  }

  #onLost(messages: number): void {
    if (messages === 0) return;
    this.#options.metrics.archiveLost.inc(messages);
    this.#options.logger.warn({ messages }, 'finished messages were removed before they were archived');
  }

  #compareMarker(marker: string): void {
    if (this.#marker !== null && this.#marker !== marker) {
      this.#options.metrics.storeResets.inc();
      this.#options.logger.error({}, 'Redis was emptied; undelivered messages are lost');
    }
    this.#marker = marker;
  }
}
