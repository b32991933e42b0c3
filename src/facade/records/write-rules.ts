import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { admit } from '../../resources/admission.ts';
import type { ObjectOf, PosthornObject, SpecOf } from '../../resources/kinds.ts';
import { specTrees } from '../../resources/references.ts';
import type { Call, CallContext } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { cachedObjects, getByName } from './lookup.ts';
import { nouns } from './nouns.ts';
import { fieldManaged, foreignManagers, ownedSpec } from './owned-spec.ts';
import { forClients } from './store-errors.ts';

export type Spec = Record<string, unknown>;

/** What `posthorn-api` applies to make the spec so; null when it is so. FIELD_MANAGED when something foreign would change or have to go. */
export function planChange<K extends ServedKind>(object: ObjectOf<K>, desired: Spec): Spec | null {
  return ownedSpec(specTrees[object.kind], object.spec, desired, object.metadata.managedFields ?? []);
}

/** Throws FIELD_MANAGED with the names of all objects that have a spec field of another field manager. The manager that declares an object deletes it. */
export function refuseForeign(
  objects: readonly PosthornObject<ServedKind>[],
  ownersOf = ({ metadata }: PosthornObject<ServedKind>): string[] => foreignManagers(metadata.managedFields ?? []),
): void {
  const owned = objects.map((object) => [`${object.kind} "${object.metadata.name}"`, ownersOf(object)] as const);
  const foreign = owned.filter(([, managers]) => managers.length > 0);
  if (foreign.length > 0) throw fieldManaged(Object.fromEntries(foreign));
}

/** The routes that name one of these objects in a list which they leave when they are deleted. */
export function routesNaming(call: CallContext, kind: ServedKind, names: ReadonlySet<string>): PosthornObject<'Route'>[] {
  if (kind !== 'Destination' && kind !== 'NotificationChannel') return [];
  return cachedObjects(call, 'Route').filter(({ spec }) => withoutNamed(spec, kind, names) !== null);
}

/** FIELD_MANAGED when another manager owns a list that objects of one kind would leave. */
export async function refuseForeignLists(call: CallContext, deleted: readonly PosthornObject<ServedKind>[]): Promise<void> {
  const [first] = deleted;
  if (first === undefined) return;
  const { kind } = first;
  const names = new Set(deleted.map(({ metadata }) => metadata.name));
  const foreign: Record<string, string[]> = {};
  for (const { metadata } of routesNaming(call, kind, names)) {
    const route = await getByName(call, 'Route', metadata.name);
    try {
      if (route !== null) planChange(route, withoutNamed(route.spec, kind, names) ?? route.spec);
    } catch (error) {
      if (!isPosthornError(error, 'FIELD_MANAGED')) throw error;
      foreign[`Route "${metadata.name}"`] = [...new Set(Object.values(error.details ?? {}).flat())];
    }
  }
  if (Object.keys(foreign).length > 0) throw fieldManaged(foreign);
}

/** The spec of a route whose lists have none of the objects, by kind and name; null: they have none. */
export function withoutNamed(spec: SpecOf<'Route'>, kind: ServedKind, names: ReadonlySet<string>): SpecOf<'Route'> | null {
  const isOther = ({ name }: { name: string }): boolean => !names.has(name);
  const { destinationRefs, failover, notifications } = spec;
  if (kind === 'Destination') {
    if (destinationRefs.every(isOther) && failover?.destinationRefs?.every(isOther) !== false) return null;
    return {
      ...spec,
      destinationRefs: destinationRefs.filter(isOther),
      ...(failover !== undefined && { failover: { ...failover, destinationRefs: (failover.destinationRefs ?? []).filter(isOther) } }),
    };
  }
  if (kind !== 'NotificationChannel' || notifications?.channelRefs?.every(isOther) !== false) return null;
  return { ...spec, notifications: { ...notifications, channelRefs: notifications.channelRefs.filter(isOther) } };
}

/**
 * FORBIDDEN when the organization has as many of the kind as its limit, or would have more; in a cluster its ResourceQuota reports
 * the same to everybody.
 */
export function refuseBeyondLimit(call: Call, kind: ServedKind, wouldHave?: number): void {
  const { namespace, objectsPerKind } = call.caller.organization;
  if (objectsPerKind === null || (wouldHave ?? call.services.caches[kind].sizeOf(namespace) + 1) <= objectsPerKind) return;
  throw beyondLimit(call, kind, wouldHave);
}

export function beyondLimit({ caller: { organization } }: Call, kind: ServedKind, wouldHave?: number): PosthornError {
  const { plan, objectsPerKind } = organization;
  const objects = `${nouns[kind]}s`;
  const has = `has ${objectsPerKind === null ? '' : `${objectsPerKind} `}${objects}, as many as`;
  const is = wouldHave === undefined ? has : `would have ${wouldHave} ${objects}, more than the ${objectsPerKind} that`;
  return new PosthornError('FORBIDDEN', `The organization ${is} its plan (${plan}) or its limit allows; delete some, or have it raised.`);
}

/** VALIDATION_FAILED for a spec that the store would refuse. */
export function refuseInadmissible<K extends ServedKind>(call: Call, kind: K, spec: Spec, current?: ObjectOf<K>): void {
  const { namespace } = call.caller.organization;
  const name = current?.metadata.name ?? 'dry-run';
  const { causes } = admit(kind, { metadata: { name, namespace }, spec }, current);
  if (causes === undefined) return;
  const details = Object.fromEntries(causes.map(({ field, message }) => [field, [message]]));
  throw forClients(new PosthornError('VALIDATION_FAILED', 'The resource is not valid.', { details }), kind);
}
