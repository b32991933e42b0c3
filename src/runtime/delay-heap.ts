/** Keys ordered by the time at which they come due. A key is in it once, at the earliest time it was given. */
export class DelayHeap {
  readonly #entries: { key: string; at: number }[] = [];
  readonly #positions = new Map<string, number>();

  get size(): number {
    return this.#entries.length;
  }

  /** Milliseconds since the epoch of the earliest key; undefined when empty. */
  get nextAt(): number | undefined {
    return this.#entries[0]?.at;
  }

  add(key: string, at: number): void {
    const position = this.#positions.get(key);
    if (position === undefined) {
      this.#entries.push({ key, at });
      this.#rise(this.#entries.length - 1);
      return;
    }
    const entry = this.#entries[position];
    if (entry !== undefined && at < entry.at) {
      entry.at = at;
      this.#rise(position);
    }
  }

  /** Takes out the earliest key that is due at `now`. */
  popDue(now: number): string | undefined {
    const first = this.#entries[0];
    if (first === undefined || first.at > now) return undefined;
    const last = this.#entries.pop();
    this.#positions.delete(first.key);
    if (last !== undefined && last !== first) {
      this.#place(last, 0);
      this.#sink(0);
    }
    return first.key;
  }

  clear(): void {
    this.#entries.length = 0;
    this.#positions.clear();
  }

  #rise(from: number): void {
    const entry = this.#entries[from];
    if (entry === undefined) return;
    let position = from;
    while (position > 0) {
      const above = (position - 1) >> 1;
      const parent = this.#entries[above];
      if (parent === undefined || parent.at <= entry.at) break;
      this.#place(parent, position);
      position = above;
    }
    this.#place(entry, position);
  }

  #sink(from: number): void {
    const entry = this.#entries[from];
    if (entry === undefined) return;
    let position = from;
    for (;;) {
      const left = this.#entries[2 * position + 1];
      const right = this.#entries[2 * position + 2];
      if (left === undefined) break;
      const takesRight = right !== undefined && right.at < left.at;
      const child = takesRight ? right : left;
      if (child.at >= entry.at) break;
      this.#place(child, position);
      position = 2 * position + (takesRight ? 2 : 1);
    }
    this.#place(entry, position);
  }

  #place(entry: { key: string; at: number }, position: number): void {
    this.#entries[position] = entry;
    this.#positions.set(entry.key, position);
  }
}
