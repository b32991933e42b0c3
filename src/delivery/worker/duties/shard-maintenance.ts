import { withJitter } from '../../../core/backoff.ts';
import type { ShardState } from '../../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../../data/queue/redis-delivery-queue.ts';
import type { RedisBackoff } from '../../loops/redis-backoff.ts';
import type { ConsumerState } from '../consumer-state.ts';
import type { HeldJobs } from '../held-jobs.ts';
import type { ShardSignals } from '../shard-signals.ts';
import type { TargetConfigSync } from '../target-config-sync.ts';
import type { WorkerContext } from '../worker-context.ts';
import { HistoryRetention } from './history-retention.ts';
import type { JobReclaim } from './job-reclaim.ts';
import { longestWorkMs, pauseBetweenStepsMs } from './work-limits.ts';

const intervalMs = 3000;
/** An idle shard is checked less often, so that many shards cost little. */
const idleIntervalMs = 30_000;
/** Used share of the memory of Redis above which all shards are checked often: producers are refused when it is full. */
const tightMemoryShare = 0.5;
const reviewEveryLooks = 10;

export interface ShardMaintenanceOptions {
  context: WorkerContext;
  queue: RedisDeliveryQueue;
  backoff: RedisBackoff;
  state: ConsumerState;
  held: HeldJobs;
  signals: ShardSignals;
  keeper: Pick<TargetConfigSync, 'review'>;
  jobReclaim: JobReclaim;
}

/** Duty in one shard: checks periodically for what the worker has missed there, and runs the duties that do not wait for an event. */
export class ShardMaintenance {
  readonly #options: ShardMaintenanceOptions;
  readonly #stopping = new AbortController();
  readonly #retention: HistoryRetention;
  #loop: Promise<void> = Promise.resolve();
  #marker: string | null = null;
  #looksWithPaused = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: ShardMaintenanceOptions) {
    this.#options = options;
    this.#retention = new HistoryRetention({ context: options.context, queue: options.queue, signal: this.#stopping.signal });
  }

  start(): void {
    this.#loop = this.#refreshShard();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #refreshShard(): Promise<void> {
    const { context, backoff, held } = this.#options;
    const { clock } = context;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      let waitMs = withJitter(intervalMs);
      try {
        if (this.#retention.isFreeingMemory || held.isActive || clock.now() - this.#lookedAtMs >= idleIntervalMs) await this.#maintain();
        await this.#retention.pruneInTurn();
        if (this.#retention.isBehind) waitMs = pauseBetweenStepsMs;
      } catch (error) {
        waitMs = backoff.recordFailure(error);
      }
      await clock.sleep(waitMs, signal);
    }
  }

  async #maintain(): Promise<void> {
    const { context, queue, jobReclaim } = this.#options;
    const shard = await queue.refreshShard(context.id, context.totalSlots);
    this.#lookedAtMs = context.clock.now();
    this.#compareMarker(shard.marker);
    this.#report(shard);
    if (shard.hasOverdueWork) await jobReclaim.reclaim([]);
    if (shard.hasTallies) await this.#foldTallies();
    if (shard.isSampleDue) await queue.sampleBacklogs();
    await this.#retention.freeMemory(shard.memoryShare);
  }

  #report(shard: ShardState): void {
    const { context, backoff, state, held, signals, keeper } = this.#options;
    if (backoff.recordSuccess() || shard.held > held.size) state.noteLoss();
    if (shard.memoryShare !== null && shard.memoryShare >= tightMemoryShare) context.maintainAllSoon();
    signals.report(shard);
    // Until it has been carried.
    if (shard.hasOutbox) held.noteActivity();
    if (shard.pausedTargets > 0 && this.#looksWithPaused++ % reviewEveryLooks === 0) keeper.review();
  }

  async #foldTallies(): Promise<void> {
    const { queue, context } = this.#options;
    const { clock } = context;
    const endMs = clock.now() + longestWorkMs;
    const { signal } = this.#stopping;
    while (!signal.aborted && (await queue.foldTallies()) && clock.now() < endMs) await clock.sleep(pauseBetweenStepsMs, signal);
  }

  #compareMarker(marker: string): void {
    const { metrics, logger } = this.#options.context;
    if (this.#marker !== null && this.#marker !== marker) {
      metrics.storeResets.inc();
      logger.error({}, 'Redis was emptied; undelivered messages are lost');
    }
    this.#marker = marker;
  }
}
