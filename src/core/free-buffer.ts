/**
 * Frees the memory of a buffer at once, and leaves the buffer empty: V8 would collect it much later, and each new one would be made of memory that the system has
 * to clear first. No write of it may be under way: the system would read what is not there any more. Leaves alone what shares its memory with others.
 */
export function freeBuffer({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
