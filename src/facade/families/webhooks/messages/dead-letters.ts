import { z } from 'zod';
import { PosthornError } from '../../../../core/errors.ts';
import { webhookOrganization } from '../../../../core/webhook.ts';
import { deadLetterReasons } from '../../../../data/history/message-view.ts';
import type { DeadLetterStats } from '../../../../data/shard/messages.ts';
import { reasonOf, type WebhookMessageView } from '../../../../data/webhooks/webhook-message-view.ts';
import { text } from '../../../../resources/text.ts';
import { type Call, type Family, operation } from '../../../http/operation.ts';
import { cursorPageOf, cursorQuery, pagesAreFilled, scannedPagination, searchesEnd, unknownIds } from '../../../http/pagination.ts';
import { queryTime, timeRange } from '../../../http/query.ts';
import { deleted, isDeleted, single } from '../../shared/envelope.ts';
import { messageFilterOf, turnAndSignal } from '../../shared/message-filters.ts';
import { replayRequest } from '../../shared/replay-request.ts';
import { messageFilter } from './message-narrowing.ts';
import { deadLetterReason, MessageNames, messageRecord, shownMessage } from './message-record.ts';
import { findMessage, messageFilterQuery, resend, resent } from './outbound-messages.ts';

const messageIds = z.array(text(1, 128)).min(1).max(100).describe('Ids of messages.');
const exampleIds = { messageIds: ['msg_00m2k3x7q4uabcdefghijklmnop'] };

const failingEndpoint = z
  .object({
    endpointId: z.string().describe('Id of the endpoint.'),
    endpointUrl: z.string().nullable().describe('Its URL.'),
    count: z.int().describe('Its dead letters.'),
  })
  .meta({ id: 'FailingEndpoint', description: 'An endpoint with dead letters.' });

export const deadLetters: Family = {
  name: 'Dead letters',
  noun: 'message',
  description: 'Messages that could not be delivered.',
  shown: {
    ...shownMessage,
    status: 'dlq',
    attempts: 8,
    lastResponseStatus: 500,
    lastErrorType: 'http_error',
    lastErrorMessage: 'the receiver answered 500',
    dlqReason: 'max_retries_exceeded',
    dlqMovedAt: '2026-01-31T12:00:00.000Z',
    byReason: { max_retries_exceeded: 1 },
  },
  operations: [
    operation({
      method: 'GET',
      path: '/outbound-messages/dlq/messages',
      operationId: 'listDeadLetters',
      summary: 'List dead letters',
      description: `${pagesAreFilled} ${unknownIds} ${searchesEnd}`,
      scope: 'read',
      query: z.object({
        reason: deadLetterReason.optional().describe('Only those with this reason.'),
        ...messageFilterQuery,
        startDate: queryTime.optional().describe('Not moved earlier: ISO 8601.'),
        endDate: queryTime.optional().describe('Not moved later: ISO 8601.'),
        ...cursorQuery,
      }),
      answer: { status: 200, description: 'The last moved first.', schema: cursorPageOf(messageRecord) },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { limit, cursor, startDate, endDate, reason, ...narrowing } = call.query;
        const moved = timeRange(startDate, endDate, { from: 'startDate', to: 'endDate' });
        const filter = {
          reason,
          ...messageFilterOf(narrowing),
          ...(await messageFilter(call, narrowing)),
          movedFromMs: moved.fromMs,
          movedToMs: moved.toMs,
        };
        const found = await call.services.webhookMessages.deadLetters(call.caller.organization.id, filter, {
          limit,
          cursor,
          ...turnAndSignal(call),
        });
        return { data: await new MessageNames(call).records(found.items), pagination: scannedPagination(found) };
      },
    }),
    operation({
      method: 'GET',
      path: '/outbound-messages/dlq/stats',
      operationId: 'getWebhookDeadLetterStats',
      summary: 'Count the dead letters',
      scope: 'read',
      answer: {
        status: 200,
        description: 'By reason, and the ten endpoints with the most of them.',
        schema: single(
          z.object({
            total: z.int().min(0).describe('All dead letters.'),
            byReason: z.record(z.string(), z.int()).describe('Reasons that there are.'),
            topFailingEndpoints: z.array(failingEndpoint).describe('The most first.'),
            byEndpoint: z.array(failingEndpoint).describe('The same as topFailingEndpoints.'),
          }),
        ),
      },
      handle: async (call) => ({ data: await statsOf(call) }),
    }),
    operation({
      method: 'POST',
      path: '/outbound-messages/dlq/{id}/retry',
      operationId: 'retryDeadLetter',
      summary: 'Send a dead letter again',
      description: 'As a new message with the same payload. The old one stays a dead letter, and counts how often it was sent again.',
      scope: 'write',
      answer: { status: 201, description: 'The new message is queued.', schema: single(resent) },
      errors: ['RESOURCE_NOT_FOUND', 'CONFLICT', 'PAYLOAD_NOT_FOUND', 'QUOTA_EXCEEDED', 'QUEUE_FULL'],
      handle: async (call) => ({ data: await resend(call, refuseOther) }),
    }),
    operation({
      method: 'POST',
      path: '/outbound-messages/dlq/retry-bulk',
      operationId: 'retryDeadLetters',
      summary: 'Send dead letters again',
      description:
        'Each as a new message. What is unknown, no dead letter or without payload is skipped. What was begun is finished, also after a crash or a 503.',
      scope: 'write',
      body: z.strictObject({ messageIds }),
      requestExample: exampleIds,
      answer: {
        status: 200,
        description: 'What was queued.',
        schema: single(
          z.object({
            queued: z.int().min(0).describe('How many are sent again.'),
            skipped: z.int().min(0).describe('How many are not.'),
            messages: z.array(resent.omit({ status: true })).describe('The old ones with their new ones.'),
          }),
        ),
      },
      errors: ['QUOTA_EXCEEDED', 'QUEUE_FULL'],
      handle: async (call) => {
        const wanted = [...new Set(call.body.messageIds)];
        const { services, caller } = call;
        const replays = await services.replayer.replayMany(webhookOrganization(caller.organization.id), wanted, {
          ...replayRequest(call),
          onlyDeadLetters: true,
        });
        const messages = replays.map(({ originalId, newId }) => ({ originalMessageId: originalId, newMessageId: newId }));
        return { data: { queued: messages.length, skipped: wanted.length - messages.length, messages } };
      },
    }),
    operation({
      method: 'DELETE',
      path: '/outbound-messages/dlq/{id}',
      operationId: 'archiveDeadLetter',
      summary: 'Archive a dead letter',
      description: 'Its status becomes `exhausted`, and it counts as a dead letter no more.',
      scope: 'delete',
      answer: { status: 200, description: 'It is archived.', schema: deleted },
      errors: ['RESOURCE_NOT_FOUND', 'CONFLICT'],
      handle: async (call) => {
        const message = await findMessage(call);
        refuseOther(message);
        await call.services.replayer.archive(webhookOrganization(call.caller.organization.id), message.id);
        return isDeleted;
      },
    }),
    operation({
      method: 'DELETE',
      path: '/outbound-messages/dlq/bulk',
      operationId: 'archiveDeadLetters',
      summary: 'Archive dead letters',
      description:
        'Archives each of them. What is unknown or no dead letter is left alone. What was begun is finished, also after a crash or a 503.',
      scope: 'delete',
      body: z.strictObject({ messageIds }),
      requestExample: exampleIds,
      answer: {
        status: 200,
        description: 'How many were archived.',
        schema: z.object({
          success: z.literal(true).describe('It is done.'),
          archived: z.int().min(0).describe('How many are archived.'),
          deleted: z.int().min(0).describe('The same as archived.'),
        }),
      },
      handle: async (call) => {
        const wanted = [...new Set(call.body.messageIds)];
        const inside = webhookOrganization(call.caller.organization.id);
        const archived = await call.services.replayer.archiveMany(inside, wanted, { onlyDeadLetters: true });
        return { success: true as const, archived: archived.length, deleted: archived.length };
      },
    }),
  ],
};

/** CONFLICT for a message that is no dead letter. */
function refuseOther({ status }: WebhookMessageView): void {
  if (status !== 'dlq') throw new PosthornError('CONFLICT', `The message is ${status}: it is not a dead letter.`);
}

async function statsOf({ services, caller }: Call) {
  const org = caller.organization.id;
  const { total, byReason: counted, topDestinations } = await services.replayer.deadLetterStats(webhookOrganization(org));
  const urls = await new MessageNames({ services, caller }).urls(topDestinations.map(({ destinationId }) => destinationId));
  const byEndpoint = topDestinations.map(({ destinationId, count }) => ({
    endpointId: destinationId,
    endpointUrl: urls.get(destinationId) ?? null,
    count,
  }));
  return { total, byReason: countedByReason(counted), topFailingEndpoints: byEndpoint, byEndpoint };
}

/** Under the reasons of the API. */
function countedByReason(counted: DeadLetterStats['byReason']): Record<string, number> {
  const byReason: Record<string, number> = {};
  for (const reason of deadLetterReasons) {
    const count = counted[reason] ?? 0;
    if (count > 0) byReason[reasonOf(reason)] = (byReason[reasonOf(reason)] ?? 0) + count;
  }
  return byReason;
}
