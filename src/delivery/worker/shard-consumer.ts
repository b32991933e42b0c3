import type { Job, SettleAnswer, Settlement, ShardHints, SlowAttempts, Target, TurnOrder } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { StoredEvent } from '../../data/shard/event-text.ts';
import { type EventTransformer, type Transformed, type TransformingPlan, transformedJob } from '../attempts/transformed-event.ts';
import type { BatchSource } from '../attempts/upload-attempt.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';
import { type ConsumerMode, ConsumerState } from './consumer-state.ts';
import { BatchEnding } from './duties/batch-ending.ts';
import { DuePromotion } from './duties/due-promotion.ts';
import { JobReclaim } from './duties/job-reclaim.ts';
import type { OutboxTransfer } from './duties/outbox-transfer.ts';
import { ShardMaintenance } from './duties/shard-maintenance.ts';
import type { EndpointConfigSync } from './endpoint-config-sync.ts';
import { HeldJobs } from './held-jobs.ts';
import { Settler } from './settler.ts';
import type { ShardSignals } from './shard-signals.ts';
import type { TargetConfigSync } from './target-config-sync.ts';
import type { WorkerContext } from './worker-context.ts';

export interface ShardConsumerOptions {
  context: WorkerContext;
  shard: number;
  queue: RedisDeliveryQueue;
  transformer: EventTransformer;
  /** Hints of other parts about the shard; the consumer follows them. */
  signals: ShardSignals;
  keeper: TargetConfigSync;
  webhookKeeper: EndpointConfigSync;
  outboxTransfer: OutboxTransfer;
  /** Triggers the check of the alerts of routes. */
  reviewAlerts: () => void;
}

/**
 * Consumer of one shard in one worker: dequeues jobs, settles them, and has done what else its shard reports (`ShardHints`), each by the duty for it.
 *
 * What it may do is decided by its mode: `starting` → `idle` ⇄ `ready` → `dequeuing`, `recovering` → `adopting`, `backing-off` after a call that
 * failed, and `stopped`. `ConsumerState` documents each and the transitions between them, and refuses every other transition. The events come from here:
 * `start` and `stop` from the methods of these names; `noteWork` from `wake` and from hints of ready work; `noteLoss` when Redis answers again after an outage,
 * and when Redis reports more leases of the worker than it lists; `beginTake`, `endTake` and `failTake` from `take`; `resume` from the end of the back-off.
 */
export class ShardConsumer {
  readonly shard: number;
  readonly keeper: TargetConfigSync;
  /** Where attempts read the batches of this shard. */
  readonly batches: BatchSource;
  readonly #options: ShardConsumerOptions;
  readonly #backoff: RedisBackoff;
  readonly #state: ConsumerState;
  readonly #held: HeldJobs;
  readonly #settler: Settler;
  readonly #duePromotion: DuePromotion;
  readonly #batchEnding: BatchEnding;
  readonly #jobReclaim: JobReclaim;
  readonly #maintenance: ShardMaintenance;
  #cancelResume: (() => void) | null = null;

  constructor(options: ShardConsumerOptions) {
    const { context, queue, keeper, signals, transformer } = options;
    const { id: worker, clock } = context;
    this.#options = options;
    this.shard = options.shard;
    this.keeper = keeper;
    this.batches = { worker, queue, transformer };
    const backoff = context.backoffs.watch();
    const state = new ConsumerState(context.wakeup);
    const held = new HeldJobs(context);
    this.#backoff = backoff;
    this.#state = state;
    this.#held = held;
    this.#duePromotion = new DuePromotion({ queue, clock, backoff, signals });
    this.#batchEnding = new BatchEnding({ queue, backoff, held, signals });
    this.#jobReclaim = new JobReclaim({ context, queue });
    this.#maintenance = new ShardMaintenance({ context, queue, backoff, state, held, signals, keeper, jobReclaim: this.#jobReclaim });
    this.#settler = new Settler({ queue, worker, clock, backoff, onSettled: (batch, answer) => this.#onSettled(batch, answer) });
    signals.follow((hints) => this.#follow(hints));
  }

  /** After the worker's first heartbeat, which may come when the worker is stopped already. */
  start(): void {
    if (this.#state.mode === 'stopped') return;
    this.#state.start();
    this.keeper.start();
    this.#options.webhookKeeper.start();
    this.#maintenance.start();
  }

  /** The event as the transform of its route or subscription makes it (`EventTransformer`). */
  transformed(job: Job, event: StoredEvent, plan: TransformingPlan): Promise<Transformed> {
    return transformedJob(job, event, plan, this.#options);
  }

  get mode(): ConsumerMode {
    return this.#state.mode;
  }

  get holdsWork(): boolean {
    return this.#held.size > 0;
  }

  /** Whether `take` makes sense now. */
  get wantsToTake(): boolean {
    return this.#state.wantsToTake;
  }

  /** Work of a non-dominant organization waits here. */
  get isPressing(): boolean {
    return this.#state.isPressing;
  }

  /** Signals that there may be work; `isPressing`: work that must not wait for this shard's next poll. */
  wake(work: { isPressing?: boolean } = {}): void {
    this.#state.noteWork(work);
  }

  /** Takes up to `count` jobs that this worker did not list. Called only while `wantsToTake`, and then never rejects. */
  async take(count: number, slow: SlowAttempts, order: TurnOrder): Promise<Job[]> {
    const step = this.#state.beginTake();
    try {
      const jobs = step === 'adopting' ? await this.#adopt() : await this.#dequeue(count, slow, order);
      this.#state.endTake();
      return jobs;
    } catch (error) {
      this.#state.failTake();
      this.#cancelResume = this.#options.context.clock.after(this.#backoff.recordFailure(error), () => this.#state.resume());
      return [];
    }
  }

  async #adopt(): Promise<Job[]> {
    const { queue, context } = this.#options;
    return this.#held.add(await queue.adopt(context.id, this.#held.handles));
  }

  async #dequeue(count: number, slow: SlowAttempts, order: TurnOrder): Promise<Job[]> {
    const { queue, context } = this.#options;
    const answer = await queue.dequeue(context.id, count, slow, order);
    if (this.#backoff.recordSuccess()) this.#state.noteLoss();
    // Also when there are none: those of a lost reply, after which the client has sent the call again, are found by the next check.
    this.#held.noteActivity();
    for (const target of answer.unconfigured) void this.configure(target);
    this.#follow(answer);
    return this.#held.add(answer.jobs);
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

  /** Wakes another worker when there is work; rejects when Redis is down. */
  async passBellOn(): Promise<void> {
    await this.#duePromotion.promote();
  }

  /** Requeues leases of dead workers; false: there is more or no Redis. */
  async reclaim(deadWorkers: readonly string[]): Promise<boolean> {
    try {
      return await this.#jobReclaim.reclaim(deadWorkers);
    } catch (error) {
      this.#backoff.recordFailure(error);
      return false;
    }
  }

  /** Writes what is settled; gives up when the signal aborts. Called when no take is under way. */
  async stop(giveUp: AbortSignal): Promise<void> {
    this.#cancelResume?.();
    this.#state.stop();
    this.keeper.stop();
    this.#options.webhookKeeper.stop();
    this.#duePromotion.stop();
    this.#batchEnding.stop();
    await this.#settler.drain(giveUp);
    await this.#maintenance.stop();
  }

  #onSettled(batch: readonly Settlement[], answer: SettleAnswer): void {
    for (const [i, { job }] of batch.entries()) {
      this.#held.delete(job);
      if (answer.settled[i] === false) this.#options.context.metrics.lostSettlements.inc();
    }
    this.#held.noteActivity();
    this.#follow(answer);
  }

  /** Has done what is left to do in the shard. */
  #follow(hints: ShardHints): void {
    if (hints.hasReadyWork) this.#state.noteWork({ isPressing: hints.hasWorkOfOthers });
    this.#duePromotion.dueIn(hints.nextDueMs);
    if (hints.hasOutbox) this.#options.outboxTransfer.begin();
    if (hints.hasEndedBatches) this.#batchEnding.begin();
    if (hints.hasEnds) this.#options.reviewAlerts();
  }
}
