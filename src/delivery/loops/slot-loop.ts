import type { Clock } from '../../core/clock.ts';
import { OpenShares } from '../../core/open-shares.ts';
import type { RedisBackoff } from './redis-backoff.ts';
import { Wakeup } from './wakeup.ts';

/** Poll interval of a worker that does not listen on the doorbell, because some organizations get no more slots there. */
const lookMs = 250;

export interface SlotLoopOptions<Item extends { org: string }> {
  slots: number;
  /** Share of an organization in the slots. One take may exceed it. */
  slotsOfOrganization: number;
  /**
   * `wait` resolves when another process rings, or after the silence timeout. It rejects once the bell is closed. `ring` wakes another worker, also when the
   * bell is closed.
   */
  bell: { wait(): Promise<void>; ring(): Promise<void>; close(): void };
  /** Takes up to `room` items of organizations that are not `full`. A call that repeats a `token` after an error returns the same items. */
  take(token: string, room: number, full: readonly string[]): Promise<{ items: readonly Item[]; hasMore: boolean }>;
  /** `signal` aborts when the worker stops waiting for it. Never rejects. */
  run(item: Item, signal: AbortSignal): Promise<void>;
  /** Makes the tokens of this loop its own. */
  worker: string;
  clock: Clock;
  backoff: RedisBackoff;
}

/**
 * Runs items of work in slots that organizations share (`OpenShares`), and waits on a doorbell. A worker that is full, or that serves only some organizations,
 * leaves the doorbell to other workers and polls until it serves all again.
 */
export class SlotLoop<Item extends { org: string }> {
  readonly #options: SlotLoopOptions<Item>;
  readonly #shares: OpenShares;
  readonly #wakeup = new Wakeup();
  readonly #stopping = new AbortController();
  readonly #aborting = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(options: SlotLoopOptions<Item>) {
    this.#options = options;
    this.#shares = new OpenShares({ all: options.slots, ofOwner: options.slotsOfOrganization });
  }

  start(): void {
    this.#loop = this.#take();
  }

  /** Takes no more items; those under way are aborted after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    this.#options.bell.close();
    this.#wakeup.signal();
    await this.#loop;
    const cancelGrace = this.#options.clock.after(graceMs, () => this.#aborting.abort());
    while (this.#shares.open > 0) await this.#wakeup.wait();
    cancelGrace();
  }

  async #take(): Promise<void> {
    const { slots, take, worker, clock, backoff } = this.#options;
    const { signal } = this.#stopping;
    let mayHaveMore = true;
    for (let takes = 1; !signal.aborted; ) {
      try {
        if (this.#shares.open >= slots) {
          await this.#wakeup.wait();
          continue;
        }
        if (!mayHaveMore) await (this.#shares.full.length === 0 ? this.#listen() : this.#rest());
        if (signal.aborted) return;
        const { full, room } = this.#shares;
        const { items, hasMore } = await take(`${worker}.${takes}`, room, full);
        backoff.recordSuccess();
        takes++;
        // Waiting items may be of organizations that get no more here.
        mayHaveMore = hasMore && (items.length > 0 || full.length === 0);
        for (const item of items) this.#begin(item);
      } catch (error) {
        if (signal.aborted) return;
        mayHaveMore = true;
        await clock.sleep(backoff.recordFailure(error), signal);
      }
    }
  }

  /** A loop that stops may have taken a ring, also with a reply that it did not get: another worker gets one for it. */
  async #listen(): Promise<void> {
    const { bell } = this.#options;
    try {
      await bell.wait();
    } finally {
      if (this.#stopping.signal.aborted) await bell.ring().catch(() => undefined);
    }
  }

  async #rest(): Promise<void> {
    const cancel = this.#options.clock.after(lookMs, () => this.#wakeup.signal());
    await this.#wakeup.wait();
    cancel();
  }

  #begin(item: Item): void {
    this.#shares.add(item.org);
    void this.#options.run(item, this.#aborting.signal).finally(() => {
      this.#shares.giveBack(item.org);
      this.#wakeup.signal();
    });
  }
}
