import { canonicalJson } from '../../core/canonical-json.ts';
import type { Clock } from '../../core/clock.ts';
import type { OwnedRecordKind } from '../../core/records.ts';
import type { Kind, ObjectOf, PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { Key } from '../../store/store.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { mapConcurrently } from './concurrently.ts';
import { routesWith } from './in-use.ts';
import { idOf } from './lookup.ts';

const notYetInForce = 'not yet in force';

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

/** Whether the record of this generation, or a later one, is where ingest and delivery read it. */
function isProgrammed(object: PosthornObject<ServedKind>, generation: number): boolean {
  const programmed = object.status?.conditions?.find((condition) => condition.type === 'Programmed');
  return programmed?.status === 'True' && (programmed.observedGeneration ?? 0) >= generation;
}

/** Waits until a written object is programmed; after `timeoutMs` the response gets a `Warning` header instead, and the write stands. */
export async function awaitInForce<K extends ServedKind>(call: Call, kind: K, written: ObjectOf<K>, timeoutMs: number): Promise<void> {
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

/** Whether the routes that refer to a filter, where they are published, have it as it is by now: it takes effect in their records. */
async function isInRoutes(call: Call, written: PosthornObject<ServedKind>, deadlineMs: number): Promise<boolean> {
  if (written.kind !== 'Filter') return true;
  const { caches, registry } = call.services;
  return await isSeen(call, deadlineMs, async () => {
    const current = caches.Filter.get(written.metadata);
    if (current === undefined) return true;
    const { logic, conditions } = current.spec;
    const wanted = canonicalJson({ logic, conditions });
    const records = await mapConcurrently(routesWith(current, call), (route) =>
      registry.getOf(call.caller.organization.id, 'route', idOf(route)),
    );
    return records.every((record) => record === null || canonicalJson(record.filter) === wanted);
  });
}

const lookEveryMs = 20;

/** What ingest and delivery read of each kind; null: nothing. */
const recordKinds: Readonly<Record<ServedKind, OwnedRecordKind | null>> = {
  Source: 'source',
  Destination: 'destination',
  Route: 'route',
  Filter: null,
  Transform: 'transform',
  PayloadSchema: 'payloadSchema',
  NotificationChannel: 'notificationChannel',
  HttpCronJob: 'cronJob',
  ApiKey: 'apiKey',
  WebhookEventType: 'eventType',
};

/** Waits until a deleted object has left the lists of this replica, and what ingest and delivery read; otherwise the answer gets a warning. */
export async function awaitGone<K extends ServedKind>(call: Call, kind: K, deleted: ObjectOf<K>, timeoutMs: number): Promise<void> {
  const { caches, clock } = call.services;
  const deadlineMs = clock.now() + timeoutMs;
  const isGone = (object: ObjectOf<K> | undefined): boolean => object?.metadata.uid !== deleted.metadata.uid;
  const hasLeftLists = await waitForCache(caches[kind], deleted.metadata, isGone, { timeoutMs, clock });
  if (!hasLeftLists || !(await isRetracted(call, deleted, deadlineMs))) call.warn(notYetInForce);
}

async function isRetracted(call: Call, deleted: PosthornObject<ServedKind>, deadlineMs: number): Promise<boolean> {
  const { registry } = call.services;
  const recordKind = recordKinds[deleted.kind];
  if (recordKind === null) return true;
  return await isSeen(
    call,
    deadlineMs,
    async () => (await registry.getOf(call.caller.organization.id, recordKind, idOf(deleted))) === null,
  );
}

/** Whether what is looked for in the records comes before the deadline. */
async function isSeen({ services }: Call, deadlineMs: number, look: () => Promise<boolean>): Promise<boolean> {
  const { clock, logger } = services;
  try {
    while (!(await look())) {
      if (clock.now() >= deadlineMs) return false;
      await clock.sleep(lookEveryMs);
    }
    return true;
  } catch (error) {
    // It is written: who is told otherwise writes it again, or deletes what is not there.
    logger.warn({ err: error }, 'the programmed state of a change could not be read');
    return false;
  }
}
