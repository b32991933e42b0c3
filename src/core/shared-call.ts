/** Lets callers that come while a call is under way wait for its result, instead of making one more. */
export function sharedCall<T>(call: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | null = null;
  return () => {
    underWay ??= call().finally(() => {
      underWay = null;
    });
    return underWay;
  };
}
