import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { sentSynonym, underBothNames } from '../../records/synonyms.ts';
import { replayRequest } from '../shared/replay-request.ts';
import { cancelDeliveries } from './delivery-cancel.ts';
import { attemptRecord, attemptToRecord, deliveryRecord, deliveryToRecord } from './delivery-fields.ts';
import { listDeliveries } from './delivery-list.ts';

const maxReplayed = 100;
const ids = z.array(z.string().min(1).max(128)).min(1).max(maxReplayed).describe('Ids of deliveries.');
const replayed = z.object({
  originalDeliveryId: z.string().describe('Id of the old delivery.'),
  newDeliveryId: z.string().describe('Id of the new delivery.'),
  status: z.literal('queued').describe('The new delivery is pending.'),
});
const replayedOne = replayed.extend({
  deliveryId: z.string().describe('The same as newDeliveryId.'),
  message: z.string().describe('The same in words.'),
});
const replayedMany = z.object({
  message: z.string().describe('The same in words.'),
  queued: z.int().describe('How many are replayed.'),
  skipped: z.int().describe('How many are not.'),
  deliveries: z.array(replayed.omit({ status: true })).describe('The old ones with their new ones.'),
});

export const deliveries: Family = {
  name: 'Deliveries',
  noun: 'delivery',
  description: 'The outcome of each event at each destination.',
  shown: {
    status: 'delivered',
    attempts: 1,
    maxAttempts: 11,
    nextAttemptAt: null,
    waitingFor: null,
    waitingUntil: null,
    expiresAt: null,
    lastResponseStatus: 200,
    lastErrorType: null,
    lastErrorMessage: null,
    deadLetterReason: null,
    failedOverFrom: null,
    replayedFrom: null,
    attemptDetails: [
      {
        attemptNumber: 1,
        startedAt: '2026-01-31T12:00:00.000Z',
        durationMs: 87,
        responseStatus: 200,
        responseBody: 'ok',
        errorType: null,
        errorMessage: null,
        payloadForm: 'full',
        signatureScheme: 'hmac-sha256',
      },
    ],
    byReason: { max_retries_exceeded: 1 },
  },
  operations: [
    listDeliveries,
    operation({
      method: 'GET',
      path: '/deliveries/{id}',
      operationId: 'getDelivery',
      summary: 'Read a delivery with its attempts',
      scope: 'read',
      answer: {
        status: 200,
        description: 'The delivery.',
        schema: deliveryRecord.extend({ attemptDetails: z.array(attemptRecord).describe('Its attempts, the first first.') }),
      },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async ({ services, caller, params: { id = '' } }) => {
        const { id: organization } = caller.organization;
        const delivery = await services.messages.delivery(organization, id);
        if (delivery === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such delivery.');
        const attempts = await services.messages.attempts(organization, id);
        return { ...deliveryToRecord(delivery), attemptDetails: attempts.map(attemptToRecord) };
      },
    }),
    operation({
      method: 'POST',
      path: '/deliveries/{id}/replay',
      operationId: 'replayDelivery',
      summary: 'Replay a delivery',
      description: 'Sends the event of an ended delivery once more to its destination, as a new delivery. The old one stays as it is.',
      scope: 'write',
      answer: { status: 201, description: 'The new delivery is queued.', schema: replayedOne },
      errors: ['RESOURCE_NOT_FOUND', 'CONFLICT', 'PAYLOAD_NOT_FOUND', 'QUOTA_EXCEEDED', 'QUEUE_FULL'],
      handle: async (call) => {
        const { services, caller, params } = call;
        const { id = '' } = params;
        const newDeliveryId = await services.replayer.replay(caller.organization.id, id, replayRequest(call));
        return {
          originalDeliveryId: id,
          newDeliveryId,
          status: 'queued' as const,
          deliveryId: newDeliveryId,
          message: 'The delivery is queued.',
        };
      },
    }),
    operation({
      method: 'POST',
      path: '/deliveries/bulk-replay',
      operationId: 'replayDeliveries',
      summary: 'Replay deliveries',
      description:
        'Replays each of them. What is unknown, still under way or without payload is skipped. What was begun is finished, also after a crash or a 503.',
      scope: 'write',
      body: z
        .strictObject({ ids: ids.optional(), deliveryIds: sentSynonym(ids, 'ids') })
        .refine((sent) => sent.ids !== undefined || sent.deliveryIds !== undefined, { path: ['ids'], error: 'or deliveryIds is required' })
        .meta({ anyOf: [{ required: ['ids'] }, { required: ['deliveryIds'] }] }),
      requestExample: { ids: ['msg_00m2k3x7q4uabcdefghijklmnop'] },
      answer: { status: 200, description: 'What was queued.', schema: replayedMany },
      errors: ['QUOTA_EXCEEDED', 'QUEUE_FULL'],
      handle: async (call) => {
        const wanted = [...new Set(underBothNames<string[]>(call.body, { of: 'ids', synonym: 'deliveryIds' }))];
        const replays = await call.services.replayer.replayMany(call.caller.organization.id, wanted, replayRequest(call));
        return replaysOf(replays, wanted.length);
      },
    }),
    operation({
      method: 'POST',
      path: '/deliveries/bulk-replay-events',
      operationId: 'replayEvents',
      summary: 'Replay all deliveries of events',
      description: `Those that are no replays themselves, together at most ${maxReplayed}, as bulk-replay does.`,
      scope: 'write',
      body: z.strictObject({ eventIds: ids }),
      requestExample: { eventIds: ['evt_00m2k3x7q4uabcdefghijklmnop'] },
      answer: {
        status: 200,
        description: 'What was queued.',
        schema: replayedMany.extend({ eventsProcessed: z.int().describe('Events that there are.') }),
      },
      errors: ['QUOTA_EXCEEDED', 'QUEUE_FULL'],
      handle: async (call) => {
        const { wanted, events } = await deliveriesOf(call, [...new Set(call.body.eventIds)]);
        const replays = await call.services.replayer.replayMany(call.caller.organization.id, wanted, replayRequest(call));
        return { ...replaysOf(replays, wanted.length), eventsProcessed: events };
      },
    }),
    ...cancelDeliveries,
    operation({
      method: 'POST',
      path: '/deliveries/{id}/archive',
      operationId: 'archiveDelivery',
      summary: 'Archive a dead letter',
      description: 'Its status becomes `failed`, and it counts as a dead letter no more.',
      scope: 'delete',
      answer: { status: 204, description: 'Archived.' },
      errors: ['RESOURCE_NOT_FOUND', 'CONFLICT'],
      handle: async ({ services, caller, params: { id = '' } }) => {
        await services.replayer.archive(caller.organization.id, id);
      },
    }),
    operation({
      method: 'POST',
      path: '/deliveries/bulk-archive',
      operationId: 'archiveDeliveries',
      summary: 'Archive dead letters',
      description:
        'Archives each of them. What is unknown or no dead letter is skipped. What was begun is finished, also after a crash or a 503.',
      scope: 'delete',
      body: z.strictObject({ ids }),
      requestExample: { ids: ['msg_00m2k3x7q4uabcdefghijklmnop'] },
      answer: {
        status: 200,
        description: 'How many were archived.',
        schema: z.object({ archived: z.int().describe('How many are archived.'), skipped: z.int().describe('How many are not.') }),
      },
      handle: async ({ services, caller, body }) => {
        const wanted = [...new Set(body.ids)];
        const { length: archived } = await services.replayer.archiveMany(caller.organization.id, wanted);
        return { archived, skipped: wanted.length - archived };
      },
    }),
    operation({
      method: 'GET',
      path: '/deliveries/dead-letter-stats',
      operationId: 'getDeadLetterStats',
      summary: 'Count the dead letters',
      scope: 'read',
      answer: {
        status: 200,
        description: 'By reason, and the destinations with the most of them.',
        schema: z.object({
          total: z.int().describe('All dead letters.'),
          byReason: z.record(z.string(), z.int()).describe('How many there are of each reason.'),
          topFailingDestinations: z
            .array(z.object({ destinationId: z.string().describe('Id of the destination.'), count: z.int().describe('Its dead letters.') }))
            .describe('The most first.'),
        }),
      },
      handle: async ({ services, caller }) => {
        const { total, byReason, topDestinations } = await services.replayer.deadLetterStats(caller.organization.id);
        return { total, byReason, topFailingDestinations: topDestinations };
      },
    }),
  ],
};

/** The deliveries of events that are no replays, and how many of the events there are. VALIDATION_FAILED when they are too many for one request. */
async function deliveriesOf({ services, caller }: Call, eventIds: readonly string[]): Promise<{ wanted: string[]; events: number }> {
  const wanted: string[] = [];
  let events = 0;
  for (const eventId of eventIds) {
    const all = await services.messages.deliveriesOfEvent(caller.organization.id, eventId);
    if (all.length > 0) events += 1;
    wanted.push(...all.filter(({ replayedFrom }) => replayedFrom === null).map(({ id }) => id));
    if (wanted.length > maxReplayed)
      throw new PosthornError('VALIDATION_FAILED', `eventIds: the events have more than ${maxReplayed} deliveries: name fewer.`);
  }
  return { wanted, events };
}

function replaysOf(replays: readonly { originalId: string; newId: string }[], wanted: number): z.input<typeof replayedMany> {
  const queued = replays.map(({ originalId, newId }) => ({ originalDeliveryId: originalId, newDeliveryId: newId }));
  const skipped = wanted - queued.length;
  return { message: `${queued.length} queued, ${skipped} skipped.`, queued: queued.length, skipped, deliveries: queued };
}
