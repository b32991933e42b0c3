import type { NewEvent } from '../shard/messages.ts';
import type { WebhookCandidate } from './webhook-candidates.ts';

/** Where a message for a subscription goes: application as route, endpoint as destination (`core/webhook.ts`). */
export function webhookTarget(
  { applicationId, endpointId, shard, subscriptionId, transformId }: WebhookCandidate,
  { messageId, maxAttempts }: { messageId: string; maxAttempts: number },
): NewEvent['targets'][number] {
  const subscription = { id: subscriptionId, transformId };
  return { messageId, routeId: applicationId, destinationId: endpointId, shard, maxAttempts, subscription };
}
