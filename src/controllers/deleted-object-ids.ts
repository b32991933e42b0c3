import type { PosthornKind } from '../resources/kinds.ts';
import { formatKey } from '../runtime/object-key.ts';
import type { CacheChange } from '../store/cache.ts';
import type { Key } from '../store/store.ts';
import { idOf } from './held-ids.ts';

/**
 * API ids of objects that are gone, by the name they had, until their records are retracted. What a crash makes it forget, the
 * sweep finds.
 */
export class DeletedObjectIds<K extends PosthornKind> {
  readonly #kind: K;
  readonly #ids = new Map<string, Set<string>>();

  constructor(kind: K) {
    this.#kind = kind;
  }

  /** Records an id that the change leaves without its object. */
  note(key: Key, { before, after }: CacheChange<K>): void {
    if (before === undefined) return;
    const id = idOf(this.#kind, before);
    if (after !== undefined && idOf(this.#kind, after) === id) return;
    const text = formatKey(key);
    const ids = this.#ids.get(text) ?? new Set();
    this.#ids.set(text, ids.add(id));
  }

  of(key: Key): string[] {
    return [...(this.#ids.get(formatKey(key)) ?? [])];
  }

  forget(key: Key, id: string): void {
    const text = formatKey(key);
    const ids = this.#ids.get(text);
    ids?.delete(id);
    if (ids?.size === 0) this.#ids.delete(text);
  }
}
