import { z } from 'zod';
import { invalidParameter, PosthornError } from '../../../core/errors.ts';
import { throwIfAbandoned } from '../../../core/loop-turns.ts';
import type { DeliveryFilter, DeliveryView } from '../../../data/shard/messages.ts';
import { type Call, operation } from '../../http/operation.ts';
import {
  cursorPageOf,
  cursorPagination,
  cursorQuery,
  pagesAreFilled,
  scannedPagination,
  searchesEnd,
  unknownIds,
} from '../../http/pagination.ts';
import { queryInteger, queryList, timeRangeQuery } from '../../http/query.ts';
import { filterIds, unknownId } from '../../records/filter-ids.ts';
import { errorTypeQuery, messageFilterOf, messageFilterParameters, namedQuery, turnAndSignal } from '../shared/message-filters.ts';
import { deliveryRecord, deliveryStatus, deliveryToRecord } from './delivery-fields.ts';

const farthest = 10_000;
const pageSize = 100;
/** Records that one request reads to find an offset. */
const maxLooked = 50_000;

/** Beside those of attempts. */
export const deliveryEndTypes = ['circuit_open', 'secret_decryption_failed', 'cancelled'] as const;

const query = z.object({
  ...cursorQuery,
  offset: queryInteger({ min: 0, max: farthest })
    .optional()
    .describe('Deliveries to skip, instead of a cursor; each 100 of them count as a request.'),
  eventId: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('Of the first 1,000 deliveries of this event; with offset, not with cursor or where.'),
  routeId: namedQuery('Ids or slugs of routes'),
  destinationId: namedQuery('Ids or slugs of destinations'),
  status: queryList(deliveryStatus, 'Only those with this status.'),
  errorType: errorTypeQuery(deliveryEndTypes),
  ...messageFilterParameters,
  ...timeRangeQuery,
});
type Query = z.output<typeof query>;

export const listDeliveries = operation({
  method: 'GET',
  path: '/deliveries',
  operationId: 'listDeliveries',
  summary: 'List deliveries',
  description: `${pagesAreFilled} ${unknownIds} ${searchesEnd}`,
  scope: 'read',
  query,
  answer: { status: 200, description: 'Newest first.', schema: cursorPageOf(deliveryRecord) },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const { limit, cursor, offset, eventId, routeId, destinationId, status, ...sent } = call.query;
    const filter = {
      ...messageFilterOf(sent),
      routeId: await filterIds(call, 'Route', routeId),
      destinationId: await filterIds(call, 'Destination', destinationId),
      statuses: status,
    };
    const { where } = sent;
    if (cursor !== undefined || where !== undefined) refuseOffset(call.query, cursor === undefined ? 'where' : 'cursor');
    if (eventId !== undefined) {
      const all = await deliveriesOfEvent(call, eventId, filter);
      const page = all.slice(offset ?? 0, (offset ?? 0) + limit);
      return { data: page.map(deliveryToRecord), pagination: { hasMore: (offset ?? 0) + page.length < all.length, nextCursor: null } };
    }
    const start = offset === undefined ? cursor : await cursorAfter(call, filter, offset);
    if (start === null) return { data: [], pagination: cursorPagination(null) };
    const found = await call.services.messages.deliveries(call.caller.organization.id, filter, {
      limit,
      cursor: start,
      ...turnAndSignal(call),
    });
    return { data: found.items.map(deliveryToRecord), pagination: scannedPagination(found) };
  },
});

/** Newest first. RESOURCE_NOT_FOUND for an event that is not stored. */
async function deliveriesOfEvent({ services, caller }: Call, eventId: string, filter: DeliveryFilter): Promise<DeliveryView[]> {
  const org = caller.organization.id;
  const found = await services.messages.deliveriesOfEvent(org, eventId, filter);
  if (found.length === 0 && (await services.messages.events(org, { ids: [eventId] }, { limit: 1 })).items.length === 0)
    throw unknownId('event', eventId);
  return found.reverse();
}

/** INVALID_QUERY for what does not go with a parameter that was sent. */
function refuseOffset({ offset, eventId }: Query, other: 'cursor' | 'where'): void {
  const name = offset !== undefined ? 'offset' : eventId !== undefined ? 'eventId' : null;
  if (name === null) return;
  throw new PosthornError('INVALID_QUERY', `Query: ${name} cannot be combined with ${other}.`, {
    details: { [name]: [`does not go with ${other}`] },
  });
}

function tooFar(): PosthornError {
  const complaint = `lies behind more than ${maxLooked} records that the filters exclude: page by cursor`;
  return invalidParameter('offset', complaint);
}

/** Returns the cursor after `offset` deliveries; undefined: from the start, null: there is nothing. Throws INVALID_QUERY beyond `maxLooked`. */
async function cursorAfter(
  { services, caller, charge, signal }: Call,
  filter: DeliveryFilter,
  offset: number,
): Promise<string | undefined | null> {
  if (offset >= pageSize) await charge(Math.floor(offset / pageSize));
  let cursor: string | undefined;
  let looked = 0;
  for (let left = offset; left > 0; ) {
    throwIfAbandoned(signal);
    if (looked > maxLooked) throw tooFar();
    const page = { limit: Math.min(left, pageSize), ...(cursor !== undefined && { cursor }) };
    const { items, nextCursor, scanned } = await services.messages.deliveries(caller.organization.id, filter, page);
    if (nextCursor === null) return null;
    looked += scanned;
    left -= items.length;
    cursor = nextCursor;
  }
  return cursor;
}
