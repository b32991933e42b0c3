import { isPosthornError } from '../../core/errors.ts';
import type { PosthornObject, SpecOf } from '../../resources/kinds.ts';
import type { Place } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { cachedObjects, find, getByName } from './lookup.ts';
import { fieldManaged } from './owned-spec.ts';
import type { RecordWrite } from './record-write.ts';
import { changeSpec, planChange } from './write.ts';

type Spec = SpecOf<'Route'>;

/** The routes that name one of these objects in a list which they leave when they are deleted. */
export function routesNaming(place: Place, kind: ServedKind, names: ReadonlySet<string>): PosthornObject<'Route'>[] {
  if (kind !== 'Destination' && kind !== 'NotificationChannel') return [];
  return cachedObjects(place, 'Route').filter(({ spec }) => withoutNamed(spec, kind, names) !== null);
}

/** FIELD_MANAGED when another manager owns a list that objects of one kind would leave. */
export async function refuseForeignLists(place: Place, deleted: readonly PosthornObject<ServedKind>[]): Promise<void> {
  const [first] = deleted;
  if (first === undefined) return;
  const { kind } = first;
  const names = new Set(deleted.map(({ metadata }) => metadata.name));
  const foreign: Record<string, string[]> = {};
  for (const { metadata } of routesNaming(place, kind, names)) {
    const route = await getByName(place, 'Route', metadata.name);
    try {
      if (route !== null) planChange(route, withoutNamed(route.spec, kind, names) ?? route.spec);
    } catch (error) {
      if (!isPosthornError(error, 'FIELD_MANAGED')) throw error;
      foreign[`Route "${metadata.name}"`] = [...new Set(Object.values(error.details ?? {}).flat())];
    }
  }
  if (Object.keys(foreign).length > 0) throw fieldManaged(foreign);
}

/** Takes the objects out of these lists. Routes that name a channel and no other send their alerts to none then. */
export async function leaveLists(place: Place, kind: ServedKind, names: ReadonlySet<string>, note: RecordWrite): Promise<void> {
  for (const { metadata } of routesNaming(place, kind, names)) {
    if ((await getByName(place, 'Route', metadata.name)) === null) continue;
    const load = () => find(place, 'Route', metadata.name);
    note((await changeSpec(place, 'Route', load, async ({ spec }) => withoutNamed(spec, kind, names) ?? spec)).after);
  }
}

/** Null: it names none of them. */
function withoutNamed(spec: Spec, kind: ServedKind, names: ReadonlySet<string>): Spec | null {
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
