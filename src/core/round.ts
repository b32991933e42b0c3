import { Fifo } from './fifo.ts';

/** Items of several owners, round-robin: of each owner in its order. An owner with thousands of items does not hold up the others. */
export class Round<T> {
  /** The first owner is next. None is without items. */
  readonly #items = new Map<string, Fifo<T>>();

  get isEmpty(): boolean {
    return this.#items.size === 0;
  }

  countOf(owner: string): number {
    return this.#items.get(owner)?.size ?? 0;
  }

  itemsOf(owner: string): readonly T[] {
    return this.#items.get(owner)?.toArray() ?? [];
  }

  add(owner: string, item: T): void {
    const own = this.#items.get(owner) ?? new Fifo<T>();
    own.push(item);
    this.#items.set(owner, own);
  }

  /**
   * Takes the first item of the owner that is next, which is the last one of the round from then on. Items that are not wanted are dropped, and take no turn
   * of their owner.
   */
  next(isWanted: (item: T) => boolean = () => true): T | undefined {
    for (const [owner, own] of this.#items) {
      let item = own.shift();
      while (item !== undefined && !isWanted(item)) item = own.shift();
      this.#items.delete(owner);
      if (own.size > 0) this.#items.set(owner, own);
      if (item !== undefined) return item;
    }
    return undefined;
  }

  /** The owner, if it has items, is the last one of the round from now on. */
  postpone(owner: string): void {
    const own = this.#items.get(owner);
    if (own === undefined) return;
    this.#items.delete(owner);
    this.#items.set(owner, own);
  }

  /** Takes the first such item of the owner; undefined: there is none. */
  remove(owner: string, isMeant: (item: T) => boolean): T | undefined {
    const own = this.#items.get(owner);
    const item = own?.remove(isMeant);
    if (own?.size === 0) this.#items.delete(owner);
    return item;
  }

  /** Takes all. */
  clear(): T[] {
    const items = [...this.#items.values()].flatMap((own) => own.toArray());
    this.#items.clear();
    return items;
  }
}
