/** First in, first out, with constant-time `shift` (an array's own moves every element). */
export class Fifo<T> {
  /** Undefined before `#head`, so that nothing keeps what was taken. */
  #items: (T | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head++;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** The items in their order. */
  toArray(): T[] {
    return this.#items.slice(this.#head) as T[];
  }

  /** Removes and returns the first such item; undefined: there is none. */
  remove(isMeant: (item: T) => boolean): T | undefined {
    const items = this.toArray();
    const position = items.findIndex(isMeant);
    if (position < 0) return undefined;
    const [item] = items.splice(position, 1);
    this.#items = items;
    this.#head = 0;
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}
