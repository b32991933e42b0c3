/**
 * Items of several groups, such as the objects of namespaces: of each group one in turn, and of each the one that came first. So a group with thousands of
 * items holds up no other one.
 */
export class GroupedFifo<T> {
  /** The first group is next. None is empty. */
  readonly #groups = new Map<string, Fifo<T>>();
  readonly #groupOf: (item: T) => string;

  constructor(groupOf: (item: T) => string) {
    this.#groupOf = groupOf;
  }

  push(item: T): void {
    const group = this.#groupOf(item);
    const items = this.#groups.get(group) ?? new Fifo<T>();
    items.push(item);
    this.#groups.set(group, items);
  }

  /** The next one that is wanted. Unwanted ones before it are dropped, and take no turn of their group. */
  shift(isWanted: (item: T) => boolean): T | undefined {
    for (const [group, items] of this.#groups) {
      let item = items.shift();
      while (item !== undefined && !isWanted(item)) item = items.shift();
      this.#groups.delete(group);
      if (items.size > 0) this.#groups.set(group, items);
      if (item !== undefined) return item;
    }
    return undefined;
  }

  clear(): void {
    this.#groups.clear();
  }
}

/** First in, first out, with constant-time `shift` (an array's own moves every element). */
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.#head < this.#items.length) this.#head++;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}
