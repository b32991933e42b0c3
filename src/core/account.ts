import { organizationBehind } from './alert.ts';
import { organizationOfWebhooks } from './webhook.ts';

/** Returns the organization to which a name in Redis belongs, also for the names of its webhooks and alerts. Tenants share by account. */
export function accountOf(org: string): string {
  return organizationOfWebhooks(org) ?? organizationBehind(org) ?? org;
}
