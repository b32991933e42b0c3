import { z } from 'zod';
import { invalidParameter, PosthornError } from '../../../core/errors.ts';
import { joinedHeaders } from '../../../core/joined-headers.ts';
import { keptHeaders } from '../../../core/kept-headers.ts';
import type { EventFilter, EventView } from '../../../data/shard/messages.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { cursorPageOf, cursorQuery, pagesAreFilled, scannedPagination, searchesEnd, unknownIds } from '../../http/pagination.ts';
import { queryFlag, queryList, timeRange, timeRangeQuery } from '../../http/query.ts';
import { fullPayloadMemory, payloadPieceMemory } from '../../http/request-memory.ts';
import { completePieces, StreamedAnswer } from '../../http/streamed-answer.ts';
import { filterIds } from '../../records/filter-ids.ts';
import { isoTime, isoTimeOrNull, nameOf, organizationId, timestamp } from '../../records/record-fields.ts';
import {
  errorTypeQuery,
  idsQuery,
  messageFilterOf,
  namedQuery,
  outcomeParameters,
  turnAndSignal,
  whereQuery,
} from '../shared/message-filters.ts';
import { shownBeginning, shownPayload } from '../shared/payload-fields.ts';
import { deliveryRecord, deliveryToRecord } from './delivery-fields.ts';
import { deliveryEndTypes } from './delivery-list.ts';
import { unreached, unreachedBy } from './unreached.ts';

const eventStatus = z.enum(['pending', 'delivered', 'partial', 'failed', 'filtered', 'no_routes']) satisfies z.ZodType<EventView['status']>;

const eventStatusRule =
  'pending: a delivery has not ended. delivered: all have arrived except those excluded by filters. partial: some have failed. failed: none has arrived. ' +
  'filtered: the filter of every route has excluded it. no_routes: no route took it.';

const item = z
  .object({
    id: z.string().describe('Id of the event.'),
    organizationId,
    sourceId: z.string().describe('Id of the source.'),
    source: z.string().describe('Slug of the source.'),
    sourceSlug: z.string().describe('The same as source.'),
    sourceName: z.string().describe('Its slug when the source no longer exists.'),
    receivedAt: timestamp.describe('When it was received.'),
    method: z.string().describe('Method of the request.'),
    contentType: z.string().describe('Content type of the payload.'),
    size: z.int().min(0).describe('Bytes of the payload.'),
    signatureValid: z.boolean().nullable().describe('null: the source checks no signatures.'),
    duplicateOf: z
      .string()
      .nullable()
      .describe('The event that it repeats: it came again after the window for duplicates, or a replay has sent it again.'),
    deliverAt: timestamp.nullable().describe('When the sender wanted the first attempts at the earliest; null: at once.'),
    status: eventStatus.describe(eventStatusRule),
    deliveryCount: z.int().min(0).describe('Deliveries of the event, filtered ones and replays among them.'),
  })
  .meta({ id: 'EventItem' });

const record = item
  .extend({
    query: z.string().describe('Query of its URL as it was sent, without the question mark and credentials.'),
    headers: z.record(z.string(), z.string()).describe('Headers of the request.'),
    payload: z.unknown().describe('Above 1 MiB its first 64 KiB, as text or base64; GET /events/{id}/payload has all of it.'),
    payloadTruncated: z.literal(true).optional().describe('`payload` is only the beginning.'),
    payloadEncoding: z
      .enum(['json', 'text', 'base64'])
      .nullable()
      .describe('json: as it is; text; base64 of other bytes; null when the payload is gone.'),
    deliveries: z.array(deliveryRecord).describe('The first 1,000; GET /deliveries has all.'),
    unreached,
  })
  .meta({ id: 'Event' });

const ofDelivery = {
  routeId: namedQuery('Ids or slugs of routes'),
  destinationId: namedQuery('Ids or slugs of destinations'),
  errorType: errorTypeQuery(deliveryEndTypes),
  ...outcomeParameters,
};
type OfDelivery = z.output<z.ZodObject<typeof ofDelivery>>;
const byDelivery =
  '`routeId`, `destinationId`, `errorType`, `responseStatus`, `attemptsMin`, `attemptsMax`, `failedFrom` and `failedTo` select events with a delivery that meets all of them; of more than 1,000 deliveries the first 1,000 are evaluated. Without `to` the events may be in the order of the first such delivery.';

export const events: Family = {
  name: 'Events',
  noun: 'event',
  description: 'What sources received.',
  shown: {
    source: 'github',
    query: 'device=7&state=on',
    headers: { 'content-type': 'application/json' },
    deliveries: [],
    unreached: { total: 0, byReason: {}, routes: [] },
  },
  operations: [
    operation({
      method: 'GET',
      path: '/events',
      operationId: 'listEvents',
      summary: 'List events',
      description: `${pagesAreFilled} ${unknownIds} ${searchesEnd} ${byDelivery}`,
      scope: 'read',
      query: z.object({
        ...cursorQuery,
        sourceId: namedQuery('Ids or slugs of sources'),
        id: idsQuery,
        status: queryList(eventStatus, 'Only those with this status.'),
        signatureValid: queryFlag
          .optional()
          .describe('Whether the signature was right (`true`, 1) or wrong (`false`, 0); sources without a secret check none.'),
        ...ofDelivery,
        where: whereQuery,
        ...timeRangeQuery,
        fromDate: timeRangeQuery.from.describe('The same as from.'),
        toDate: timeRangeQuery.to.describe('The same as to.'),
      }),
      answer: { status: 200, description: 'Newest first.', schema: cursorPageOf(item) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const {
          limit,
          cursor,
          id,
          sourceId,
          status,
          signatureValid,
          where,
          fromDate,
          toDate,
          from = fromDate,
          to = toDate,
          ...sent
        } = call.query;
        refuseOther({ from, to }, { from: fromDate, to: toDate });
        const filter = {
          ids: id,
          sourceId: await filterIds(call, 'Source', sourceId),
          statuses: status,
          signatureValid,
          delivery: await deliveryFilter(call, sent),
          where,
          ...timeRange(from, to),
        };
        const page = { limit, cursor, ...turnAndSignal(call) };
        const found = await call.services.messages.events(call.caller.organization.id, filter, page);
        return { data: found.items.map((event) => toItem(event, call)), pagination: scannedPagination(found) };
      },
    }),
    operation({
      method: 'GET',
      path: '/events/{id}',
      operationId: 'getEvent',
      summary: 'Read an event with its deliveries',
      scope: 'read',
      answer: { status: 200, description: 'The event.', schema: record },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call): Promise<z.input<typeof record>> => {
        const { services, caller, params } = call;
        const { id = '' } = params;
        await call.hold(fullPayloadMemory);
        const event = await services.messages.event(caller.organization.id, id);
        if (event === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such event.');
        const deliveries = await services.messages.deliveriesOfEvent(caller.organization.id, id);
        return {
          ...toItem(event, call),
          query: event.query,
          headers: joinedHeaders(keptHeaders(event.headers)),
          ...(event.beginning === null ? shownPayload(event.payload) : shownBeginning(event.beginning, event.size)),
          ...(event.beginning !== null && { payloadTruncated: true as const }),
          deliveries: deliveries.map(deliveryToRecord),
          unreached: await unreachedBy(call, event, deliveries),
        };
      },
    }),
    operation({
      method: 'GET',
      path: '/events/{id}/payload',
      operationId: 'getEventPayload',
      summary: 'Download the payload of an event',
      description: 'The bytes that were received. When a part of them expires meanwhile, the response is aborted.',
      scope: 'read',
      answer: { status: 200, description: 'The payload.', bytes: 'The bytes that were received, whatever their type is.' },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async ({ services, caller, hold, params: { id = '' } }) => {
        await hold(payloadPieceMemory);
        const payload = await services.messages.payload(caller.organization.id, id);
        if (payload === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such event.');
        const headers = {
          'Content-Type': 'application/octet-stream',
          'Content-Length': String(payload.size),
          'Content-Disposition': `attachment; filename="${id}"`,
          'X-Content-Type-Options': 'nosniff',
        };
        return new StreamedAnswer(headers, completePieces(payload.pieces, payloadGone));
      },
    }),
  ],
};

/** Returns the conditions on deliveries; undefined: the query has none. */
async function deliveryFilter(call: Call, { routeId, destinationId, ...sent }: OfDelivery): Promise<EventFilter['delivery']> {
  if ([routeId, destinationId, ...Object.values(sent)].every((each) => each === undefined)) return undefined;
  return {
    ...messageFilterOf(sent),
    routeId: await filterIds(call, 'Route', routeId),
    destinationId: await filterIds(call, 'Destination', destinationId),
  };
}

/** Throws INVALID_QUERY if a time is sent under both its names with different values. */
function refuseOther(times: { from: string | undefined; to: string | undefined }, synonyms: typeof times): void {
  for (const name of ['from', 'to'] as const) {
    if (synonyms[name] === undefined || synonyms[name] === times[name]) continue;
    throw invalidParameter(name, `contradicts ${name}Date`);
  }
}

function payloadGone(): PosthornError {
  return new PosthornError('RESOURCE_NOT_FOUND', 'The payload of the event is no longer stored.');
}

function toItem(event: EventView, { services, caller }: Call): z.input<typeof item> {
  const {
    org,
    query: _query,
    headers: _headers,
    payload: _payload,
    beginning: _beginning,
    webhook: _webhook,
    receivedAtMs,
    notBeforeMs,
    ...rest
  } = event;
  const source = services.caches.Source.getById(event.sourceId, caller.organization.namespace);
  return {
    ...rest,
    organizationId: org,
    sourceSlug: event.source,
    sourceName: source === undefined ? event.source : nameOf(source),
    receivedAt: isoTime(receivedAtMs),
    deliverAt: isoTimeOrNull(notBeforeMs),
  };
}
