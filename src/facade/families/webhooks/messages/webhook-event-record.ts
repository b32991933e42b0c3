import { z } from 'zod';
import type { WebhookEventView } from '../../../../data/webhooks/webhook-message-view.ts';
import type { Call } from '../../../http/operation.ts';
import { isoTime, isoTimeOrNull, organizationId, timestamp } from '../../../records/record-fields.ts';

/** An event as lists have it. */
export const eventItem = z
  .object({
    id: z.string().describe('Id of the event.'),
    organizationId,
    eventType: z.string().describe('Name of the event type.'),
    labels: z.record(z.string(), z.string()).describe('Its labels.'),
    metadata: z.record(z.string(), z.unknown()).describe('What was kept with it.'),
    idempotencyKey: z.string().nullable().describe('The idempotencyKey that it was sent with; null without one.'),
    applicationId: z.string().nullable().describe('The application that it was sent to alone.'),
    endpointIds: z.array(z.string()).describe('The endpoints that it was sent to alone; empty: to all that subscribe.'),
    deliverAt: timestamp.nullable().describe('When its sender wanted the first attempts at the earliest; null: at once.'),
    createdAt: timestamp.describe('When it was sent.'),
    messageCount: z.int().min(0).describe('Replays and retries among them.'),
  })
  .meta({ id: 'WebhookEventItem' });

export function toEventItem(
  { typeId: _typeId, typeName, createdAtMs, notBeforeMs, endpointIds, ...rest }: WebhookEventView,
  { caller }: Pick<Call, 'caller'>,
): z.input<typeof eventItem> {
  return {
    ...rest,
    organizationId: caller.organization.id,
    eventType: typeName,
    endpointIds: [...endpointIds],
    deliverAt: isoTimeOrNull(notBeforeMs),
    createdAt: isoTime(createdAtMs),
  };
}
