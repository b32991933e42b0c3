import { expiresAtMs } from '../../core/expiry.ts';
import type { NewEvent } from '../shard/messages.ts';
import type { WebhookCandidate } from './webhook-candidates.ts';

/** Properties that all messages of an event share. */
export interface WebhookTargetOptions {
  messageId: string;
  /** For endpoints without a schedule of their own. */
  maxAttempts: number;
  /** Of the event; absent or null: at once. */
  notBeforeMs?: number | null;
  /** Of the event: from then, or from the time of the first attempt, the time counts after which it expires. */
  receivedAtMs: number;
  /** Of the event and its type; absent: none. */
  expiresAfterSeconds?: number | undefined;
}

/** Where a message for a subscription goes: application as route, endpoint as destination (`core/webhook.ts`). */
export function webhookTarget(
  { applicationId, endpointId, retries, shard, subscriptionId, transformId, expiresAfterSeconds: ofEndpoint }: WebhookCandidate,
  { messageId, maxAttempts, notBeforeMs = null, receivedAtMs, expiresAfterSeconds }: WebhookTargetOptions,
): NewEvent['targets'][number] {
  const subscription = { id: subscriptionId, transformId };
  const attempts = retries === null ? maxAttempts : retries + 1;
  const expiresAt = expiresAtMs(notBeforeMs ?? receivedAtMs, expiresAfterSeconds, ofEndpoint);
  return {
    messageId,
    routeId: applicationId,
    destinationId: endpointId,
    shard,
    maxAttempts: attempts,
    ...(notBeforeMs !== null && { notBeforeMs }),
    ...(expiresAt !== undefined && { expiresAtMs: expiresAt }),
    subscription,
  };
}
