import { useSyncExternalStore } from 'react';

/** What the browser keeps under a key, as all of its windows see it. */
export interface StoredValue<Value> {
  use: () => Value;
  get: () => Value;
  /** `change` gets what is kept now, also by another window. */
  set: (change: (now: Value) => Value) => void;
}

/** `parse` gets what is stored, which anything may have written; undefined: nothing, or no JSON. */
export function storedValue<Value>(key: string, parse: (stored: unknown) => Value): StoredValue<Value> {
  const listeners = new Set<() => void>();
  let current = parse(storedAt(key)?.value);
  /** False: `current` could not be written, and what is stored is older. */
  let isStored = true;
  const tell = (next: Value): void => {
    current = next;
    for (const listener of listeners) listener();
  };
  const get = (): Value => current;
  addEventListener('storage', (event) => {
    if (event.key !== key && event.key !== null) return;
    isStored = true;
    tell(parse(storedAt(key)?.value));
  });
  return {
    use: () =>
      useSyncExternalStore((listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      }, get),
    get,
    set: (change) => {
      // Another window may have written what this one has not received yet.
      const stored = isStored ? storedAt(key) : null;
      const next = change(stored === null ? current : parse(stored.value));
      try {
        localStorage.setItem(key, JSON.stringify(next));
        isStored = true;
      } catch {
        // A browser that keeps nothing has it for this page.
        isStored = false;
      }
      tell(next);
    },
  };
}

/** Null: storage cannot be read. */
function storedAt(key: string): { value: unknown } | null {
  let text: string | null;
  try {
    text = localStorage.getItem(key);
  } catch {
    return null;
  }
  try {
    return { value: JSON.parse(text ?? 'null') ?? undefined };
  } catch {
    return { value: undefined };
  }
}
