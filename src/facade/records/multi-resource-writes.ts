import { z } from 'zod';
import { isPosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { toPosthornError } from '../http/error-response.ts';
import type { Place } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { mapConcurrently } from './concurrently.ts';
import { leaveLists, refuseForeignLists, routesNaming } from './leave-routes.ts';
import { find, getByName } from './lookup.ts';
import { nouns } from './nouns.ts';
import type { RecordWrite } from './record-write.ts';
import { changeSpec, deleteObject } from './write.ts';

type Route = PosthornObject<'Route'>;

const objects = z.array(z.object({ name: z.string(), uid: z.string() }));
const servedKind = z.custom<ServedKind>((value) => typeof value === 'string' && Object.hasOwn(nouns, value));

/** Several writes that are made together; each may be repeated. */
const writes = z.discriminatedUnion('action', [
  z.object({ action: z.literal('delete'), kind: servedKind, objects }),
  z.object({ action: z.literal('enable'), kind: z.literal('Route'), objects, enabled: z.boolean() }),
]);
type Writes = z.output<typeof writes>;

/** What the caches must show before `recoverPending`. */
export const recoveryReads: readonly ServedKind[] = ['Route'];

/**
 * Deletes objects of one kind and removes them from the routes that name them. The write-ahead log has the whole, so that another process finishes it after a
 * crash. The caller holds the lock and has called `refuseForeignLists`.
 */
export async function deleteAll(place: Place, deleted: readonly PosthornObject<ServedKind>[], note: RecordWrite): Promise<void> {
  const [first] = deleted;
  if (first === undefined) return;
  const { kind } = first;
  const named = deleted.map(({ metadata: { name, uid } }) => ({ name, uid }));
  const names = new Set(named.map(({ name }) => name));
  const isOneWrite = named.length === 1 && routesNaming(place, kind, names).length === 0;
  await (isOneWrite ? carryOut : runLogged)(place, { action: 'delete', kind, objects: named }, note);
}

/** Pauses or resumes routes, in the same way. Returns those that exist. */
export async function setAllEnabled(place: Place, routes: readonly Route[], enabled: boolean, note: RecordWrite): Promise<Route[]> {
  const named = routes.map(({ metadata: { name, uid } }) => ({ name, uid }));
  return await (named.length <= 1 ? carryOut : runLogged)(place, { action: 'enable', kind: 'Route', objects: named, enabled }, note);
}

/**
 * Finishes the pending entries of the write-ahead log, object by object: a write that is refused by now does not hold up the others. Throws UNAVAILABLE when
 * entries stay pending.
 */
export async function recoverPending(place: Place, left: ReadonlyMap<string, string>, note: RecordWrite): Promise<void> {
  const { services, caller } = place;
  const org = caller.organization.id;
  const unlessRefused = async (action: () => Promise<void>): Promise<void> => {
    try {
      await action();
    } catch (error) {
      if (isPosthornError(error, 'UNAVAILABLE')) throw error;
      services.logger.warn({ err: error, organization: org }, 'an interrupted write of several resources cannot be completed');
    }
  };
  for (const [id, text] of left) {
    await unlessRefused(async () => {
      const begun = writes.parse(parsePlainJson(text));
      for (const object of begun.objects) await unlessRefused(() => finish(place, begun, object, note));
    });
    await services.writeAheadLog.end(org, id);
  }
}

/** But for what has the name of the object by now and is another one. */
async function finish(place: Place, begun: Writes, object: { name: string; uid: string }, note: RecordWrite): Promise<void> {
  const current = await getByName(place, begun.kind, object.name);
  if (current !== null && current.metadata.uid !== object.uid) return;
  if (current !== null && begun.action === 'delete') await refuseForeignLists(place, [current]);
  await carryOut(place, { ...begun, objects: [object] }, note);
}

async function runLogged(place: Place, begun: Writes, note: RecordWrite): Promise<Route[]> {
  const { services, caller } = place;
  const org = caller.organization.id;
  const id = await services.writeAheadLog.begin(org, JSON.stringify(begun));
  const end = (): Promise<void> =>
    services.writeAheadLog.end(org, id).catch((error: unknown) => {
      services.logger.warn(
        { err: error, organization: org },
        'the log entry of a completed write was not removed; it is checked again later',
      );
    });
  try {
    const changed = await carryOut(place, begun, note);
    await end();
    return changed;
  } catch (error) {
    if (toPosthornError(error).status < 500) await end();
    throw error;
  }
}

/** Returns the routes that are enabled or disabled as it says. */
async function carryOut(place: Place, begun: Writes, note: RecordWrite): Promise<Route[]> {
  const { namespace } = place.caller.organization;
  switch (begun.action) {
    case 'delete': {
      await leaveLists(place, begun.kind, new Set(begun.objects.map(({ name }) => name)), note);
      for (const { name, uid } of begun.objects) {
        const object = { kind: begun.kind, metadata: { namespace, name, uid } };
        await deleteObject(place, object);
        note(object, true);
      }
      return [];
    }
    case 'enable': {
      const changed = await mapConcurrently(begun.objects, ({ name }) => enable(place, name, begun.enabled));
      const routes = changed.filter((route) => route !== null);
      const last = routes.at(-1);
      if (last !== undefined) note(last);
      return routes;
    }
    default:
      return begun satisfies never;
  }
}

/** Null: it is gone. */
async function enable(place: Place, name: string, enabled: boolean): Promise<Route | null> {
  try {
    const load = () => find(place, 'Route', name);
    return (await changeSpec(place, 'Route', load, async ({ spec }) => ({ ...spec, enabled }))).after;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  }
}
