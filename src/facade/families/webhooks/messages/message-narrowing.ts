import { listed, type OneOrMore } from '../../../../data/shard/message-filter.ts';
import type { Call } from '../../../http/operation.ts';
import { mapConcurrently } from '../../../records/concurrently.ts';
import { eventTypeIds, filterIds } from '../../../records/filter-ids.ts';

interface Narrowing {
  eventType?: OneOrMore | undefined;
  applicationId?: OneOrMore | undefined;
  endpointId?: OneOrMore | undefined;
}

/** Filters of a list, an export or a cancel of messages. RESOURCE_NOT_FOUND for an unknown id or event type. */
export async function messageFilter(call: Call, { eventType, applicationId, endpointId }: Narrowing) {
  return {
    eventType,
    eventTypeIds: eventType === undefined ? undefined : await idsOfAll(call, listed(eventType)),
    applicationId: await filterIds(call, 'WebhookApplication', applicationId),
    endpointId: await filterIds(call, 'WebhookEndpoint', endpointId),
  };
}

/** Ids of the event types of these names and of deleted ones that had them; undefined: some are unknown. RESOURCE_NOT_FOUND as in `eventTypeIds`. */
async function idsOfAll(call: Call, names: readonly string[]): Promise<string[] | undefined> {
  const found = await mapConcurrently(names, (name) => eventTypeIds(call, name));
  return found.includes(undefined) ? undefined : [...new Set(found.flatMap((ids) => ids ?? []))];
}
