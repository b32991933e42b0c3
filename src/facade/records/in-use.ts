import { PosthornError } from '../../core/errors.ts';
import type { PosthornObject, ServedKind } from '../../resources/kinds.ts';
import type { Call } from '../http/operation.ts';
import { cachedReferrers, idOf } from './lookup.ts';

const shown = 5;

/** The routes that refer to the object. */
export function routesWith(object: PosthornObject<ServedKind>, call: Call): PosthornObject<'Route'>[] {
  return cachedReferrers(call, 'Route', object);
}

/** IN_USE when there are routes, naming the first of them. */
export function refuseUsed(noun: string, routes: readonly PosthornObject<'Route'>[]): void {
  if (routes.length === 0) return;
  const names = routes.slice(0, shown).map((route) => route.metadata.name);
  const more = routes.length > shown ? ` and ${routes.length - shown} more` : '';
  throw new PosthornError('IN_USE', `The ${noun} is used by the routes ${names.join(', ')}${more}.`);
}

/** IN_USE when webhook subscriptions name the transform; otherwise none can for as long as its deletion takes. */
export async function refuseSubscribed(transform: PosthornObject<'Transform'>, { services, caller }: Call): Promise<void> {
  const count = await services.webhooks.retireTransform(caller.organization.id, idOf(transform));
  if (count === 0) return;
  throw new PosthornError('IN_USE', `The transform is used by ${count} webhook subscription${count === 1 ? '' : 's'}.`);
}
