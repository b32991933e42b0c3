import { newTimedId } from '../../src/core/ids.ts';
import { webhookOrganization } from '../../src/core/webhook.ts';
import type { NewEvent, WebhookEventPart } from '../../src/data/shard/messages.ts';
import type { WebhookEndpoint } from '../../src/data/webhooks/webhooks.ts';
import { newEvent } from './new-event.ts';

/** An event of an organization for webhook endpoints, with a message for each. */
export function newWebhookEvent(
  org: string,
  endpoints: readonly Pick<WebhookEndpoint, 'id' | 'applicationId'>[],
  {
    eventType = 'order.paid',
    webhook = {},
    ...more
  }: { eventType?: string; webhook?: Partial<WebhookEventPart> } & Partial<Omit<NewEvent, 'webhook'>> = {},
): NewEvent {
  const event = newEvent();
  return {
    ...event,
    org: webhookOrganization(org),
    sourceId: `etp_${eventType}`,
    sourceSlug: eventType,
    headers: [],
    webhook: { labels: {}, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [], ...webhook },
    targets: endpoints.map(({ id, applicationId }) => ({
      messageId: newTimedId('msg_', 0, event.receivedAtMs),
      routeId: applicationId,
      destinationId: id,
      shard: 0,
      maxAttempts: 8,
      subscription: { id: `sub_of_${id}`, transformId: null },
    })),
    ...more,
  };
}
