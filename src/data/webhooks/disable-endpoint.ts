import { isPosthornError } from '../../core/errors.ts';
import type { WebhookStore } from './webhooks.ts';

/** Disables an endpoint in the store; nothing happens when it is gone. Throws UNAVAILABLE. */
export async function disableEndpoint(
  store: Pick<WebhookStore, 'updateEndpoint'>,
  org: string,
  id: string,
  disabledReason: string,
): Promise<void> {
  try {
    await store.updateEndpoint(org, id, { isDisabled: true, disabledReason });
  } catch (error) {
    if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
  }
}
