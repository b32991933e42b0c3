/**
 * Weighted FIFO semaphore. Runs tasks concurrently while their total weight is at most `capacity`; a task that weighs more runs alone. Others wait in their
 * order.
 */
export class Semaphore {
  readonly #capacity: number;
  readonly #waiting: { weight: number; begin: () => void }[] = [];
  #inUse = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  async run<T>(weight: number, work: () => Promise<T>): Promise<T> {
    const taken = Math.min(weight, this.#capacity);
    if (this.#waiting.length > 0 || this.#inUse + taken > this.#capacity)
      await new Promise<void>((begin) => void this.#waiting.push({ weight: taken, begin }));
    else this.#inUse += taken;
    try {
      return await work();
    } finally {
      this.#inUse -= taken;
      this.#beginNext();
    }
  }

  #beginNext(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#inUse + next.weight <= this.#capacity; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#inUse += next.weight;
      next.begin();
    }
  }
}
