import type { ResourceStore } from '../../src/store/store.ts';

/** The store with another method in the place of one of its own. */
export function withOther<M extends keyof ResourceStore>(store: ResourceStore, method: M, other: ResourceStore[M]): ResourceStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = name === method ? other : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
