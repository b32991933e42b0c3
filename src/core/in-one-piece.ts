/** Runs chunked work to its end, in this turn of the event loop. */
export function inOnePiece<T>(pieces: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}
