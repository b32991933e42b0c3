import { isPosthornError } from '../../core/errors.ts';
import type { RedisWebhookStore } from './redis-webhook-store.ts';
import type { WebhookEndpoint } from './webhooks.ts';

export interface EndpointToDisable {
  org: string;
  id: string;
  disabledReason: string;
  /** Only while it has this revision; absent: whatever it has. */
  ifRevision?: number | undefined;
}

export interface EndpointDisabling {
  /** This call did: not where the endpoint is gone, was disabled already or has changed. */
  isDone: boolean;
  /** With which revision it was disabled, if that was for this reason, also by another call; null otherwise. A later change of the endpoint leaves it. */
  revision: number | null;
}

/** Disables an endpoint in the store. Throws UNAVAILABLE. */
export async function disableEndpoint(
  store: Pick<RedisWebhookStore, 'endpoint' | 'updateEndpoint'>,
  { org, id, disabledReason, ifRevision }: EndpointToDisable,
): Promise<EndpointDisabling> {
  try {
    const found = await store.endpoint(org, id);
    if (found?.isDisabled !== false)
      return { isDone: false, revision: found?.disabledReason === disabledReason ? disabledWith(found) : null };
    const disabled = await store.updateEndpoint(org, id, { isDisabled: true, disabledReason }, ifRevision);
    return { isDone: true, revision: disabledWith(disabled) };
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND') || isPosthornError(error, 'CONFLICT')) return { isDone: false, revision: null };
    throw error;
  }
}

function disabledWith({ disabledRevision, revision }: WebhookEndpoint): number {
  return disabledRevision ?? revision;
}
