import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { Call } from '../operation.ts';
import type { ServedKind } from '../services.ts';
import { waitForCache } from './cache-wait.ts';

/** What a holder of the lock wrote last of one kind; generation null: deleted. */
const writeNote = z.object({ namespace: z.string(), name: z.string(), uid: z.string(), generation: z.int().nullable() });

export type NoteWrite = (object: PosthornObject<ServedKind>, isDeleted?: boolean) => void;

const cacheDeadlineMs = 5000;

/**
 * Runs a check with its write as the only one of the organization, with caches of `kinds` that show what earlier
 * holders wrote, whatever replica they ran on. `action` notes what it writes. UNAVAILABLE when the caches lag behind.
 */
export function exclusively<T>(call: Call, kinds: readonly ServedKind[], action: (note: NoteWrite) => Promise<T>): Promise<T> {
  return call.services.organizationLock.run(call.caller.organization.id, async (notes, leaveNote) => {
    for (const kind of kinds) {
      const note = notes.get(kind);
      if (note !== undefined) await awaitWrite(call, kind, note);
    }
    return action(({ kind, metadata: { namespace = '', name, uid, generation } }, isDeleted = false) => {
      leaveNote(
        kind,
        JSON.stringify({ namespace, name, uid, generation: isDeleted ? null : generation } satisfies z.input<typeof writeNote>),
      );
    });
  });
}

async function awaitWrite<K extends ServedKind>(call: Call, kind: K, note: string): Promise<void> {
  const { namespace, name, uid, generation } = writeNote.parse(JSON.parse(note));
  const { caches, clock, store } = call.services;
  const isSeen = (object: PosthornObject<ServedKind> | undefined): boolean => {
    if (object === undefined) return generation === null;
    return object.metadata.uid !== uid || (generation !== null && object.metadata.generation >= generation);
  };
  // Not in the cache: not there yet, or deleted since without a note, by kubectl or by a family whose deletions look at nothing.
  if (generation !== null && caches[kind].get({ namespace, name }) === undefined) {
    const isThere = await store.get(kind, { namespace, name }).then(
      () => true,
      (error: unknown) => (isPosthornError(error, 'RESOURCE_NOT_FOUND') ? false : Promise.reject(error)),
    );
    if (!isThere) return;
  }
  if (await waitForCache(caches[kind], { namespace, name }, isSeen, { timeoutMs: cacheDeadlineMs, clock })) return;
  throw new PosthornError('UNAVAILABLE', 'The configuration is not up to date here yet.', { retryAfterSeconds: 1 });
}
