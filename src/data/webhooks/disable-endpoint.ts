import { isPosthornError } from '../../core/errors.ts';
import type { WebhookStore } from './webhooks.ts';

export interface EndpointToDisable {
  org: string;
  id: string;
  disabledReason: string;
  /** Only while it has this revision; absent: whatever it has. */
  ifRevision?: number | undefined;
}

/** Disables an endpoint in the store. Returns whether it did: not where it is gone, disabled already or has changed. Throws UNAVAILABLE. */
export async function disableEndpoint(
  store: Pick<WebhookStore, 'endpoint' | 'updateEndpoint'>,
  { org, id, disabledReason, ifRevision }: EndpointToDisable,
): Promise<boolean> {
  try {
    if ((await store.endpoint(org, id))?.isDisabled !== false) return false;
    await store.updateEndpoint(org, id, { isDisabled: true, disabledReason }, ifRevision);
    return true;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND') || isPosthornError(error, 'CONFLICT')) return false;
    throw error;
  }
}
