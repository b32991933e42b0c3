import { isPosthornError } from '../../core/errors.ts';
import type { PosthornObject, SpecOf } from '../../resources/kinds.ts';
import type { Call } from '../operation.ts';
import type { NoteWrite } from './exclusive.ts';
import { cachedObjects, find } from './lookup.ts';
import { fieldManaged } from './owned-spec.ts';
import { changeSpec, planChange } from './write.ts';

/**
 * Takes destinations out of all routes before they are deleted. FIELD_MANAGED, with nothing changed, when another manager
 * owns one of these lists.
 */
export async function leaveRoutes(destinations: readonly PosthornObject<'Destination'>[], call: Call, note: NoteWrite): Promise<void> {
  const names = new Set(destinations.map(({ metadata }) => metadata.name));
  await changeRoutes(
    call,
    note,
    (spec) => refersTo(spec, names),
    (spec) => withoutDestinations(spec, names),
  );
}

/** The same for a notification channel: the routes that name it alone send their alerts to no channel then. */
export async function leaveChannelLists({ metadata }: PosthornObject<'NotificationChannel'>, call: Call, note: NoteWrite): Promise<void> {
  const isOther = ({ name }: { name: string }): boolean => name !== metadata.name;
  await changeRoutes(
    call,
    note,
    ({ notifications }) => notifications?.channelRefs?.every(isOther) === false,
    (spec) => {
      const { notifications } = spec;
      if (notifications?.channelRefs === undefined) return spec;
      return { ...spec, notifications: { ...notifications, channelRefs: notifications.channelRefs.filter(isOther) } };
    },
  );
}

async function changeRoutes(
  call: Call,
  note: NoteWrite,
  isAffected: (spec: SpecOf<'Route'>) => boolean,
  change: (spec: SpecOf<'Route'>) => SpecOf<'Route'>,
): Promise<void> {
  const users = cachedObjects(call, 'Route').filter(({ spec }) => isAffected(spec));
  const foreign: Record<string, string[]> = {};
  for (const { metadata } of users) {
    const route = await findIfThere(call, metadata.name);
    try {
      if (route !== null) planChange(route, change(route.spec));
    } catch (error) {
      if (!isPosthornError(error, 'FIELD_MANAGED')) throw error;
      foreign[`Route "${metadata.name}"`] = [...new Set(Object.values(error.details ?? {}).flat())];
    }
  }
  if (Object.keys(foreign).length > 0) throw fieldManaged(foreign);
  for (const { metadata } of users) {
    if ((await findIfThere(call, metadata.name)) === null) continue;
    const load = () => find(call, 'Route', metadata.name);
    note((await changeSpec(call, 'Route', load, async ({ spec }) => change(spec))).after);
  }
}

async function findIfThere(call: Call, slug: string): Promise<PosthornObject<'Route'> | null> {
  try {
    return await find(call, 'Route', slug);
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  }
}

function refersTo({ destinationRefs, failover }: SpecOf<'Route'>, names: ReadonlySet<string>): boolean {
  return [...destinationRefs, ...(failover?.destinationRefs ?? [])].some(({ name }) => names.has(name));
}

function withoutDestinations(spec: SpecOf<'Route'>, names: ReadonlySet<string>): SpecOf<'Route'> {
  const without = (refs: { name: string }[]): { name: string }[] => refs.filter(({ name }) => !names.has(name));
  const { failover } = spec;
  return {
    ...spec,
    destinationRefs: without(spec.destinationRefs),
    ...(failover === undefined ? {} : { failover: { ...failover, destinationRefs: without(failover.destinationRefs) } }),
  };
}
