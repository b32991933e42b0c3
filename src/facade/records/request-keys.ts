import { idempotentAnswersKeptMs } from '../../data/intake/idempotent-answers.ts';
import type { ObjectOf, PosthornObject } from '../../resources/kinds.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';

/** Identifies the request that made an object: one with an Idempotency-Key, or an import. */
export const requestKeyAnnotation = 'posthorn.dev/idempotency';

/** The mark of one of several objects that a request makes. */
export function itemKey(mark: string, place: number): string {
  return `${mark}.${place}`;
}

/** Index of the object within the request that made it; null if another request did, also an equal one whose key has expired. */
export function indexInRequest(call: Call, mark: string, { metadata }: PosthornObject<ServedKind>): number | null {
  const [own, place] = metadata.annotations?.[requestKeyAnnotation]?.split('.') ?? [];
  const isOlder = Date.parse(metadata.creationTimestamp) < call.services.clock.now() - idempotentAnswersKeptMs;
  return own !== mark || place === undefined || isOlder ? null : Number(place);
}

/** Returns the object that an equal, aborted request has made; its Secret may be missing. */
export async function madeBefore<K extends ServedKind>(call: Call, kind: K): Promise<ObjectOf<K> | null> {
  const { idempotency } = call;
  if (idempotency?.isTakenOver !== true) return null;
  for await (const object of stored(call, kind))
    if (object.metadata.annotations?.[requestKeyAnnotation] === idempotency.mark) return object;
  return null;
}

/** All objects that one request has made, with their indexes; not what is being deleted. */
export async function madeUnder<K extends ServedKind>(call: Call, kind: K, mark: string): Promise<[place: number, ObjectOf<K>][]> {
  const made: [number, ObjectOf<K>][] = [];
  for await (const object of stored(call, kind)) {
    const place = indexInRequest(call, mark, object);
    if (place !== null && object.metadata.deletionTimestamp === undefined) made.push([place, object]);
  }
  return made;
}

async function* stored<K extends ServedKind>({ caller, services }: Call, kind: K): AsyncGenerator<ObjectOf<K>> {
  let continueToken: string | undefined;
  do {
    const page = await services.store.list(kind, { namespace: caller.organization.namespace, continueToken });
    yield* page.items;
    continueToken = page.continueToken;
  } while (continueToken !== undefined);
}
