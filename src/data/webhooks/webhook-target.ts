import type { NewEvent } from '../shard/messages.ts';
import type { WebhookCandidate } from './webhook-candidates.ts';

/**
 * Where a message for a subscription goes: application as route, endpoint as destination (`core/webhook.ts`). `maxAttempts`: for endpoints
 * without a schedule of their own; `notBeforeMs`: of the event.
 */
export function webhookTarget(
  { applicationId, endpointId, retries, shard, subscriptionId, transformId }: WebhookCandidate,
  { messageId, maxAttempts, notBeforeMs = null }: { messageId: string; maxAttempts: number; notBeforeMs?: number | null },
): NewEvent['targets'][number] {
  const subscription = { id: subscriptionId, transformId };
  const attempts = retries === null ? maxAttempts : retries + 1;
  const scheduled = notBeforeMs === null ? {} : { notBeforeMs };
  return { messageId, routeId: applicationId, destinationId: endpointId, shard, maxAttempts: attempts, ...scheduled, subscription };
}
