import { expiresAtMs } from '../../core/expiry.ts';
import type { NewEvent } from '../shard/messages.ts';
import type { WebhookCandidate } from './webhook-candidates.ts';

/** Properties that all messages of an event share. */
export interface WebhookTargetOptions {
  messageId: string;
  /** For endpoints without a schedule of their own. */
  maxAttempts: number;
  /** Earliest time of the event's first attempts; absent or null: at once. */
  notBeforeMs?: number | null;
  /** Receipt of the event: from then, or from `notBeforeMs`, the time counts after which it expires. */
  receivedAtMs: number;
  /** Seconds after which messages expire, as the event and its type say; absent: none. */
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
