/** Items of several owners, round-robin: of each owner in its order. */
export class Round<T> {
  /** The first owner is next. None is without items. */
  readonly #items = new Map<string, T[]>();

  get isEmpty(): boolean {
    return this.#items.size === 0;
  }

  countOf(owner: string): number {
    return this.itemsOf(owner).length;
  }

  itemsOf(owner: string): readonly T[] {
    return this.#items.get(owner) ?? [];
  }

  add(owner: string, item: T): void {
    const own = this.#items.get(owner);
    if (own === undefined) this.#items.set(owner, [item]);
    else own.push(item);
  }

  /** Takes the first item of the owner that is next, which is the last one of the round from then on. */
  next(): T | undefined {
    const [first] = this.#items;
    if (first === undefined) return undefined;
    const [owner, own] = first;
    const item = own.shift();
    this.#items.delete(owner);
    if (own.length > 0) this.#items.set(owner, own);
    return item;
  }

  /** Takes the first such item of the owner; undefined: there is none. */
  remove(owner: string, isMeant: (item: T) => boolean): T | undefined {
    const own = this.#items.get(owner) ?? [];
    const position = own.findIndex(isMeant);
    if (position < 0) return undefined;
    const [item] = own.splice(position, 1);
    if (own.length === 0) this.#items.delete(owner);
    return item;
  }

  /** Takes all. */
  clear(): T[] {
    const items = [...this.#items.values()].flat();
    this.#items.clear();
    return items;
  }
}
