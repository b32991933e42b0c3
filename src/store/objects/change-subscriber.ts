import type { PosthornError } from '../../core/errors.ts';
import type { Kind, ObjectOf } from '../../resources/kinds.ts';
import type { WatchEvent } from '../store.ts';
import { expired, type Revision, toVersion } from './store-version.ts';

/** One entry of the log of changes. */
export interface Change {
  revision: number;
  kind: Kind;
  namespace: string | undefined;
  type: 'added' | 'modified' | 'deleted';
  /** The object as it was after the change, with its version; Secrets without their data. */
  object(): ObjectOf<Kind>;
}

/** Changes of other kinds after which a watcher gets a bookmark, so that its version does not fall out of the log. */
const bookmarkEvery = 500;
const maxWaiting = 10_000;

/**
 * The changes for one watcher, waiting to be read. A change is offered at most once, in order; one that
 * was offered already is passed over. A watcher that is too slow ends EXPIRED.
 */
export class ChangeSubscriber<K extends Kind> {
  readonly #kind: K;
  readonly #namespace: string | undefined;
  readonly #marker: string;
  readonly #waiting: WatchEvent<K>[] = [];
  #position: number;
  #told: number;
  #wake: (() => void) | null = null;
  #end: { error: unknown } | null = null;

  constructor(kind: K, namespace: string | undefined, from: Revision) {
    this.#kind = kind;
    this.#namespace = namespace;
    this.#marker = from.marker;
    this.#position = from.revision;
    this.#told = from.revision;
    this.#waiting.push({ type: 'bookmark', version: toVersion(from) });
  }

  /** Revision of the last change offered. */
  get position(): number {
    return this.#position;
  }

  offer(change: Change): void {
    if (change.revision <= this.#position || this.#end !== null) return;
    if (change.revision !== this.#position + 1) {
      this.end(expired('the version'));
      return;
    }
    this.#position = change.revision;
    if (change.kind === this.#kind && (this.#namespace === undefined || change.namespace === this.#namespace)) {
      this.#push({ type: change.type, object: change.object() as ObjectOf<K> });
    } else if (change.revision - this.#told >= bookmarkEvery) {
      this.#push({ type: 'bookmark', version: toVersion({ revision: change.revision, marker: this.#marker }) });
    }
  }

  /** Ends the watch, with an error unless it is undefined; what waits is still read. */
  end(error?: PosthornError): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *events(signal: AbortSignal): AsyncGenerator<WatchEvent<K>> {
    const abort = (): void => this.end();
    signal.addEventListener('abort', abort, { once: true });
    try {
      while (!signal.aborted) {
        const batch = this.#waiting.splice(0);
        for (const event of batch) yield event;
        if (batch.length > 0) continue;
        if (this.#end !== null) break;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = null;
      }
      if (!signal.aborted && this.#end?.error !== undefined) throw this.#end.error;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  #push(event: WatchEvent<K>): void {
    this.#told = this.#position;
    if (this.#waiting.length >= maxWaiting) {
      this.end(expired('the reader is too slow: its version'));
      return;
    }
    this.#waiting.push(event);
    this.#wake?.();
  }
}
