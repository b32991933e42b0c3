import { freeBuffer } from './free-buffer.ts';

const stepBytes = 4_194_304;

/**
 * Keeps the memory of one buffer for the next one that is as large or smaller: the system clears new memory before it gives it, and V8 collects garbage because of it. What
 * is kept goes with the next collection of all garbage.
 */
export class SpareBuffer {
  #kept: WeakRef<Buffer> | null = null;

  /** At least so many bytes, whatever stands in them. */
  take(bytes: number): Buffer {
    const kept = this.#kept?.deref();
    if (kept === undefined || kept.length < bytes) return Buffer.allocUnsafeSlow(Math.ceil(bytes / stepBytes) * stepBytes);
    this.#kept = null;
    return kept;
  }

  /** Nobody may read or write it any more (`freeBuffer`). */
  giveBack(buffer: Buffer): void {
    const kept = this.#kept?.deref();
    const [smaller, larger] = kept === undefined || kept.length < buffer.length ? [kept, buffer] : [buffer, kept];
    if (smaller !== undefined) freeBuffer(smaller);
    this.#kept = new WeakRef(larger);
  }
}
