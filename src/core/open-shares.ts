/** Counts what is open at a time (requests, bytes), by its owner, so that no owner takes all of it. */
export class OpenShares {
  readonly #maxPerOwner: number;
  readonly #open = new Map<string, number>();

  constructor(maxPerOwner: number) {
    this.#maxPerOwner = maxPerOwner;
  }

  /** Returns false, and takes nothing, when the owner would have more than it may. */
  take(owner: string, amount = 1): boolean {
    const taken = (this.#open.get(owner) ?? 0) + amount;
    if (taken > this.#maxPerOwner) return false;
    this.#open.set(owner, taken);
    return true;
  }

  /** Gives back what was taken. */
  giveBack(owner: string, amount = 1): void {
    const left = (this.#open.get(owner) ?? 0) - amount;
    if (left <= 0) this.#open.delete(owner);
    else this.#open.set(owner, left);
  }
}
