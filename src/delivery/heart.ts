import { withJitter } from '../core/backoff.ts';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { DeliveryQueue, Heartbeat } from '../data/delivery-queue.ts';
import type { DeliveryMetrics } from './metrics.ts';
import type { RedisTrouble } from './redis-trouble.ts';

const beatMs = 3000;
const pruneEveryBeats = 20;
const pauseBetweenStepsMs = 10;
const historyShare = 0.6;
const deadLettersShare = 0.7;
/** A beat must not be late for the work between two of them. */
const longestWorkMs = 1000;

export interface HeartOptions {
  queue: DeliveryQueue;
  worker: string;
  slots: number;
  clock: Clock;
  logger: Logger;
  metrics: DeliveryMetrics;
  trouble: RedisTrouble;
  retention: { finishedMs: number; deadLettersMs: number };
  onBeat: (beat: Heartbeat) => void;
}

/** Says every 3 s that the worker lives, puts back what dead ones held, and prunes once a minute. */
export class Heart {
  readonly #options: HeartOptions;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #marker: string | null = null;
  #isMakingRoom = false;
  #lastBeatAtMs: number | null = null;

  constructor(options: HeartOptions) {
    this.#options = options;
  }

  start(): void {
    this.#loop = this.#beat();
  }

  /** Time of the last beat that Redis took; null: none yet. */
  get lastBeatAtMs(): number | null {
    return this.#lastBeatAtMs;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #beat(): Promise<void> {
    const { queue, worker, slots, clock, trouble, onBeat } = this.#options;
    const { signal } = this.#stopping;
    let isPruning = false;
    for (let beats = 0; !signal.aborted; beats++) {
      try {
        const beat = await queue.heartbeat(worker, slots);
        this.#lastBeatAtMs = clock.now();
        this.#compareMarker(beat.marker);
        onBeat(beat);
        if (beat.hasWorkToReclaim) await this.#reclaim();
        if (isPruning || beats % pruneEveryBeats === pruneEveryBeats - 1) isPruning = await this.#prune();
        await this.#makeRoom(beat.memoryShare);
        await clock.sleep(withJitter(beatMs), signal);
      } catch (error) {
        await clock.sleep(trouble.met(error), signal);
      }
    }
  }

  async #reclaim(): Promise<void> {
    const { queue, metrics, logger, clock } = this.#options;
    let total = 0;
    const endMs = clock.now() + longestWorkMs;
    for (let hasMore = true; hasMore && clock.now() < endMs; ) {
      const step = await queue.reclaim();
      total += step.putBack;
      hasMore = step.hasMore;
    }
    metrics.putBack.inc(total);
    if (total > 0) logger.warn({ messages: total }, 'put back what a dead worker held');
  }

  /** Answers whether there is more to prune. */
  async #prune(): Promise<boolean> {
    const { queue, retention, clock } = this.#options;
    const endMs = clock.now() + longestWorkMs;
    while (!this.#stopping.signal.aborted && clock.now() < endMs) {
      if (!(await queue.prune(retention)).hasMore) return false;
      await clock.sleep(pauseBetweenStepsMs, this.#stopping.signal);
    }
    return true;
  }

  /** Above 60 % of the memory limit finished history goes early, the oldest first; above 70 % dead letters go, too. */
  async #makeRoom(memoryShare: number | null): Promise<void> {
    const { queue, retention, clock, metrics, logger } = this.#options;
    metrics.memoryShare.set(memoryShare ?? 0);
    if (memoryShare === null || memoryShare < historyShare) {
      this.#isMakingRoom = false;
      return;
    }
    if (!this.#isMakingRoom) logger.warn({ memoryShare }, 'Redis is getting full: the oldest finished messages are removed early');
    this.#isMakingRoom = true;
    const endMs = clock.now() + longestWorkMs;
    let share: number | null = memoryShare;
    while (share !== null && share >= historyShare && !this.#stopping.signal.aborted && clock.now() < endMs) {
      const step = await queue.prune({ finishedMs: 0, deadLettersMs: share >= deadLettersShare ? 0 : retention.deadLettersMs });
      metrics.prunedEarly.inc(step.removed);
      if (step.removed === 0) return;
      share = step.memoryShare;
      await clock.sleep(pauseBetweenStepsMs, this.#stopping.signal);
    }
  }

  #compareMarker(marker: string): void {
    if (this.#marker !== null && this.#marker !== marker) {
      this.#options.metrics.storeResets.inc();
      this.#options.logger.error({}, 'Redis was emptied: messages that were not delivered before are lost');
    }
    this.#marker = marker;
  }
}
