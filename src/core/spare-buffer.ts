import { freeBuffer } from './free-buffer.ts';
import { mebibytes } from './payload-sizes.ts';

/**
 * Keeps the memory of one buffer for the next one of the same owner with as many MiB. The system clears new memory before it gives it, and V8 collects
 * garbage because of it. What is kept goes with the next collection of all garbage.
 */
export class SpareBuffer {
  #kept: { owner: string; memory: WeakRef<ArrayBufferLike> } | null = null;

  /** Returns so many bytes, rounded up to whole MiB, with leftovers of the owner. `owner`: such as the id of a source; no other owner gets its memory. */
  take(owner: string, bytes: number): Buffer {
    const memory = this.#kept?.owner === owner ? this.#kept.memory.deref() : undefined;
    const length = mebibytes(bytes) * 1_048_576;
    if (memory?.byteLength !== length) return Buffer.allocUnsafeSlow(length);
    this.#kept = null;
    return Buffer.from(memory);
  }

  /** Takes all of the memory of `buffer`, which must not be used any more, and frees what was kept before (`freeBuffer`). */
  giveBack(owner: string, buffer: Buffer): void {
    const before = this.#kept?.memory.deref();
    if (before !== undefined) freeBuffer(Buffer.from(before));
    this.#kept = { owner, memory: new WeakRef(buffer.buffer) };
  }
}
