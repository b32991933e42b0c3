import { z } from 'zod';
import type { AttemptView, DeliveryView } from '../../data/messages.ts';
import { type WaitReason, waitReasons } from '../../data/waits.ts';
import { isoTime, isoTimeOrNull, organizationId, timestamp } from '../resources/record-fields.ts';

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

const waits: Record<WaitReason, string> = {
  route_disabled: 'its route is disabled',
  destination_disabled: 'its destination is disabled',
  destination_suspended: 'the plan does not have what its destination uses',
  destination_missing: 'its destination is named by the route, and not there',
  transform_missing: 'the transform of its route is not there',
  endpoint_disabled: 'its endpoint is disabled',
  application_disabled: 'its application is disabled',
  circuit_open: 'the circuit is open, or probed',
  retry: 'the time of its next attempt',
  rate_limit: 'the rate limit',
  concurrency: 'as many are under way as may be at a time',
  application_rate_limit: 'the rate limits of the application',
  batch: 'the batch is not complete',
  capacity: 'workers have as many under way there as they may have',
  queue: 'its turn, behind others',
};

/** What a message waits for, of a closed list. */
export function waitingFor<R extends WaitReason>(reasons: readonly R[]) {
  return z
    .enum(reasons)
    .nullable()
    .describe(
      `Why it is not sent now; null when it is under way or has ended. ${reasons.map((reason) => `${reason}: ${waits[reason]}`).join('. ')}.`,
    );
}

export const waitingUntil = timestamp.nullable().describe('When this ends at the earliest; null where nobody knows.');

export const deliveryRecord = z
  .object({
    id: z.string(),
    organizationId,
    eventId: z.string(),
    routeId: z.string(),
    destinationId: z.string().nullable(),
    status: deliveryStatus,
    attempts: z.int().min(0),
    maxAttempts: z.int().min(0),
    nextAttemptAt: timestamp
      .nullable()
      .describe(
        'Earliest time of the next attempt where it is retrying or circuit_open, in the past when it waits for something else; else null.',
      ),
    waitingFor: waitingFor(waitReasons),
    waitingUntil,
    lastResponseStatus: z.int().nullable(),
    lastErrorType: z
      .string()
      .nullable()
      .describe(
        'timeout, http_error, network, dns, tls or blocked: of the last attempt. Without one circuit_open where it waits for an open circuit, failed over or ended because of it. secret_decryption_failed of a dead letter with this reason.',
      ),
    lastErrorMessage: z.string().nullable(),
    deadLetterReason: z.string().nullable(),
    failedOverFrom: z.string().nullable(),
    replayedFrom: z.string().nullable(),
    createdAt: timestamp,
    completedAt: timestamp.nullable(),
    attemptCount: z.int().min(0).describe('The same as attempts.'),
    nextRetryAt: timestamp.nullable().describe('The same as nextAttemptAt.'),
    responseStatus: z.int().nullable().describe('The same as lastResponseStatus.'),
    errorMessage: z.string().nullable().describe('The same as lastErrorMessage.'),
    deliveredAt: timestamp.nullable().describe('completedAt of what was delivered.'),
  })
  .meta({ id: 'Delivery' });

export const attemptRecord = z
  .object({
    attemptNumber: z.int().min(1),
    startedAt: timestamp,
    durationMs: z.number().min(0),
    responseStatus: z.int().nullable(),
    responseBody: z.string().nullable(),
    errorType: z.string().nullable().describe('null when it went well; else timeout, http_error, network, dns, tls or blocked.'),
    errorMessage: z
      .string()
      .nullable()
      .describe('What went wrong; of an attempt that went well a warning of its transform, if there is one.'),
  })
  .meta({ id: 'Attempt' });

export function deliveryToRecord(view: DeliveryView): z.input<typeof deliveryRecord> {
  const { nextAttemptAtMs, waitingUntilMs, createdAtMs, completedAtMs, org, ...rest } = view;
  const nextAttemptAt = isoTimeOrNull(nextAttemptAtMs);
  const completedAt = isoTimeOrNull(completedAtMs);
  return {
    ...rest,
    organizationId: org,
    nextAttemptAt,
    waitingUntil: isoTimeOrNull(waitingUntilMs),
    createdAt: isoTime(createdAtMs),
    completedAt,
    attemptCount: view.attempts,
    nextRetryAt: nextAttemptAt,
    responseStatus: view.lastResponseStatus,
    errorMessage: view.lastErrorMessage,
    deliveredAt: view.status === 'delivered' ? completedAt : null,
  };
}

export function attemptToRecord({ startedAtMs, ...rest }: AttemptView): z.input<typeof attemptRecord> {
  return { ...rest, startedAt: isoTime(startedAtMs) };
}
