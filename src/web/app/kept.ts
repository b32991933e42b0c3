import { useSyncExternalStore } from 'react';

/** What the browser keeps under a key, as all of its windows see it. */
export interface Kept<Value> {
  use: () => Value;
  get: () => Value;
  /** `change` gets what is kept now, also by another window. */
  set: (change: (now: Value) => Value) => void;
}

/** `parse` gets what is stored, which anything may have written; undefined: nothing, or no JSON. */
export function kept<Value>(key: string, parse: (stored: unknown) => Value): Kept<Value> {
  const listeners = new Set<() => void>();
  let current = parse(stored(key));
  const tell = (next: Value): void => {
    current = next;
    for (const listener of listeners) listener();
  };
  const get = (): Value => current;
  addEventListener('storage', (event) => {
    if (event.key === key || event.key === null) tell(parse(stored(key)));
  });
  return {
    use: () =>
      useSyncExternalStore((listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      }, get),
    get,
    set: (change) => {
      const next = change(current);
      try {
        localStorage.setItem(key, JSON.stringify(next));
      } catch {
        // A browser that keeps nothing has it for this page.
      }
      tell(next);
    },
  };
}

function stored(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}
