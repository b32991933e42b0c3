/** Wall-clock time in milliseconds and cancellable sleeping. The real one is `runtime/system-clock.ts`; tests pass a fake. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms` milliseconds, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms` milliseconds (any length); returns the cancel function. */
  after(ms: number, callback: () => void): () => void;
}
