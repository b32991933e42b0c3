import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../../../core/errors.ts';
import { webhookOrganization } from '../../../../core/webhook.ts';
import { endErrorTypes } from '../../../../data/shard/message-conditions.ts';
import type { WebhookMessageView } from '../../../../data/webhooks/webhook-message-view.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { cursorPageOf, cursorQuery, pagesAreFilled, scannedPagination, searchesEnd, unknownIds } from '../../../http/pagination.ts';
import { queryList, timeRangeQuery } from '../../../http/query.ts';
import { single } from '../../shared/envelope.ts';
import { errorTypeQuery, messageFilterOf, messageFilterParameters, namedQuery, turnAndSignal } from '../../shared/message-filters.ts';
import { replayRequest } from '../../shared/replay-request.ts';
import { cancelMessages } from './message-cancel.ts';
import { messageFilter } from './message-narrowing.ts';
import { MessageNames, messageAttempt, messageRecord, messageStatus, shownMessage, toAttempt } from './message-record.ts';

const count = z.int().min(0);

export const eventTypeQuery = namedQuery('Names of event types');
export const messageErrorTypeQuery = errorTypeQuery(['circuit_open', ...endErrorTypes]);

export const messageFilterQuery = {
  eventType: eventTypeQuery,
  applicationId: namedQuery('Ids of applications'),
  endpointId: namedQuery('Ids of endpoints'),
  errorType: messageErrorTypeQuery,
  ...messageFilterParameters,
  ...timeRangeQuery,
};

export const resent = z
  .object({
    originalMessageId: z.string().describe('Id of the old message.'),
    newMessageId: z.string().describe('Id of the new message.'),
    status: z.literal('queued').describe('The new message is pending.'),
  })
  .meta({ id: 'ResentMessage', description: 'The old message and the new one.' });

const counts = z.object({
  pending: count.describe('Queued.'),
  processing: count.describe('Being delivered.'),
  success: count.describe('Delivered.'),
  failed: count.describe('Will be tried again.'),
  exhausted: count.describe('Ended without success.'),
  dlq: count.describe('Dead letters.'),
  total: count.describe('All of them.'),
});

export const outboundMessages: Family = {
  name: 'Outbound messages',
  noun: 'message',
  description: 'One for each endpoint that an event goes to.',
  shown: { ...shownMessage, errorType: null, errorMessage: null, responseStatus: 200, attemptNumber: 1 },
  operations: [
    operation({
      method: 'GET',
      path: '/outbound-messages',
      operationId: 'listOutboundMessages',
      summary: 'List messages',
      description: `${pagesAreFilled} ${unknownIds} ${searchesEnd}`,
      scope: 'read',
      query: z.object({ status: queryList(messageStatus, 'Only those with this status.'), ...messageFilterQuery, ...cursorQuery }),
      answer: {
        status: 200,
        description: 'Newest first; dead letters alone in the order in which they became ones.',
        schema: cursorPageOf(messageRecord),
      },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { limit, cursor, status, ...narrowing } = call.query;
        const filter = { statuses: status, ...messageFilterOf(narrowing), ...(await messageFilter(call, narrowing)) };
        const found = await call.services.webhookMessages.messages(call.caller.organization.id, filter, {
          limit,
          cursor,
          ...turnAndSignal(call),
        });
        return { data: await new MessageNames(call).records(found.items), pagination: scannedPagination(found) };
      },
    }),
    operation({
      method: 'GET',
      path: '/outbound-messages/stats/summary',
      operationId: 'getOutboundMessageStats',
      summary: 'Count messages by status',
      description: 'As it is now, of the messages that are still kept. total is their sum.',
      scope: 'read',
      answer: {
        status: 200,
        description: 'The counts.',
        schema: single(counts),
        example: { data: { pending: 4, processing: 1, success: 1250, failed: 2, exhausted: 1, dlq: 3, total: 1261 } },
      },
      handle: async ({ services, caller }) => {
        const byStatus = await services.webhookMessages.counts(caller.organization.id);
        return { data: { ...byStatus, total: Object.values(byStatus).reduce((sum, each) => sum + each, 0) } };
      },
    }),
    operation({
      method: 'GET',
      path: '/outbound-messages/{id}',
      operationId: 'getOutboundMessage',
      summary: 'Read a message',
      scope: 'read',
      answer: { status: 200, description: 'The message.', schema: single(messageRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const [data] = await new MessageNames(call).records([await findMessage(call)]);
        return { data };
      },
    }),
    operation({
      method: 'GET',
      path: '/outbound-messages/{id}/attempts',
      operationId: 'listOutboundMessageAttempts',
      summary: 'List the attempts of a message',
      scope: 'read',
      answer: {
        status: 200,
        description: 'The first attempt first.',
        schema: z.object({ data: z.array(messageAttempt).describe('The attempts.') }),
      },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const message = await findMessage(call);
        const attempts = await call.services.webhookMessages.attempts(call.caller.organization.id, message.id);
        return { data: attempts.map((attempt) => toAttempt(message.id, attempt)) };
      },
    }),
    operation({
      method: 'POST',
      path: '/outbound-messages/{id}/replay',
      operationId: 'replayOutboundMessage',
      summary: 'Replay a message',
      description:
        'Sends the event once more to the endpoint, as a new message with the same payload. The old one stays as it is; it must have ended, or have failed and wait for its next attempt.',
      scope: 'write',
      answer: { status: 201, description: 'The new message is queued.', schema: single(resent) },
      errors: ['RESOURCE_NOT_FOUND', 'CONFLICT', 'PAYLOAD_NOT_FOUND', 'QUOTA_EXCEEDED', 'QUEUE_FULL'],
      handle: async (call) => ({ data: await resend(call, refuseUnderWay) }),
    }),
    ...cancelMessages,
  ],
};

/** The message of the path; RESOURCE_NOT_FOUND when the organization has no such one. */
export async function findMessage({ services, caller, params: { id: wanted = '' } }: Call): Promise<WebhookMessageView> {
  const message = await services.webhookMessages.message(caller.organization.id, wanted);
  if (message === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such message.');
  return message;
}

/**
 * Makes a new message of that of the path, unless `refuse` throws. PAYLOAD_NOT_FOUND when its payload is gone, and QUOTA_EXCEEDED. With an
 * Idempotency-Key an equal, aborted request is finished instead.
 */
export async function resend(call: Call, refuse: (message: WebhookMessageView) => void): Promise<z.input<typeof resent>> {
  const { services, caller, params } = call;
  const { id: originalMessageId = '' } = params;
  const newMessageId = await services.replayer
    .replay(webhookOrganization(caller.organization.id), originalMessageId, {
      ...replayRequest(call),
      alsoBetweenAttempts: true,
      check: async () => refuse(await findMessage(call)),
    })
    .catch((error: unknown) => {
      if (!isPosthornError(error, 'PAYLOAD_NOT_FOUND')) throw error;
      throw new PosthornError('PAYLOAD_NOT_FOUND', 'payload_not_found: the payload of the message is no longer stored.', { cause: error });
    });
  return { originalMessageId, newMessageId, status: 'queued' };
}

function refuseUnderWay({ status }: WebhookMessageView): void {
  if (status === 'pending' || status === 'processing')
    throw new PosthornError('CONFLICT', `The message is ${status}: it has not ended yet.`);
}
