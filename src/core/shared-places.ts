import { keptPart } from './open-shares.ts';

/**
 * Places that owners share, of which one may take several at once. Of the last quarter an owner gets places only while it has no more of all afterwards than
 * are left of that quarter, so that something is left for the next owner, and the last place is for one that has none.
 */
export class SharedPlaces {
  /** All but the last quarter. */
  readonly #open: number;
  readonly #kept: number;
  readonly #least: number;
  readonly #held = new Map<string, number>();
  #takenOpen = 0;
  #takenKept = 0;

  /** `least`: nobody takes fewer at once. */
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
   * How many of the places are of the last quarter, when the owner may have them; null: it may not. `onlyQuarter`: the others are kept for somebody else. An
   * owner that is null is not counted, and leaves nothing.
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
