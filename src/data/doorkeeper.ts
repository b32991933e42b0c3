const slots = 8192;
const timesBefore = 2;

/**
 * Lets into a cache what is asked for a third time (as the doorkeeper of TinyLFU does for the second; a message to a target that was never
 * used asks twice). Of very many keys that are each asked for once, as with an event for 100,000 endpoints, none pushes out what is used, and
 * none lives long enough to cost the collection of garbage. Of a fixed size: a slot remembers the hash of the last key that fell into it
 * and how often it was asked for, so some that were seen long ago are let in later, and very few at once.
 */
export class Doorkeeper {
  readonly #hashes = new Int32Array(slots);
  readonly #times = new Uint8Array(slots);

  /** Whether the key was asked for often enough before; from now on it was asked for once more. */
  admits(key: string): boolean {
    const hash = fnv1a(key);
    const slot = (hash ^ (hash >>> 16)) & (slots - 1);
    if (this.#hashes[slot] !== hash) {
      this.#hashes[slot] = hash;
      this.#times[slot] = 0;
    }
    const times = this.#times[slot] ?? 0;
    if (times >= timesBefore) return true;
    this.#times[slot] = times + 1;
    return false;
  }
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5 | 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}
