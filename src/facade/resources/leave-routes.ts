import { isPosthornError } from '../../core/errors.ts';
import type { PosthornObject, SpecOf } from '../../resources/kinds.ts';
import type { Call } from '../operation.ts';
import type { NoteWrite } from './exclusive.ts';
import { cachedObjects, find } from './lookup.ts';
import { fieldManaged } from './owned-spec.ts';
import { changeSpec, planChange } from './write.ts';

/**
 * Takes a destination out of all routes before it is deleted. FIELD_MANAGED, with nothing changed, when another manager
 * owns one of these lists.
 */
export async function leaveRoutes(destination: PosthornObject<'Destination'>, call: Call, note: NoteWrite): Promise<void> {
  const { name } = destination.metadata;
  const users = cachedObjects(call, 'Route').filter(({ spec }) => refersTo(spec, name));
  const foreign: Record<string, string[]> = {};
  for (const { metadata } of users) {
    const route = await findIfThere(call, metadata.name);
    try {
      if (route !== null) planChange(route, withoutDestination(route.spec, name));
    } catch (error) {
      if (!isPosthornError(error, 'FIELD_MANAGED')) throw error;
      foreign[`Route "${metadata.name}"`] = [...new Set(Object.values(error.details ?? {}).flat())];
    }
  }
  if (Object.keys(foreign).length > 0) throw fieldManaged(foreign);
  for (const { metadata } of users) {
    if ((await findIfThere(call, metadata.name)) === null) continue;
    const { after } = await changeSpec(
      call,
      'Route',
      () => find(call, 'Route', metadata.name),
      async ({ spec }) => withoutDestination(spec, name),
    );
    note(after);
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

function refersTo({ destinationRefs, failover }: SpecOf<'Route'>, name: string): boolean {
  return [...destinationRefs, ...(failover?.destinationRefs ?? [])].some((ref) => ref.name === name);
}

function withoutDestination(spec: SpecOf<'Route'>, name: string): SpecOf<'Route'> {
  const without = (refs: { name: string }[]): { name: string }[] => refs.filter((ref) => ref.name !== name);
  const { failover } = spec;
  return {
    ...spec,
    destinationRefs: without(spec.destinationRefs),
    ...(failover === undefined ? {} : { failover: { ...failover, destinationRefs: without(failover.destinationRefs) } }),
  };
}
