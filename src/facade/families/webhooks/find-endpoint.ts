import { PosthornError } from '../../../core/errors.ts';
import type { WebhookEndpoint } from '../../../data/webhooks/webhooks.ts';
import type { Call } from '../../operation.ts';

/** RESOURCE_NOT_FOUND when the organization has none with this id. */
export async function findEndpoint({ services, caller }: Pick<Call, 'services' | 'caller'>, id: string): Promise<WebhookEndpoint> {
  const found = await services.webhooks.endpoint(caller.organization.id, id);
  if (found === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such endpoint.');
  return found;
}
