import type { Call } from '../../../http/operation.ts';
import { filterId } from '../../../records/filter-ids.ts';
import { idOf, inCache } from '../../../records/lookup.ts';
import { eventTypeKey } from '../event-types/event-type-lookup.ts';

interface Narrowing {
  eventType?: string | undefined;
  applicationId?: string | undefined;
  endpointId?: string | undefined;
}

/** What a list, an export or figures of messages are narrowed by. RESOURCE_NOT_FOUND for an unknown id; under an unknown event type there is nothing. */
export async function messageFilter(call: Call, { eventType, applicationId, endpointId }: Narrowing) {
  return {
    eventType,
    eventTypeIds: eventType === undefined ? undefined : await eventTypeIds(call, eventType),
    applicationId: await filterId(call, 'WebhookApplication', applicationId),
    endpointId: await filterId(call, 'WebhookEndpoint', endpointId),
  };
}

/** Ids of the event type of this name and of deleted ones that had it; undefined: not all of them are known. */
async function eventTypeIds(call: Call, name: string): Promise<string[] | undefined> {
  const { registry, webhooks } = call.services;
  const org = call.caller.organization.id;
  const cached = inCache(call, 'WebhookEventType', eventTypeKey(name));
  const [published, past] = await Promise.all([registry.eventTypeIdByName(org, name), webhooks.pastEventTypeIds(org, name)]);
  if (past === null) return undefined;
  const ids = [cached?.spec.name === name ? idOf(cached) : null, published, ...past];
  return [...new Set(ids.filter((id) => id !== null))];
}
