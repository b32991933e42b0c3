import type { Kind, ObjectOf } from '../resources/kinds.ts';
import type { ResourceStore } from './store.ts';

/** Every object of the kind as the store has it now, or every one in the namespace; read page by page. */
export async function* allObjects<K extends Kind>(
  store: Pick<ResourceStore, 'list'>,
  kind: K,
  namespace?: string,
): AsyncGenerator<ObjectOf<K>> {
  let continueToken: string | undefined;
  do {
    const page = await store.list(kind, { namespace, continueToken });
    yield* page.items;
    continueToken = page.continueToken;
  } while (continueToken !== undefined);
}

/** As `allObjects`, all at once. */
export async function listAll<K extends Kind>(store: Pick<ResourceStore, 'list'>, kind: K, namespace?: string): Promise<ObjectOf<K>[]> {
  const found: ObjectOf<K>[] = [];
  for await (const object of allObjects(store, kind, namespace)) found.push(object);
  return found;
}
