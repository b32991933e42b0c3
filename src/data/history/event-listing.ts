import { filterScope, outcomeConditions } from '../shard/message-conditions.ts';
import { isAmong, listed, type OneOrMore } from '../shard/message-filter.ts';
import type { EventFilter, EventView } from '../shard/messages.ts';
import type { IndexConditions } from '../shard/shard-reader.ts';
import { joinedScope } from './delivery-listing.ts';

/** How a list of events is read. */
export interface EventReading {
  index: OneOrMore;
  conditions: IndexConditions | undefined;
  scope: readonly (string | undefined)[];
}

export function eventReading(org: string, { ids, sourceId, statuses, signatureValid, delivery, where }: EventFilter): EventReading {
  const conditions = {
    statuses: statuses && ` ${statuses.join(' ')} `,
    routeId: delivery?.routeId,
    destinationId: delivery?.destinationId,
    // The script is to name the deliveries, also where it can exclude none.
    outcome: delivery && (outcomeConditions(delivery) ?? {}),
  };
  const ofDelivery = delivery && [joinedScope(delivery.routeId), joinedScope(delivery.destinationId), ...filterScope(delivery)];
  return {
    index: sourceId === undefined ? `i:ev:${org}` : listed(sourceId).map((id) => `i:${id}`),
    conditions: statuses === undefined && delivery === undefined ? undefined : conditions,
    scope: [
      org,
      joinedScope(sourceId),
      statuses?.toSorted().join(','),
      ...filterScope({ ids, where }),
      ...(signatureValid === undefined ? [] : [`signatureValid=${signatureValid}`]),
      ...(ofDelivery === undefined ? [] : ['delivery', ...ofDelivery]),
    ],
  };
}

/** Whether the filter lets an event pass, but for its deliveries and what is searched in its payload. */
export function meetsEventFilter(org: string, { sourceId, statuses, signatureValid }: EventFilter, view: EventView): boolean {
  return (
    view.org === org &&
    isAmong(sourceId, view.sourceId) &&
    (statuses === undefined || statuses.includes(view.status)) &&
    (signatureValid === undefined || view.signatureValid === signatureValid)
  );
}
