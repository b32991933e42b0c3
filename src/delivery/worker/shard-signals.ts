import type { ShardHints } from '../../data/queue/delivery-queue.ts';

const workAlone: ShardHints = {
  hasReadyWork: true,
  hasWorkOfOthers: false,
  nextDueMs: null,
  hasOutbox: false,
  hasEndedBatches: false,
  hasEnds: false,
};

/**
 * Where the parts of a worker that use a shard report what is left to do there. It is made before them; the shard's consumer, which is made of them,
 * follows what they report.
 */
export class ShardSignals {
  #follow: (hints: ShardHints) => void = () => {};

  /** There is one follower. */
  follow(follow: (hints: ShardHints) => void): void {
    this.#follow = follow;
  }

  report(hints: ShardHints): void {
    this.#follow(hints);
  }

  /** Targets may have become servable. */
  reportWork(): void {
    this.#follow(workAlone);
  }
}
