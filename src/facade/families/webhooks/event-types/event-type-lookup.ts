import { PosthornError } from '../../../../core/errors.ts';
import type { PosthornObject } from '../../../../resources/kinds.ts';
import { eventTypeSlug } from '../../../../resources/names.ts';
import type { Call } from '../../../http/operation.ts';
import { resolve } from '../../../records/lookup.ts';

const madeId = /^etp_[a-z2-7]{26}$/;

/** Lookup key of an event type: its id, or the name of its object for the name of the event type. */
export function eventTypeKey(idOrName: string): string {
  return madeId.test(idOrName) ? idOrName : eventTypeSlug(idOrName);
}

/** The event type that a field of a body names; RESOURCE_NOT_FOUND when there is none. */
export async function namedEventType(call: Call, idOrName: string): Promise<PosthornObject<'WebhookEventType'>> {
  const found = await resolve(call, 'WebhookEventType', eventTypeKey(idOrName));
  if (found === null) throw noEventType(idOrName);
  return found;
}

export function noEventType(idOrName: string): PosthornError {
  return new PosthornError('RESOURCE_NOT_FOUND', `There is no event type ${JSON.stringify(idOrName)}.`);
}
