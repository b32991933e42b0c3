import { z } from 'zod';
import { applicationTotals, webhookOrganization } from '../../../../core/webhook.ts';
import type { WebhookApplication } from '../../../../data/webhooks/webhooks.ts';
import { line, paragraph } from '../../../../resources/text.ts';
import { webhookApplication } from '../../../../resources/webhook-application.ts';
import type { Call } from '../../../http/operation.ts';
import { isoTime, isoTimeOrNull, organizationId, recordTimes, sentName, timestamp } from '../../../records/record-fields.ts';
import { shownField } from '../../../records/spec-field.ts';

const rateLimits = webhookApplication.spec.shape.rateLimits.unwrap().shape;

export const applicationFields = {
  externalId: line(1, 255)
    .refine((value) => value.isWellFormed(), { error: 'must be well-formed Unicode' })
    .describe("The sender's own id of the customer."),
  name: sentName,
  metadata: z
    .record(z.string(), z.unknown())
    .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= 8192, { error: 'must be at most 8192 bytes as JSON' })
    .describe('Anything, at most 8192 bytes as JSON.'),
  rateLimitPerSecond: shownField(rateLimits.perSecond, 'Messages in a second, to all its endpoints together.'),
  rateLimitPerMinute: shownField(rateLimits.perMinute),
  rateLimitPerHour: shownField(rateLimits.perHour),
  isDisabled: z.boolean().describe('Whether events skip it and queued messages wait.'),
  disabledReason: paragraph(1, 500).nullable().describe('Why it is disabled. Enabling it takes the reason away.'),
};

export const applicationRecord = z
  .object({
    id: z.string().describe('Made by Posthorn; stays the same.'),
    organizationId,
    ...applicationFields,
    externalId: applicationFields.externalId.nullable(),
    metadata: z.record(z.string(), z.unknown()).describe('What was kept with it.'),
    totalEndpoints: z.int().min(0).describe('Endpoints that it has.'),
    totalMessagesSent: z.int().min(0).describe('Messages that were delivered.'),
    totalMessagesFailed: z.int().min(0).describe('Messages that ended without being delivered.'),
    lastEventAt: timestamp.nullable().describe('When the last event came for one of its endpoints.'),
    ...recordTimes,
  })
  .meta({ id: 'WebhookApplication' });

export async function applicationRecords(
  applications: readonly WebhookApplication[],
  { services: { webhooks, messages }, caller }: Call,
): Promise<z.input<typeof applicationRecord>[]> {
  const org = caller.organization.id;
  const counted = webhookOrganization(org);
  const ids = applications.map(({ id }) => id);
  const [endpoints, totals, events] = await Promise.all([
    webhooks.endpointCounts(org, ids),
    Promise.all(ids.map((id) => messages.destinationCounters(counted, applicationTotals(id)))),
    Promise.all(ids.map((id) => messages.eventCounters(counted, id))),
  ]);
  return applications.map((application, i) => {
    const { deliveries = 0, successes = 0 } = totals[i] ?? {};
    const { id, externalId, name, metadata, rateLimits, isDisabled, disabledReason, createdAtMs, updatedAtMs } = application;
    return {
      id,
      organizationId: org,
      externalId,
      name,
      metadata,
      rateLimitPerSecond: rateLimits.perSecond,
      rateLimitPerMinute: rateLimits.perMinute,
      rateLimitPerHour: rateLimits.perHour,
      isDisabled,
      disabledReason,
      totalEndpoints: endpoints.get(id) ?? 0,
      totalMessagesSent: successes,
      totalMessagesFailed: deliveries - successes,
      lastEventAt: isoTimeOrNull(events[i]?.lastEventAtMs ?? null),
      createdAt: isoTime(createdAtMs),
      updatedAt: isoTime(updatedAtMs),
    };
  });
}

export async function toApplication(application: WebhookApplication, call: Call): Promise<{ data: z.input<typeof applicationRecord> }> {
  const [data] = await applicationRecords([application], call);
  if (data === undefined) throw new Error('a record was lost');
  return { data };
}
