import { z } from 'zod';
import type { FailedSample } from '../../../data/shard/messages.ts';
import { operation } from '../../http/operation.ts';
import { queryInteger } from '../../http/query.ts';
import { findToRead, idOf } from '../../records/lookup.ts';
import { isoTime, isoTimeOrNull, timestamp } from '../../records/record-fields.ts';
import { shownBeginning } from '../shared/payload-fields.ts';

const payloadBytes = 65_536;

const sample = z
  .object({
    eventId: z.string().describe('Id of the event.'),
    messageId: z.string().describe('The delivery.'),
    destinationId: z.string().nullable().describe('Where it failed at last.'),
    attempts: z.int().min(0).describe('Attempts that were made.'),
    responseStatus: z.int().nullable().describe('Of the last attempt, as the next three.'),
    errorType: z.string().nullable().describe('Without an attempt the reason why there was none: `circuit_open` when its circuit was.'),
    errorMessage: z.string().nullable().describe('What went wrong, in words.'),
    responseBody: z.string().nullable().describe('Beginning of the answer; null without one.'),
    payload: z
      .unknown()
      .describe(
        `As it was received: JSON as it is, other text as text, everything else in base64. Of a payload of more than ${payloadBytes / 1024} KiB the beginning, as text or base64; GET /events/{id}/payload has all of it. null when it is gone.`,
      ),
    receivedAt: timestamp.nullable().describe('When the event was received.'),
    failedAt: timestamp.describe('When the delivery was given up.'),
  })
  .meta({ id: 'FailedEventSample' });

export const routeFailedSamples = operation({
  method: 'GET',
  path: '/routes/{id}/failed-event-samples',
  operationId: 'getFailedEventSamples',
  summary: 'Samples of recent failed events of a route',
  description: 'Dead letters of the route, unless they were archived, and what its schema or its transform has refused.',
  scope: 'read',
  query: z.object({ limit: queryInteger({ min: 1, max: 100 }).default(10).describe('Most samples in the answer.') }),
  answer: { status: 200, description: 'The newest first.', schema: z.object({ data: z.array(sample).describe('The samples.') }) },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const routeId = idOf(await findToRead(call, 'Route', call.params['id'] ?? ''));
    const { limit } = call.query;
    await call.hold(limit * payloadBytes);
    const samples = await call.services.messages.failedSamples(call.caller.organization.id, routeId, { limit, payloadBytes });
    return { data: await call.turn.run(samplesToRecords(samples), call.signal) };
  },
});

/** Yields after each sample: for the worst ones the JSON check takes some milliseconds. */
function* samplesToRecords(samples: readonly FailedSample[]): Generator<undefined, z.input<typeof sample>[]> {
  const records: z.input<typeof sample>[] = [];
  for (const each of samples) {
    records.push(sampleToRecord(each));
    yield;
  }
  return records;
}

function sampleToRecord({ delivery, lastAttempt, event }: FailedSample): z.input<typeof sample> {
  return {
    eventId: delivery.eventId,
    messageId: delivery.id,
    destinationId: delivery.destinationId,
    attempts: delivery.attempts,
    responseStatus: delivery.lastResponseStatus,
    errorType: delivery.lastErrorType ?? (lastAttempt === null ? (delivery.deadLetterReason ?? delivery.status) : null),
    errorMessage: delivery.lastErrorMessage,
    responseBody: lastAttempt?.responseBody ?? null,
    payload: event === null ? null : shownBeginning(event.payload, event.size).payload,
    receivedAt: isoTimeOrNull(event?.receivedAtMs ?? null),
    failedAt: isoTime(delivery.completedAtMs ?? delivery.createdAtMs),
  };
}
