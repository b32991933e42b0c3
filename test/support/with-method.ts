import type { CompleteStore } from '../../src/store/store.ts';

/** The store with one of its methods replaced. */
export function withMethod<M extends keyof CompleteStore>(store: CompleteStore, method: M, other: CompleteStore[M]): CompleteStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = name === method ? other : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
