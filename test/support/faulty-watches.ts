import type { Clock } from '../../src/core/clock.ts';
import { PosthornError } from '../../src/core/errors.ts';
import type { Kind } from '../../src/resources/kinds.ts';
import { type CompleteStore, type Version, versionOf, type WatchEvent } from '../../src/store/store.ts';

const latestMs = 3000;

/**
 * A store whose watches break off, come late, repeat their last event, or expire, for as long as there are faults. No state comes back that another
 * has followed: of an API server a watch gets what is newer than where it begins, and nothing else.
 */
export class FaultyWatches {
  isFaulty = false;
  /** How often each fault has happened. */
  readonly faults = { expired: 0, unavailable: 0, repeated: 0, dropped: 0, late: 0 };
  readonly #clock: Clock;
  readonly #random: () => number;
  /** The version from which the last event of each kind comes again. */
  readonly #beforeLast = new Map<Kind, Version>();

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  around(store: CompleteStore): CompleteStore {
    return {
      get: (kind, key) => store.get(kind, key),
      getMetadata: (kind, key) => store.getMetadata(kind, key),
      getSecret: (key) => store.getSecret(key),
      list: async (kind, query) => {
        if (this.#happens('unavailable', 0.1)) throw new PosthornError('UNAVAILABLE', 'no list now');
        // What it shows may be newer than its last event.
        this.#beforeLast.delete(kind);
        return store.list(kind, query);
      },
      watch: (kind, from, signal, query) => this.#watch(store, { kind, from, query }, signal),
      create: (object, options) => store.create(object, options),
      apply: (object, options) => store.apply(object, options),
      applyStatus: (kind, key, status, options) => store.applyStatus(kind, key, status, options),
      delete: (kind, key, precondition) => store.delete(kind, key, precondition),
    };
  }

  async *#watch<K extends Kind>(
    store: CompleteStore,
    { kind, from, query }: { kind: K; from: Version; query: { namespace?: string } | undefined },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<K>> {
    if (this.#happens('expired', 0.15)) throw expired();
    if (this.#happens('unavailable', 0.1)) throw new PosthornError('UNAVAILABLE', 'no watch now');
    const earlier = this.#beforeLast.get(kind);
    const begin = earlier !== undefined && this.#happens('repeated', 0.3) ? earlier : from;
    let last = from;
    // Reading ends the moment that the watch does: an event of it that has not been taken is lost.
    const ended = new AbortController();
    try {
      let isOpen = false;
      for await (const event of store.watch(kind, begin, AbortSignal.any([signal, ended.signal]), query)) {
        if (!isOpen) {
          isOpen = true;
          yield { type: 'bookmark', version: from };
          continue;
        }
        if (this.#happens('dropped', 0.1)) return;
        if (this.#happens('expired', 0.03)) throw expired();
        if (this.#happens('late', 0.2)) await this.#clock.sleep(latestMs * this.#random(), signal);
        if (event.type === 'bookmark') last = event.version;
        else {
          this.#beforeLast.set(kind, last);
          last = versionOf(event.object);
        }
        yield event;
      }
    } finally {
      ended.abort();
    }
  }

  #happens(fault: keyof typeof this.faults, probability: number): boolean {
    if (!this.isFaulty || this.#random() >= probability) return false;
    this.faults[fault]++;
    return true;
  }
}

function expired(): PosthornError {
  return new PosthornError('EXPIRED', 'the version is too old');
}
