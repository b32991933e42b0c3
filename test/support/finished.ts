/** What the pieces of a piece of work return, all done at once. */
export function finished<T>(pieces: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}
