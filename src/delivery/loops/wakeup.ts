/** Lets one loop sleep until it is signalled; a signal that comes before the wait is not lost. */
export class Wakeup {
  #isSignalled = false;
  #wake: (() => void) | null = null;

  signal(): void {
    this.#isSignalled = true;
    this.#wake?.();
  }

  async wait(): Promise<void> {
    if (!this.#isSignalled) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#wake = null;
    this.#isSignalled = false;
  }
}
