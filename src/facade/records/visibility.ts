import { z } from 'zod';
import { canonicalJson } from '../../core/canonical-json.ts';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { inParts } from '../../core/in-parts.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import { type Kind, kinds, type ObjectOf, type PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { Key } from '../../store/store.ts';
import type { Call, CallContext } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { routesWith } from './in-use.ts';
import { idOf } from './lookup.ts';

const notYetInForce = 'not yet in force';
const cacheDeadlineMs = 5000;

/** Whether the cached object satisfies `isReached` within the time. Checks at once, then at each change. */
function waitForCache<K extends Kind>(
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

/** Last write of one kind by a holder of the lock of the organization; generation null: deleted. */
const writeNote = z.object({ namespace: z.string(), name: z.string(), uid: z.string(), generation: z.int().nullable() });

/** The identity and version of an object. */
export interface Written {
  kind: ServedKind;
  metadata: { namespace?: string; name: string; uid: string; generation?: number };
}

export function noteOf({ metadata: { namespace = '', name, uid, generation } }: Written, isDeleted: boolean): string {
  const note: z.input<typeof writeNote> = { namespace, name, uid, generation: isDeleted ? null : (generation ?? null) };
  return JSON.stringify(note);
}

/** Waits until the cache shows the noted write. Throws UNAVAILABLE when it lags behind. */
export async function awaitRecordedWrite<K extends ServedKind>(call: CallContext, kind: K, note: string): Promise<void> {
  const { namespace, name, uid, generation } = writeNote.parse(parsePlainJson(note));
  const { caches, clock, store } = call.services;
  const isSeen = (object: PosthornObject<ServedKind> | undefined): boolean => {
    if (object === undefined) return generation === null;
    return object.metadata.uid !== uid || (generation !== null && object.metadata.generation >= generation);
  };
  // Not in the cache: not yet there, or deleted since without a note, by kubectl or by a family whose deletions check nothing.
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

/** Whether the record of this generation, or a later one, is where ingest and delivery read it. */
function isProgrammed(object: PosthornObject<ServedKind>, generation: number): boolean {
  const programmed = object.status?.conditions?.find((condition) => condition.type === 'Programmed');
  return programmed?.status === 'True' && (programmed.observedGeneration ?? 0) >= generation;
}

/** Waits until a written object is programmed; after `timeoutMs` the response gets a `Warning` header, and the write is kept. */
export async function awaitProgrammed<K extends ServedKind>(call: Call, kind: K, written: ObjectOf<K>, timeoutMs: number): Promise<void> {
  const { uid, generation } = written.metadata;
  const { caches, clock } = call.services;
  const deadlineMs = clock.now() + timeoutMs;
  const reached = await waitForCache(
    caches[kind],
    written.metadata,
    (object) => object !== undefined && (object.metadata.uid !== uid || isProgrammed(object, generation)),
    { timeoutMs, clock },
  );
  if (!reached || !(await isInRoutes(call, written, deadlineMs))) call.warn(notYetInForce);
}

/** Whether the published routes that refer to a filter contain its current form: it takes effect in their records. */
async function isInRoutes(call: Call, written: PosthornObject<ServedKind>, deadlineMs: number): Promise<boolean> {
  if (written.kind !== 'Filter') return true;
  const { caches, registry } = call.services;
  // The form of the filter that each route had at the last look.
  const seen = new Map<string, string>();
  return await isSeen(call, deadlineMs, async () => {
    const current = caches.Filter.get(written.metadata);
    if (current === undefined) return true;
    const { logic, conditions } = current.spec;
    const wanted = canonicalJson({ logic, conditions });
    // A filter may have thousands of routes: each is looked at until it has the form, and no others after one that lacks it.
    const ids = routesWith(current, call).map(idOf);
    const open = ids.filter((id) => seen.get(id) !== wanted);
    for (const part of inParts(open, 20)) {
      await call.turn.rest();
      const records = await Promise.all(part.map((id) => registry.getOf(call.caller.organization.id, 'route', id)));
      for (const [index, record] of records.entries()) {
        if (record !== null && canonicalJson(record.filter) !== wanted) return false;
        seen.set(part[index] ?? '', wanted);
      }
    }
    return true;
  });
}

const lookEveryMs = 20;

/** Waits until a deleted object has left the lists of this replica, and what ingest and delivery read; otherwise the answer gets a warning. */
export async function awaitDeleted<K extends ServedKind>(call: Call, kind: K, deleted: ObjectOf<K>, timeoutMs: number): Promise<void> {
  const { caches, clock } = call.services;
  const deadlineMs = clock.now() + timeoutMs;
  const isGone = (object: ObjectOf<K> | undefined): boolean => object?.metadata.uid !== deleted.metadata.uid;
  const hasLeftLists = await waitForCache(caches[kind], deleted.metadata, isGone, { timeoutMs, clock });
  if (!hasLeftLists || !(await isRetracted(call, deleted, deadlineMs))) call.warn(notYetInForce);
}

async function isRetracted(call: Call, deleted: PosthornObject<ServedKind>, deadlineMs: number): Promise<boolean> {
  const { registry } = call.services;
  const { recordKind } = kinds[deleted.kind];
  if (recordKind === null) return true;
  return await isSeen(
    call,
    deadlineMs,
    async () => (await registry.getOf(call.caller.organization.id, recordKind, idOf(deleted))) === null,
  );
}

/** Whether the expected record appears before the deadline. */
async function isSeen({ services }: Call, deadlineMs: number, look: () => Promise<boolean>): Promise<boolean> {
  const { clock, logger } = services;
  try {
    while (!(await look())) {
      if (clock.now() >= deadlineMs) return false;
      await clock.sleep(lookEveryMs);
    }
    return true;
  } catch (error) {
    // It is written: after another answer a caller would write it again, or delete what is not there.
    logger.warn({ err: error }, 'the programmed state of a change could not be read');
    return false;
  }
}
