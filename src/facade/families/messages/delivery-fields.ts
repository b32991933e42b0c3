import { z } from 'zod';
import { sentForm } from '../../../core/sent-as.ts';
import type { AttemptView, DeliveryView } from '../../../data/shard/messages.ts';
import { detailField, shownAttemptDetail } from '../../../data/shard/shown-attempt-detail.ts';
import { type WaitReason, waitReasons } from '../../../data/shard/waits.ts';
import { isoTime, isoTimeOrNull, organizationId, timestamp } from '../../records/record-fields.ts';
import { cancellation, cancellationField } from '../shared/cancel.ts';
import { sentFormFields } from '../shared/sent-form.ts';

/** Records of deliveries and attempts, as events and deliveries show them. */

export const deliveryStatus = z.enum([
  'pending',
  'processing',
  'retrying',
  'circuit_open',
  'delivered',
  'failed',
  'filtered',
  'schema_failed',
  'transform_failed',
  'dlq',
]) satisfies z.ZodType<DeliveryView['status']>;

/** Details beyond the reason name. */
const waits: Partial<Record<WaitReason, string>> = {
  destination_suspended: 'the plan lacks what its destination uses',
  concurrency: 'the maximum number is under way',
  capacity: 'workers have their maximum there',
  queue: 'behind others in the fair queue',
};

/** Reasons of a message's wait, a closed list. */
export function waitingFor<R extends WaitReason>(reasons: readonly R[]) {
  return z
    .enum(reasons)
    .nullable()
    .describe(
      `Why it is not sent now; null when it is under way or has ended. ${reasons
        .flatMap((reason) => (waits[reason] === undefined ? [] : [`${reason}: ${waits[reason]}`]))
        .join('. ')}.`,
    );
}

export const waitingUntil = timestamp.nullable().describe('When this ends at the earliest; null where it is unknown.');

export const deliveryRecord = z
  .object({
    id: z.string().describe('Id of the delivery.'),
    organizationId,
    eventId: z.string().describe('Id of the event.'),
    routeId: z.string().describe('Id of the route.'),
    destinationId: z.string().nullable().describe('Id of the destination where it is queued or ended; null: none.'),
    status: deliveryStatus.describe('What became of it.'),
    attempts: z.int().min(0).describe('Attempts that were made.'),
    maxAttempts: z.int().min(0).describe('Attempts after which it is given up.'),
    nextAttemptAt: timestamp
      .nullable()
      .describe('Earliest time of the next attempt while retrying or circuit_open, past when it waits for something else.'),
    waitingFor: waitingFor(waitReasons),
    waitingUntil,
    lastResponseStatus: z.int().nullable().describe('Status of the last answer; null without one.'),
    lastErrorType: z
      .string()
      .nullable()
      .describe(
        'timeout, http_error, network, dns, tls or blocked: of the last attempt. Without one circuit_open where it waits for an open circuit, failed over or ended because of it. secret_decryption_failed or cancelled of such a dead letter.',
      ),
    lastErrorMessage: z.string().nullable().describe('What went wrong last, in words.'),
    deadLetterReason: z.string().nullable().describe('Why it is a dead letter; null when it is none.'),
    failedOverFrom: z.string().nullable().describe('Id of the destination that it has left; null: none.'),
    replayedFrom: z.string().nullable().describe('Id of the delivery that it replays; null: none.'),
    createdAt: timestamp.describe('When it was made.'),
    completedAt: timestamp.nullable().describe('When it ended; null before.'),
    cancellation,
    expiresAt: timestamp
      .nullable()
      .describe('When it is given up unless it has been delivered by then; null: it has ended, or does not expire.'),
    attemptCount: z.int().min(0).describe('The same as attempts.'),
    nextRetryAt: timestamp.nullable().describe('The same as nextAttemptAt.'),
    responseStatus: z.int().nullable().describe('The same as lastResponseStatus.'),
    errorMessage: z.string().nullable().describe('The same as lastErrorMessage.'),
    deliveredAt: timestamp.nullable().describe('completedAt of what was delivered.'),
  })
  .meta({ id: 'Delivery' });

export const attemptRecord = z
  .object({
    attemptNumber: z.int().min(1).describe('Number of the attempt, from 1.'),
    startedAt: timestamp.describe('When it began.'),
    durationMs: z.number().min(0).describe('Milliseconds that it took.'),
    responseStatus: z.int().nullable().describe('Status of the answer; null without one.'),
    responseBody: z.string().nullable().describe('Beginning of the answer; null without one.'),
    errorType: z.string().nullable().describe('null when it went well; else timeout, http_error, network, dns, tls or blocked.'),
    errorMessage: z.string().nullable().describe('What went wrong; of an attempt that went well a warning of its transform, or null.'),
    ...sentFormFields,
    detail: shownAttemptDetail.optional(),
  })
  .meta({ id: 'Attempt' });

export function deliveryToRecord(view: DeliveryView): z.input<typeof deliveryRecord> {
  const {
    nextAttemptAtMs,
    waitingUntilMs,
    createdAtMs,
    completedAtMs,
    expiresAtMs,
    deadSinceMs: _deadSince,
    failedOverAtMs: _failedOverAt,
    lastSentAs: _lastSentAs,
    cancellation: made,
    org,
    ...rest
  } = view;
  const nextAttemptAt = isoTimeOrNull(nextAttemptAtMs);
  const completedAt = isoTimeOrNull(completedAtMs);
  return {
    ...rest,
    ...cancellationField(made),
    organizationId: org,
    nextAttemptAt,
    waitingUntil: isoTimeOrNull(waitingUntilMs),
    createdAt: isoTime(createdAtMs),
    completedAt,
    expiresAt: isoTimeOrNull(expiresAtMs),
    attemptCount: view.attempts,
    nextRetryAt: nextAttemptAt,
    responseStatus: view.lastResponseStatus,
    errorMessage: view.lastErrorMessage,
    deliveredAt: view.status === 'delivered' ? completedAt : null,
  };
}

export function attemptToRecord({ startedAtMs, detail, sentAs, ...rest }: AttemptView): z.input<typeof attemptRecord> {
  return { ...rest, ...sentForm('destination', sentAs), ...detailField(detail), startedAt: isoTime(startedAtMs) };
}
