import type { Clock } from '../core/clock.ts';
import { isPosthornError } from '../core/errors.ts';
import type { Kind } from '../resources/kinds.ts';
import type { StoreMetrics } from './metrics.ts';
import type { CompleteStore } from './store.ts';

/** The store, with the duration and outcome (`success` or the error's code) of each call measured. Watches are the reflector's to count. */
export function meteredStore(store: CompleteStore, clock: Clock, metrics: StoreMetrics): CompleteStore {
  const measured = async <T>(verb: string, kind: Kind, call: Promise<T>): Promise<T> => {
    const begunMs = clock.now();
    const observe = (outcome: string): void => metrics.requestSeconds.observe({ verb, kind, outcome }, (clock.now() - begunMs) / 1000);
    try {
      const answer = await call;
      observe('success');
      return answer;
    } catch (error) {
      observe(isPosthornError(error) ? error.code : 'INTERNAL');
      throw error;
    }
  };
  return {
    get: (kind, key) => measured('get', kind, store.get(kind, key)),
    getMetadata: (kind, key) => measured('get', kind, store.getMetadata(kind, key)),
    getSecret: (key) => measured('get', 'Secret', store.getSecret(key)),
    list: (kind, query) => measured('list', kind, store.list(kind, query)),
    watch: (kind, from, signal, query) => store.watch(kind, from, signal, query),
    create: (object, options) => measured('create', object.kind, store.create(object, options)),
    apply: (object, options) => measured('apply', object.kind, store.apply(object, options)),
    applyStatus: (kind, key, status, options) => measured('applyStatus', kind, store.applyStatus(kind, key, status, options)),
    delete: (kind, key, precondition) => measured('delete', kind, store.delete(kind, key, precondition)),
  };
}
