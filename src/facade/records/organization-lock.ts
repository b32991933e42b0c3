import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { Place } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { waitForCache } from './cache-wait.ts';
import { recoverPending, recoveryReads } from './multi-resource-writes.ts';
import type { RecordWrite } from './record-write.ts';

/** What a holder of the lock wrote last of one kind; generation null: deleted. */
const writeNote = z.object({ namespace: z.string(), name: z.string(), uid: z.string(), generation: z.int().nullable() });

const cacheDeadlineMs = 5000;

/**
 * Runs a check and its write under the lock of the organization. Before, pending entries of the write-ahead log are finished, and the caches of `kinds` show
 * what earlier holders wrote on any replica. `action` records what it writes. Throws UNAVAILABLE when the caches lag behind.
 */
export function withOrganizationLock<T>(place: Place, kinds: readonly ServedKind[], action: (note: RecordWrite) => Promise<T>): Promise<T> {
  const { services, caller } = place;
  return services.organizationLock.run(caller.organization.id, async (earlier, leaveNote) => {
    const notes = new Map(earlier);
    const note: RecordWrite = ({ kind, metadata: { namespace = '', name, uid, generation = null } }, isDeleted = false) => {
      const text = JSON.stringify({ namespace, name, uid, generation: isDeleted ? null : generation } satisfies z.input<typeof writeNote>);
      notes.set(kind, text);
      leaveNote(kind, text);
    };
    const awaitNoted = async (noted: readonly ServedKind[]): Promise<void> => {
      for (const kind of noted) {
        const text = notes.get(kind);
        if (text !== undefined) await awaitWrite(place, kind, text);
      }
    };
    const left = await services.writeAheadLog.pending(caller.organization.id);
    if (left.size > 0) {
      await awaitNoted(recoveryReads);
      await recoverPending(place, left, note);
    }
    await awaitNoted(kinds);
    return action(note);
  });
}

async function awaitWrite<K extends ServedKind>(place: Place, kind: K, note: string): Promise<void> {
  const { namespace, name, uid, generation } = writeNote.parse(parsePlainJson(note));
  const { caches, clock, store } = place.services;
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
