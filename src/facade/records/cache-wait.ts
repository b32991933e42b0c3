import type { Clock } from '../../core/clock.ts';
import type { Kind, ObjectOf } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { Key } from '../../store/store.ts';

/** Whether the cached object came to satisfy `isReached` within the time. Looks at once, then at each change. */
export function waitForCache<K extends Kind>(
  cache: ResourceCache<K>,
  key: Key,
  isReached: (object: ObjectOf<K> | undefined) => boolean,
  wait: { timeoutMs: number; clock: Clock },
): Promise<boolean> {
  if (isReached(cache.get(key))) return Promise.resolve(true);
  return new Promise((resolve) => {
    const finish = (reached: boolean): void => {
      stopListening();
      stopTimer();
      resolve(reached);
    };
    const stopTimer = wait.clock.after(wait.timeoutMs, () => finish(false));
    const stopListening = cache.onChange((changed) => {
      if (changed.name === key.name && changed.namespace === key.namespace && isReached(cache.get(key))) finish(true);
    });
  });
}
