import { accountOf } from '../../core/account.ts';
import type { SlowAttempts } from '../../data/queue/delivery-queue.ts';

/** The part of all slots that is kept for accounts that hold less than that. */
const keptShare = 1 / 8;

/** Which account holds how many of a worker's slots, in all shards. */
export class SlotShares {
  readonly #slots: number;
  readonly #held = new Map<string, number>();
  readonly #slow = new Map<string, number>();
  #inFlight = 0;
  #slowInFlight = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  begin(attempt: { org: string; isSlow: boolean }): void {
    this.#count(attempt, 1);
  }

  end(attempt: { org: string; isSlow: boolean }): void {
    this.#count(attempt, -1);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get slow(): SlowAttempts {
    return { slots: this.#slots, held: this.#slowInFlight, byAccount: this.#slow };
  }

  /**
   * Whether one more slow attempt of the organization keeps within the shares of `slow-capacity.lua`, probes included. Dequeues of several shards
   * at once each count only what was under way before them.
   */
  hasRoomForSlow(org: string): boolean {
    const limit = Math.max(1, Math.floor(this.#slots / 2));
    const band = Math.floor(limit / 2);
    const own = this.#slow.get(accountOf(org)) ?? 0;
    const ownProbes = Math.max(1, Math.floor(band / 4));
    return this.#slowInFlight < limit + band - Math.min(own, ownProbes) && own < Math.max(1, band) + ownProbes;
  }

  /** Slots that stay free of the accounts with large shares. */
  get kept(): number {
    return Math.floor(this.#slots * keptShare);
  }

  /** The accounts that get none of the slots that are kept: those that hold as many as are kept, or as are `free`. The last one is for an account that holds none. */
  large(free: number): string[] {
    const { kept } = this;
    if (kept === 0) return [];
    const bound = Math.min(kept, Math.max(1, free));
    return [...this.#held].flatMap(([account, held]) => (held >= bound ? [account] : []));
  }

  /** The account that has more than half of the attempts under way that are not slow, which have shares of their own; null: none has. */
  get dominant(): string | null {
    const half = (this.#inFlight - this.#slowInFlight) / 2;
    for (const [account, held] of this.#held) if (held - (this.#slow.get(account) ?? 0) > half) return account;
    return null;
  }

  #count({ org, isSlow }: { org: string; isSlow: boolean }, by: number): void {
    const account = accountOf(org);
    this.#inFlight += by;
    add(this.#held, account, by);
    if (!isSlow) return;
    this.#slowInFlight += by;
    add(this.#slow, account, by);
  }
}

function add(counts: Map<string, number>, account: string, by: number): void {
  const count = (counts.get(account) ?? 0) + by;
  if (count === 0) counts.delete(account);
  else counts.set(account, count);
}
