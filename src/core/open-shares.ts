/** The part of a share that is kept for those that hold less than is free of it. */
export const keptPart = 1 / 4;

interface Owner {
  held: number;
  /** Held by each part of the owner that is counted. */
  parts: Map<string, number>;
}

/**
 * Counts what is open at a time (requests, bytes), by its owner, so that no owner takes all of it. An owner gets more of the last quarter only while it holds
 * less than is free, so that something is left for the next owner. The parts of an owner share what it may have in the same way: its share, or what it has
 * and would get now, while others leave it less.
 */
export class OpenShares {
  readonly #all: number;
  readonly #ofOwner: number;
  readonly #owners = new Map<string, Owner>();
  #open = 0;

  /** `all`: of all owners together. Default: any amount. */
  constructor({ all = Number.POSITIVE_INFINITY, ofOwner }: { all?: number; ofOwner: number }) {
    this.#all = all;
    this.#ofOwner = ofOwner;
  }

  /** Amount that is open, of all owners. */
  get open(): number {
    return this.#open;
  }

  /** Whether so much is free, for whomever. */
  hasFree(amount: number): boolean {
    return amount <= this.#all - this.#open;
  }

  /** How many may be given at once to owners that are not full: of what is kept, half. */
  get room(): number {
    const free = this.#all - this.#open;
    const shared = Math.floor(free - this.#all * keptPart);
    return shared > 0 ? shared : Math.ceil(free / 2);
  }

  /** The owners that get no more now. */
  get full(): string[] {
    return [...this.#owners.keys()].filter((owner) => !this.#hasRoom(owner, 1));
  }

  /** Returns false, and takes nothing, when the owner would have more than it may. `part`: of the owner, such as a source of an organization. */
  take(owner: string, amount = 1, part: string | null = null): boolean {
    if (!this.#hasRoom(owner, amount)) return false;
    const own = this.#owners.get(owner) ?? { held: 0, parts: new Map() };
    const ofPart = part === null ? 0 : (own.parts.get(part) ?? 0);
    if (part !== null && !isAvailable({ all: own.held + Math.max(amount, this.#roomFor(own.held)), open: own.held }, amount, ofPart))
      return false;
    if (own.held === 0) this.#owners.set(owner, own);
    if (part !== null) own.parts.set(part, ofPart + amount);
    own.held += amount;
    this.#open += amount;
    return true;
  }

  /** Counts one that the owner has been given elsewhere, also beyond its share. */
  add(owner: string): void {
    const own = this.#owners.get(owner);
    if (own === undefined) this.#owners.set(owner, { held: 1, parts: new Map() });
    else own.held++;
    this.#open++;
  }

  /** Gives back what was taken or added. */
  giveBack(owner: string, amount = 1, part: string | null = null): void {
    const own = this.#owners.get(owner);
    if (own === undefined) return;
    this.#open -= amount;
    own.held -= amount;
    if (own.held <= 0) return void this.#owners.delete(owner);
    if (part === null) return;
    const ofPart = (own.parts.get(part) ?? 0) - amount;
    if (ofPart > 0) own.parts.set(part, ofPart);
    else own.parts.delete(part);
  }

  /** How many an owner that holds so many would get, one by one. */
  #roomFor(held: number): number {
    const ofShare = this.#ofOwner - held;
    if (this.#all === Number.POSITIVE_INFINITY) return ofShare;
    const free = this.#all - this.#open;
    const open = Math.max(0, Math.ceil(free - this.#all * keptPart));
    const kept = Math.max(0, Math.ceil((free - open - (held + open)) / 2));
    return Math.min(ofShare, open + kept);
  }

  #hasRoom(owner: string, amount: number): boolean {
    const held = this.#owners.get(owner)?.held ?? 0;
    return held + amount <= this.#ofOwner && isAvailable({ all: this.#all, open: this.#open }, amount, held);
  }
}

/** Whether so much is left for one that holds `held` of what is open; see `OpenShares`. */
export function isAvailable({ all, open }: { all: number; open: number }, amount: number, held: number): boolean {
  const free = all - open;
  return amount <= free && (free > all * keptPart || held < free);
}

/** Checks a large amount as if it were taken unit by unit, so that the last quarter limits both in the same way. */
export function isAvailableAtOnce({ all, open }: { all: number; open: number }, amount: number, held: number): boolean {
  return isAvailable({ all, open: open + amount - 1 }, 1, held + amount - 1);
}
