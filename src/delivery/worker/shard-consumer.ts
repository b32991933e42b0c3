import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type {
  DeliveryQueue,
  Job,
  SettleAnswer,
  Settlement,
  ShardHints,
  ShardState,
  SlowAttempts,
  Target,
  TurnOrder,
} from '../../data/queue/delivery-queue.ts';
import type { StoredEvent } from '../../data/shard/event-text.ts';
import { type EventTransformer, type Transformed, type TransformingPlan, transformedJob } from '../attempts/transformed-event.ts';
import type { BatchSource } from '../attempts/upload-attempt.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';
import type { DeliveryMetrics } from '../metrics.ts';
import type { EndpointConfigSync } from './endpoint-config-sync.ts';
import { Settler } from './settler.ts';
import { ShardMaintenance } from './shard-maintenance.ts';
import type { TargetConfigSync } from './target-config-sync.ts';

const reviewEveryLooks = 10;
/** What becomes due so close together is moved by one call. */
const gatherDueMs = 10;
/** A shard counts as active for so long after something has happened in it. */
const activeMs = 10_000;

export interface ShardParts {
  shard: number;
  queue: DeliveryQueue;
  keeper: TargetConfigSync;
  webhookKeeper: EndpointConfigSync;
  /** Carries what waits in the shard's outbox to other shards. */
  carryOutbox: () => void;
  /** Lets the alerts of routes be looked at. */
  lookAtAlerts: () => void;
}

export interface ShardConsumerOptions extends ShardParts {
  worker: string;
  clock: Clock;
  logger: Logger;
  metrics: DeliveryMetrics;
  backoff: RedisBackoff;
  retention: { finishedMs: number; deadLettersMs: number };
  transformer: EventTransformer;
  totalSlots: () => number;
  /** Called with what a look at the shard has found. */
  onMemoryShare: (share: number | null) => void;
  /** Called when there may be work to take, or when work has ended. */
  onWork: () => void;
}

/** Consumer of one shard in one worker: dequeues jobs, settles them, and promotes retries that are due. */
export class ShardConsumer {
  readonly shard: number;
  readonly keeper: TargetConfigSync;
  readonly #options: ShardConsumerOptions;
  readonly #backoff: RedisBackoff;
  readonly #settler: Settler;
  readonly #tender: ShardMaintenance;
  readonly #stopping = new AbortController();
  /** Everything held by this worker, from dequeue until its settlement is written. */
  readonly #known = new Map<string, Job>();
  /** The first look sets it: before the worker's first heartbeat nobody would find it dead. */
  #mayHaveWork = false;
  #mustAdopt = false;
  #isTaking = false;
  #isPressing = false;
  #isResting = false;
  #isEndingBatches = false;
  #activeAtMs = Number.NEGATIVE_INFINITY;
  #looks = 0;
  #due: { atMs: number; cancel: () => void } | null = null;

  constructor(options: ShardConsumerOptions) {
    this.#options = options;
    this.shard = options.shard;
    this.keeper = options.keeper;
    const { queue, worker, clock, backoff } = options;
    this.#backoff = backoff;
    this.#settler = new Settler({
      queue,
      worker,
      clock,
      backoff,
      onSettled: (batch, answer) => this.#onSettled(batch, answer),
    });
    this.#tender = new ShardMaintenance({ ...options, isActive: () => this.isActive, onState: (state) => this.#onState(state) });
  }

  /** After the worker's first heartbeat. */
  start(): void {
    this.keeper.start();
    this.#options.webhookKeeper.start();
    this.#tender.start();
  }

  /** The event as the transform of its route or subscription makes it (`EventTransformer`). */
  transformed(job: Job, event: StoredEvent, plan: TransformingPlan): Promise<Transformed> {
    return transformedJob(job, event, plan, this.#options);
  }

  get isActive(): boolean {
    return this.#known.size > 0 || this.#options.clock.now() - this.#activeAtMs < activeMs;
  }

  get holdsWork(): boolean {
    return this.#known.size > 0;
  }

  /** Whether `take` makes sense now. */
  get wantsToTake(): boolean {
    return !this.#isTaking && !this.#isResting && (this.#mayHaveWork || this.#mustAdopt);
  }

  /** Work waits here of an organization that is not the one of which the worker has had the most lately. */
  get isPressing(): boolean {
    return this.#isPressing;
  }

  /** Says that there may be work; `isPressing`: such as is not to wait until it is this shard's turn. */
  wake({ isPressing = false }: { isPressing?: boolean } = {}): void {
    this.#mayHaveWork = true;
    if (isPressing) this.#isPressing = true;
    this.#options.onWork();
  }

  /** Up to `count` jobs that this worker did not know. Never rejects. */
  async take(count: number, slow: SlowAttempts, order: TurnOrder): Promise<Job[]> {
    const { queue, worker, clock } = this.#options;
    const wasPressing = this.#isPressing;
    this.#isTaking = true;
    try {
      if (this.#mustAdopt) {
        const adopted = await queue.adopt(worker, [...this.#known.keys()]);
        this.#mustAdopt = false;
        return this.#unknown(adopted);
      }
      this.#mayHaveWork = false;
      this.#isPressing = false;
      const answer = await queue.dequeue(worker, count, slow, order);
      if (this.#backoff.recordSuccess()) this.#mustAdopt = true;
      // Also when there are none: those of an answer that was lost, after which the client has asked again, are found by the next look.
      this.#activeAtMs = clock.now();
      for (const target of answer.unconfigured) void this.configure(target);
      this.#follow(answer);
      return this.#unknown(answer.jobs);
    } catch (error) {
      this.#mayHaveWork = true;
      if (wasPressing) this.#isPressing = true;
      this.#isResting = true;
      clock.after(this.#backoff.recordFailure(error), () => {
        this.#isResting = false;
        this.#options.onWork();
      });
      return [];
    } finally {
      this.#isTaking = false;
    }
  }

  /** Where attempts read the batches of this shard. */
  get batches(): BatchSource {
    return this.#options;
  }

  settle(settlement: Settlement): void {
    this.#settler.add(settlement);
  }

  async configure(target: Target): Promise<void> {
    try {
      await this.keeper.configure(target);
    } catch (error) {
      // The target wakes by itself and is tried again.
      this.#backoff.recordFailure(error);
    }
  }

  /** Looks at the shard within seconds, although nothing happens in it. */
  lookSoon(): void {
    this.#activeAtMs = this.#options.clock.now();
  }

  /** Rings for somebody else when there is work; rejects when Redis is away. */
  async passBellOn(): Promise<void> {
    this.#follow(await this.#options.queue.promote());
  }

  /** Puts back what dead workers held; false: there is more, or Redis is away. */
  async reclaim(deadWorkers: readonly string[]): Promise<boolean> {
    try {
      return await this.#tender.reclaim(deadWorkers);
    } catch (error) {
      this.#backoff.recordFailure(error);
      return false;
    }
  }

  /** Writes what is settled; gives up when the signal aborts. */
  async stop(giveUp: AbortSignal): Promise<void> {
    this.#stopping.abort();
    this.keeper.stop();
    this.#options.webhookKeeper.stop();
    this.#due?.cancel();
    await this.#settler.drain(giveUp);
    await this.#tender.stop();
  }

  #unknown(jobs: readonly Job[]): Job[] {
    const unknown = jobs.filter((job) => !this.#known.has(job.handle));
    for (const job of unknown) this.#known.set(job.handle, job);
    return unknown;
  }

  #onSettled(batch: readonly Settlement[], answer: SettleAnswer): void {
    for (const [i, { job }] of batch.entries()) {
      this.#known.delete(job.handle);
      if (answer.settled[i] === false) this.#options.metrics.lostSettlements.inc();
    }
    this.#activeAtMs = this.#options.clock.now();
    this.#follow(answer);
  }

  #onState(state: ShardState): void {
    if (this.#backoff.recordSuccess() || state.held > this.#known.size) {
      this.#mustAdopt = true;
      this.#options.onWork();
    }
    this.#options.onMemoryShare(state.memoryShare);
    this.#follow(state);
    if (state.hasOutbox) this.lookSoon();
    if (state.pausedTargets > 0 && this.#looks++ % reviewEveryLooks === 0) this.keeper.review();
  }

  /** Has done what a call at the shard has left to do; `gatherMs`: for so long at least what becomes due is gathered. */
  #follow(hints: ShardHints, gatherMs = gatherDueMs): void {
    if (hints.hasReadyWork) this.wake({ isPressing: hints.hasWorkOfOthers });
    this.#promoteIn(hints.nextDueMs, gatherMs);
    if (hints.hasOutbox) this.#options.carryOutbox();
    if (hints.hasEndedBatches) void this.#endBatches();
    if (hints.hasEnds) this.#options.lookAtAlerts();
  }

  /** In steps, so that others get their turn in Redis in between. What is left when Redis goes away is found by the next look. */
  async #endBatches(): Promise<void> {
    if (this.#isEndingBatches) return;
    this.#isEndingBatches = true;
    try {
      for (let hasMore = true; hasMore && !this.#stopping.signal.aborted; ) {
        const step = await this.#options.queue.endBatches();
        hasMore = step.hasEndedBatches;
        this.#follow(step);
      }
    } catch (error) {
      this.#backoff.recordFailure(error);
      this.lookSoon();
    } finally {
      this.#isEndingBatches = false;
    }
  }

  #promoteIn(ms: number | null, gatherMs: number): void {
    if (ms === null || this.#stopping.signal.aborted) return;
    const { clock } = this.#options;
    const atMs = clock.now() + Math.max(ms, gatherMs);
    if (this.#due !== null && this.#due.atMs <= atMs) return;
    this.#due?.cancel();
    this.#due = { atMs, cancel: clock.after(atMs - clock.now(), () => void this.#promote()) };
  }

  async #promote(): Promise<void> {
    this.#due = null;
    try {
      const hints = await this.#options.queue.promote();
      // 0: more is due than one call moves.
      this.#follow(hints, hints.nextDueMs === 0 ? 0 : gatherDueMs);
    } catch (error) {
      this.#promoteIn(this.#backoff.recordFailure(error), gatherDueMs);
    }
  }
}
