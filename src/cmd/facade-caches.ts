import { type ServedKind, servedKinds } from '../resources/kinds.ts';
import { ReflectedCaches, type ReflectedCachesOptions } from '../store/reflected-caches.ts';

/** The caches of the kinds that the facade serves, and what keeps them. */
export function facadeCaches(options: Omit<ReflectedCachesOptions<ServedKind>, 'cached'>): ReflectedCaches<ServedKind> {
  // The facade compares the owners of fields before it writes.
  return new ReflectedCaches(servedKinds, { ...options, cached: () => ({ keepManagedFields: true }) });
}
