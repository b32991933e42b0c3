import { z } from 'zod';
import type { AttemptView, DeliveryView } from '../../data/messages.ts';
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
    nextAttemptAt: timestamp.nullable(),
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
    errorMessage: z.string().nullable(),
  })
  .meta({ id: 'Attempt' });

export function deliveryToRecord(view: DeliveryView): z.input<typeof deliveryRecord> {
  const { nextAttemptAtMs, createdAtMs, completedAtMs, org, ...rest } = view;
  const nextAttemptAt = isoTimeOrNull(nextAttemptAtMs);
  const completedAt = isoTimeOrNull(completedAtMs);
  return {
    ...rest,
    organizationId: org,
    nextAttemptAt,
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
