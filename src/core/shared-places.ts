import { keptPart } from './open-shares.ts';

/**
 * Places shared by owners, which may take several at once. The last quarter is reserved: an owner takes places of it only if it then holds no more places
 * than the quarter has left. So each next owner finds some, and the last place is for an owner without any.
 */
export class SharedPlaces {
  /** All but the last quarter. */
  readonly #open: number;
  readonly #kept: number;
  readonly #least: number;
  readonly #held = new Map<string, number>();
  #takenOpen = 0;
  #takenKept = 0;

  /** `least`: the smallest number that is taken at once. */
  constructor(places: number, least: number) {
    this.#kept = Math.min(places, Math.max(1, Math.floor((places * keptPart) / least)) * least);
    this.#open = places - this.#kept;
    this.#least = least;
  }

  get isUnused(): boolean {
    return this.#takenOpen + this.#takenKept === 0;
  }

  heldBy(owner: string | null): number {
    return owner === null ? 0 : (this.#held.get(owner) ?? 0);
  }

  /**
   * Returns how many of the places come from the last quarter; null: the owner may not take them. `onlyQuarter`: all other places are reserved for another
   * owner. An owner of null is not counted, and takes places of the quarter without a limit.
   */
  ofQuarter(owner: string | null, places: number, { onlyQuarter = false } = {}): number | null {
    const fromKept = onlyQuarter ? places : Math.max(0, places - (this.#open - this.#takenOpen));
    if (fromKept === 0) return 0;
    const left = this.#kept - this.#takenKept - fromKept;
    if (left < 0) return null;
    return owner === null || this.heldBy(owner) + places <= left + this.#least ? fromKept : null;
  }

  /** `ofQuarter`: so many of them are of the last quarter. */
  take(owner: string | null, places: number, ofQuarter: number): void {
    this.#change(owner, places, ofQuarter);
  }

  giveBack(owner: string | null, places: number, ofQuarter: number): void {
    this.#change(owner, -places, -ofQuarter);
  }

  #change(owner: string | null, places: number, ofQuarter: number): void {
    this.#takenOpen += places - ofQuarter;
    this.#takenKept += ofQuarter;
    if (owner === null) return;
    const held = this.heldBy(owner) + places;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
  }
}
