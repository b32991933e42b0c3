import { z } from 'zod';
import { webhookOrganization } from '../../../../core/webhook.ts';
import type { WebhookMessageStatus } from '../../../../data/webhooks/webhook-message-view.ts';
import { text } from '../../../../resources/text.ts';
import { operation } from '../../../http/operation.ts';
import {
  cancelBody,
  cancelByFilter,
  cancelCounts,
  cancelDescription,
  cancelFilterFields,
  cancelFor,
  cancelledByFilter,
  cancelledStatus,
  cancelOne,
  cancelResult,
  countsOf,
  sharedFilterOf,
} from '../../shared/cancel.ts';
import { single } from '../../shared/envelope.ts';
import { sentNames } from '../../shared/sent-filter.ts';
import { messageFilter } from './message-narrowing.ts';

const id = text(1, 128);
const waiting = ['pending', 'failed', 'processing'] as const satisfies readonly WebhookMessageStatus[];
const defaultStatuses = waiting.slice(0, 2);
const asDeadLetter = 'Its reason is `max_retries_exceeded`, its lastErrorType `cancelled`.';

const filter = z
  .strictObject({
    status: z.array(z.enum(waiting)).min(1).max(waiting.length).describe('Statuses. Default: all but processing.'),
    eventType: sentNames.describe('Names of event types.'),
    applicationId: sentNames.describe('Ids of applications.'),
    endpointId: sentNames.describe('Ids of endpoints.'),
    ...cancelFilterFields,
  })
  .partial()
  .meta({ id: 'MessageCancelFilter', description: 'The filters of the list of messages, of those that have not ended.' });

export const cancelMessages = [
  operation({
    method: 'POST',
    path: '/outbound-messages/{id}/cancel',
    operationId: 'cancelOutboundMessage',
    summary: 'Cancel a message',
    description: `${cancelDescription} ${asDeadLetter} One that was cancelled before has the same response.`,
    scope: 'write',
    answer: {
      status: 200,
      description: 'It is cancelled.',
      schema: single(z.object({ messageId: z.string().describe('Id of the message.'), status: cancelledStatus })),
    },
    errors: ['RESOURCE_NOT_FOUND', 'CONFLICT'],
    handle: async (call) => {
      const { id: messageId = '' } = call.params;
      const status = await cancelOne(call, webhookOrganization(call.caller.organization.id), messageId, 'message');
      return { data: { messageId, status } };
    },
  }),
  operation({
    method: 'POST',
    path: '/outbound-messages/cancel-bulk',
    operationId: 'cancelOutboundMessages',
    summary: 'Cancel messages by id',
    description: `Each of them. ${cancelDescription} ${asDeadLetter} May be sent again.`,
    scope: 'write',
    isScan: true,
    body: z.strictObject({ messageIds: z.array(id).min(1).max(100).describe('Ids of messages.') }),
    requestExample: { messageIds: ['msg_00m2k3x7q4uabcdefghijklmnop'] },
    answer: {
      status: 200,
      description: 'What became of each.',
      schema: single(
        z.object({
          ...cancelCounts,
          messages: z
            .array(z.object({ messageId: z.string().describe('Id of the message.'), result: cancelResult }))
            .describe('In the order of the ids.'),
        }),
      ),
    },
    handle: async (call) => {
      const results = await cancelFor(call, webhookOrganization(call.caller.organization.id), call.body.messageIds);
      const messages = [...results].map(([messageId, result]) => ({ messageId, result }));
      return { data: { ...countsOf(results.values()), messages } };
    },
  }),
  operation({
    method: 'POST',
    path: '/outbound-messages/cancel',
    operationId: 'cancelOutboundMessagesByFilter',
    summary: 'Cancel messages by filter',
    description: `${cancelDescription} ${asDeadLetter} One request cancels up to 500: \`nextCursor\` leads on. May be sent again.`,
    scope: 'write',
    isScan: true,
    body: cancelBody(filter),
    requestExample: { filter: { eventType: 'order.paid' }, dryRun: true },
    answer: { status: 200, description: 'What this request did.', schema: single(cancelledByFilter) },
    errors: ['RESOURCE_NOT_FOUND'],
    handle: async (call) => {
      const { id: org } = call.caller.organization;
      const { status: statuses = defaultStatuses, eventType, applicationId, endpointId, ...sent } = call.body.filter;
      const shared = sharedFilterOf(sent);
      const narrow = { ...(await messageFilter(call, { eventType, applicationId, endpointId })), statuses };
      const data = await cancelByFilter(call, {
        org: webhookOrganization(org),
        narrow: ['messages', statuses, { eventType, applicationId, endpointId }],
        shared,
        list: (filter, page) => call.services.webhookMessages.messages(org, { ...filter, ...narrow }, page),
      });
      return { data };
    },
  }),
];
