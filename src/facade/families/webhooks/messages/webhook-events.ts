import { z } from 'zod';
import { PosthornError } from '../../../../core/errors.ts';
import { type Family, operation } from '../../../http/operation.ts';
import { cursorPageOf, cursorQuery, pagesAreFilled, scannedPagination, searchesEnd, unknownIds } from '../../../http/pagination.ts';
import { queryList, timeRangeQuery } from '../../../http/query.ts';
import { fullPayloadMemory } from '../../../http/request-memory.ts';
import { single } from '../../shared/envelope.ts';
import { messageFilterOf, messageFilterParameters, namedQuery, turnAndSignal } from '../../shared/message-filters.ts';
import { shownPayload } from '../../shared/payload-fields.ts';
import { messageFilter } from './message-narrowing.ts';
import { MessageNames, messageRecord, messageStatus, shownMessage } from './message-record.ts';
import { eventTypeQuery, messageErrorTypeQuery } from './outbound-messages.ts';
import { subscriptionsUnreachedBy, unreachedSubscriptions } from './unreached-subscriptions.ts';
import { eventItem, toEventItem } from './webhook-event-record.ts';

const record = eventItem
  .extend({
    endpointId: z.string().nullable().describe('The one endpoint that it was sent to alone.'),
    payload: z.unknown().describe('The payload; null when it is no longer stored.'),
    payloadEncoding: z
      .enum(['json', 'text', 'base64'])
      .nullable()
      .describe('json: as it is; text; base64 of other bytes; null when the payload is no longer stored.'),
    messages: z.array(messageRecord).describe('At most the first 1,000: messageCount is their number.'),
    unreached: unreachedSubscriptions,
  })
  .meta({ id: 'WebhookEvent' });

const ofApplication = ' The event has a message for it, or was sent to it alone.';
const byMessage = 'One message has to meet all filters of messages; the first 1,000 of an event are read.';

/** Events that were sent, as they are stored. */
export const webhookEvents: Family = {
  name: 'Webhook events',
  noun: 'event',
  description: 'What was sent to webhook endpoints.',
  shown: {
    ...shownMessage,
    id: 'evt_00m2k3x7q4uabcdefghijklmnop',
    metadata: {},
    deliverAt: null,
    idempotencyKey: 'order-17-paid',
    applicationId: null,
    endpointId: null,
    endpointIds: [],
    messageCount: 1,
    payload: { id: 'o-17', total: 12.5 },
    payloadEncoding: 'json',
    messages: [],
    unreached: { total: 0, byReason: {}, subscriptions: [], scanned: 1, isComplete: true },
  },
  operations: [
    operation({
      method: 'GET',
      path: '/webhook-events',
      operationId: 'listWebhookEvents',
      summary: 'List events that were sent to endpoints',
      description: `${pagesAreFilled} ${unknownIds} ${searchesEnd} ${byMessage}`,
      scope: 'read',
      query: z.object({
        eventType: eventTypeQuery,
        applicationId: namedQuery('Ids of applications', ofApplication),
        endpointId: namedQuery('Ids of endpoints'),
        status: queryList(messageStatus, 'Only those that have a message with this status.'),
        errorType: messageErrorTypeQuery,
        ...messageFilterParameters,
        ...timeRangeQuery,
        ...cursorQuery,
      }),
      answer: { status: 200, description: 'Newest first.', schema: cursorPageOf(eventItem) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { limit, cursor, status, ...narrowing } = call.query;
        const filter = { statuses: status, ...messageFilterOf(narrowing), ...(await messageFilter(call, narrowing)) };
        const page = { limit, cursor, ...turnAndSignal(call) };
        const found = await call.services.webhookMessages.events(call.caller.organization.id, filter, page);
        return { data: found.items.map((event) => toEventItem(event, call)), pagination: scannedPagination(found) };
      },
    }),
    operation({
      method: 'GET',
      path: '/webhook-events/{id}',
      operationId: 'getWebhookEvent',
      summary: 'Read an event with its messages',
      scope: 'read',
      isScan: true,
      answer: { status: 200, description: 'The event.', schema: single(record) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { services, caller, params } = call;
        await call.hold(fullPayloadMemory);
        const found = await services.webhookMessages.event(caller.organization.id, params['id'] ?? '');
        if (found === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such event.');
        const item = toEventItem(found.event, call);
        return {
          data: {
            ...item,
            endpointId: item.endpointIds.length === 1 ? item.endpointIds[0] : null,
            ...shownPayload(found.payload),
            messages: await new MessageNames(call).records(found.messages),
            unreached: await subscriptionsUnreachedBy(call, found),
          },
        };
      },
    }),
  ],
};
