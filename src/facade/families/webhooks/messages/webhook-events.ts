import { z } from 'zod';
import { PosthornError } from '../../../../core/errors.ts';
import { type Family, operation } from '../../../http/operation.ts';
import { single } from '../../shared/envelope.ts';
import { shownPayload } from '../../shared/payload-fields.ts';
import { MessageNames, messageRecord, shownMessage } from './message-record.ts';
import { subscriptionsUnreachedBy, unreachedSubscriptions } from './unreached-subscriptions.ts';
import { eventItem, toEventItem } from './webhook-event-record.ts';

const record = eventItem
  .extend({
    endpointId: z.string().nullable().describe('The one endpoint that it was sent to alone.'),
    payload: z.unknown().describe('The payload; null when it is no longer stored.'),
    messages: z.array(messageRecord).describe('At most the first 1,000: messageCount says how many there are.'),
    unreached: unreachedSubscriptions,
  })
  .meta({ id: 'WebhookEvent' });

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
    messages: [],
    unreached: { total: 0, byReason: {}, subscriptions: [], scanned: 1, isComplete: true },
  },
  operations: [
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
        const found = await services.webhookMessages.event(caller.organization.id, params['id'] ?? '');
        if (found === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such event.');
        const item = toEventItem(found.event, call);
        return {
          data: {
            ...item,
            endpointId: item.endpointIds.length === 1 ? item.endpointIds[0] : null,
            payload: shownPayload(found.payload).payload,
            messages: await new MessageNames(call).records(found.messages),
            unreached: await subscriptionsUnreachedBy(call, found),
          },
        };
      },
    }),
  ],
};
