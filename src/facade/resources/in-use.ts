import { PosthornError } from '../../core/errors.ts';
import type { PosthornObject } from '../../resources/kinds.ts';

const shown = 5;

/** IN_USE when there are routes, naming the first of them. */
export function refuseUsed(noun: string, routes: readonly PosthornObject<'Route'>[]): void {
  if (routes.length === 0) return;
  const names = routes.slice(0, shown).map((route) => route.metadata.name);
  const more = routes.length > shown ? ` and ${routes.length - shown} more` : '';
  throw new PosthornError('IN_USE', `The ${noun} is used by the routes ${names.join(', ')}${more}.`);
}
