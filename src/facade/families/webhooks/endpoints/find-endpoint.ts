import { PosthornError } from '../../../../core/errors.ts';
import type { WebhookEndpoint } from '../../../../data/webhooks/webhooks.ts';
import type { Call } from '../../../http/operation.ts';
import { declaredId } from '../../../records/lookup.ts';

/** RESOURCE_NOT_FOUND when the organization has none with this id, and declares none of this name. */
export async function findEndpoint(call: Call, idOrName: string): Promise<WebhookEndpoint> {
  const id = await declaredId(call, 'WebhookEndpoint', idOrName);
  const found = await call.services.webhooks.endpoint(call.caller.organization.id, id);
  if (found === null) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such endpoint.');
  return found;
}
