import { withJitter } from '../core/backoff.ts';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { DeliveryQueue, Heartbeat, Job, Settlement, Target } from '../data/delivery-queue.ts';
import { attemptDelivery } from './attempt.ts';
import type { DeliveryPlan } from './delivery-plan.ts';
import { Heart } from './heart.ts';
import type { DeliveryMetrics } from './metrics.ts';
import { RedisTrouble } from './redis-trouble.ts';
import { Settler } from './settler.ts';
import type { TargetKeeper } from './target-keeper.ts';
import { Wakeup } from './wakeup.ts';

const mostPerDequeue = 64;
/** Below this share of free slots a dequeue waits a moment for more of them: fewer, larger script calls. */
const patientShare = 0.25;
const patienceMs = 1;
const reviewEveryBeats = 10;
/** How long a message whose records cannot be read stays here before it goes back. */
const planRetryMs = 1000;

export interface WorkerOptions {
  queue: DeliveryQueue;
  /** Resolves true when the doorbell rang; rejects when Redis is away. */
  doorbell: { wait(): Promise<boolean>; close(): void };
  keeper: TargetKeeper;
  planOf: (target: Target) => Promise<DeliveryPlan>;
  id: string;
  /** Attempts at the same time. */
  slots: number;
  clock: Clock;
  logger: Logger;
  metrics: DeliveryMetrics;
  userAgent: string;
  retention: { finishedMs: number; deadLettersMs: number };
}

/**
 * Takes messages, delivers them, settles them. Sleeps on the doorbell when there is nothing to do; whatever Redis does, it
 * waits and goes on.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #trouble: RedisTrouble;
  readonly #settler: Settler;
  readonly #heart: Heart;
  readonly #wakeup = new Wakeup();
  readonly #stopping = new AbortController();
  readonly #breakingOff = new AbortController();
  /** Everything held by this worker, from dequeue until its settlement is written. */
  readonly #known = new Map<string, Job>();
  #inFlight = 0;
  /** The first heartbeat sets it: before that nobody would find this worker dead. */
  #mayHaveWork = false;
  #mustAdopt = false;
  #beats = 0;
  #due: { atMs: number; cancel: () => void } | null = null;
  #loops: Promise<void>[] = [];

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { queue, id: worker, clock, logger, metrics, slots, retention } = options;
    const trouble = new RedisTrouble(logger);
    this.#trouble = trouble;
    this.#settler = new Settler({ queue, worker, clock, trouble, onSettled: (batch, answer) => this.#onSettled(batch, answer) });
    this.#heart = new Heart({ queue, worker, slots, clock, logger, metrics, trouble, retention, onBeat: (beat) => this.#onBeat(beat) });
  }

  start(): void {
    this.#heart.start();
    this.#loops = [this.#dequeueLoop(), this.#doorbellLoop()];
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Time at which Redis last took a heartbeat; null: never yet. */
  get lastBeatAtMs(): number | null {
    return this.#heart.lastBeatAtMs;
  }

  /** Takes no more work, lets attempts finish for `graceMs`, and puts back what is not done then. */
  async stop(graceMs: number): Promise<void> {
    const { clock, doorbell, queue, id } = this.#options;
    this.#stopping.abort();
    this.#wakeup.signal();
    doorbell.close();
    this.#due?.cancel();
    await Promise.all(this.#loops);
    const cancelGrace = clock.after(graceMs, () => this.#breakingOff.abort());
    while (this.#inFlight > 0) await this.#wakeup.wait();
    cancelGrace();
    const giveUp = new AbortController();
    const cancelGiveUp = clock.after(5000, () => giveUp.abort());
    await this.#settler.drain(giveUp.signal);
    cancelGiveUp();
    await this.#heart.stop();
    // Without Redis the worker is found dead after its lifetime.
    await queue.heartbeat(id, 0).catch(() => undefined);
  }

  async #dequeueLoop(): Promise<void> {
    const { queue, clock, id, slots } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const isIdle = !this.#mayHaveWork && !this.#mustAdopt;
      if (isIdle || this.#inFlight >= slots) {
        await this.#wakeup.wait();
        continue;
      }
      if (slots - this.#inFlight < slots * patientShare) await clock.sleep(patienceMs, signal);
      try {
        if (this.#mustAdopt) {
          const adopted = await queue.adopt(id, [...this.#known.keys()]);
          this.#mustAdopt = false;
          for (const job of adopted) this.#begin(job);
          continue;
        }
        this.#mayHaveWork = false;
        const { jobs, unconfigured, hasMore, nextDueMs } = await queue.dequeue(id, Math.min(mostPerDequeue, slots - this.#inFlight));
        if (this.#trouble.over()) this.#mustAdopt = true;
        if (hasMore) this.#mayHaveWork = true;
        this.#promoteIn(nextDueMs);
        for (const job of jobs) this.#begin(job);
        for (const target of unconfigured) void this.#configure(target);
      } catch (error) {
        this.#mayHaveWork = true;
        await clock.sleep(this.#trouble.met(error), signal);
      }
    }
  }

  async #doorbellLoop(): Promise<void> {
    const { doorbell, queue, clock, slots } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const rang = await doorbell.wait();
        if (!rang) continue;
        this.wake();
        // A full worker passes the bell on: promote rings when there is work.
        if (this.#inFlight >= slots) {
          await queue.promote();
          while (this.#inFlight >= slots && !signal.aborted) await clock.sleep(20, signal);
        }
      } catch (error) {
        if (!signal.aborted) await clock.sleep(this.#trouble.met(error), signal);
      }
    }
  }

  /** Says that there may be work. */
  wake(): void {
    this.#mayHaveWork = true;
    this.#wakeup.signal();
  }

  #begin(job: Job): void {
    if (this.#known.has(job.handle)) return;
    this.#known.set(job.handle, job);
    this.#inFlight++;
    void this.#deliver(job)
      .catch(async (error: unknown): Promise<Settlement> => {
        this.#options.logger.debug(
          { reason: error instanceof Error ? error.message : String(error), messageId: job.messageId },
          'an attempt could not be made; the message goes back',
        );
        await this.#options.clock.sleep(withJitter(planRetryMs), this.#stopping.signal);
        return { job, outcome: { type: 'back' }, maxAttempts: null };
      })
      .then((settlement) => {
        this.#inFlight--;
        this.#options.metrics.outcomes.inc({ outcome: settlement.outcome.type });
        this.#settler.add(settlement);
        this.#wakeup.signal();
      });
  }

  async #deliver(job: Job): Promise<Settlement> {
    const { planOf, keeper, clock, metrics, userAgent } = this.#options;
    const plan = await planOf(job.target);
    switch (plan.state) {
      case 'ready':
        if (plan.setting.revision !== job.target.revision) void this.#configure(job.target);
        return await attemptDelivery(job, plan, { clock, metrics, userAgent, signal: this.#breakingOff.signal });
      case 'paused':
        // First the pause, or the message would come straight back.
        await keeper.configure(job.target);
        return { job, outcome: { type: 'back' }, maxAttempts: null };
      case 'impossible':
        if (plan.setting?.revision !== job.target.revision) void this.#configure(job.target);
        return { job, outcome: { type: 'dead', attempt: null, reason: plan.reason }, maxAttempts: null };
      default:
        return plan satisfies never;
    }
  }

  async #configure(target: Target): Promise<void> {
    try {
      await this.#options.keeper.configure(target);
    } catch (error) {
      // The target wakes by itself and is tried again.
      this.#trouble.met(error);
    }
  }

  #onSettled(batch: readonly Settlement[], answer: { settled: boolean[]; hasMore: boolean; nextDueMs: number | null }): void {
    for (const [i, { job }] of batch.entries()) {
      this.#known.delete(job.handle);
      if (answer.settled[i] === false) this.#options.metrics.lostSettlements.inc();
    }
    this.#promoteIn(answer.nextDueMs);
    if (answer.hasMore) this.wake();
  }

  #onBeat(beat: Heartbeat): void {
    if (this.#trouble.over() || beat.held > this.#known.size) {
      this.#mustAdopt = true;
      this.#wakeup.signal();
    }
    if (beat.hasReadyWork) this.wake();
    if (beat.pausedTargets > 0 && this.#beats++ % reviewEveryBeats === 0) this.#options.keeper.review();
    this.#promoteIn(beat.nextDueMs);
  }

  #promoteIn(ms: number | null): void {
    if (ms === null || this.#stopping.signal.aborted) return;
    const { clock } = this.#options;
    const atMs = clock.now() + ms;
    if (this.#due !== null && this.#due.atMs <= atMs) return;
    this.#due?.cancel();
    this.#due = { atMs, cancel: clock.after(ms, () => void this.#promote()) };
  }

  async #promote(): Promise<void> {
    this.#due = null;
    try {
      const { hasMore, nextDueMs } = await this.#options.queue.promote();
      if (hasMore) this.wake();
      this.#promoteIn(nextDueMs);
    } catch (error) {
      this.#promoteIn(this.#trouble.met(error));
    }
  }
}
