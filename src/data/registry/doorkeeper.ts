const buckets = 16_384;
const keysPerBucket = 4;
const timesBefore = 2;

/**
 * Admits to a cache what is requested for a third time (as the doorkeeper of TinyLFU does for the second; a message to a target that was never
 * used requests it twice). Of very many keys that are each requested once, as with an event for 100,000 endpoints, next to none evicts what is
 * used or lives long enough to cost the collection of garbage. Of a fixed size (it remembers some 65,000 keys): a bucket holds the hashes of the
 * last four keys that fell into it, and their request counts.
 */
export class Doorkeeper {
  readonly #hashes = new Int32Array(buckets * keysPerBucket);
  readonly #times = new Uint8Array(buckets * keysPerBucket);
  readonly #oldest = new Uint8Array(buckets);

  /** Whether the key was requested often enough before; counts this request. */
  admits(key: string): boolean {
    const hash = fnv1a(key);
    const place = this.#placeOf(hash);
    const times = this.#times[place] ?? 0;
    if (times >= timesBefore) return true;
    this.#times[place] = times + 1;
    return false;
  }

  #placeOf(hash: number): number {
    const bucket = (hash ^ (hash >>> 16)) & (buckets - 1);
    const first = bucket * keysPerBucket;
    for (let place = first; place < first + keysPerBucket; place++) if (this.#hashes[place] === hash) return place;
    const oldest = this.#oldest[bucket] ?? 0;
    this.#oldest[bucket] = (oldest + 1) % keysPerBucket;
    this.#hashes[first + oldest] = hash;
    this.#times[first + oldest] = 0;
    return first + oldest;
  }
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5 | 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}
