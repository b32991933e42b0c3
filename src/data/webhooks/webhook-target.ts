import type { NewEvent } from '../shard/messages.ts';
import type { WebhookCandidate } from './webhook-candidates.ts';

/**
 * Where a message for a subscription goes: application as route, endpoint as destination (`core/webhook.ts`). `maxAttempts`: for endpoints
 * without a schedule of their own.
 */
export function webhookTarget(
  { applicationId, endpointId, retries, shard, subscriptionId, transformId }: WebhookCandidate,
  { messageId, maxAttempts }: { messageId: string; maxAttempts: number },
): NewEvent['targets'][number] {
  const subscription = { id: subscriptionId, transformId };
  const attempts = retries === null ? maxAttempts : retries + 1;
  return { messageId, routeId: applicationId, destinationId: endpointId, shard, maxAttempts: attempts, subscription };
}
