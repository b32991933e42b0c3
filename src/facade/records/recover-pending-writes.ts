import { callerOrganization } from '../http/caller.ts';
import type { Place } from '../http/operation.ts';
import { withOrganizationLock } from './organization-lock.ts';

/** Finishes the pending entries of an organization's write-ahead log, after a process died or the store was unreachable. */
export async function recoverPendingWrites(services: Place['services'], org: string): Promise<void> {
  const record = await services.registry.get('organization', org);
  if (record !== null) await withOrganizationLock({ services, caller: { organization: callerOrganization(record) } }, [], async () => {});
}
