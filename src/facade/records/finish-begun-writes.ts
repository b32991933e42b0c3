import { callerOrganization } from '../http/caller.ts';
import type { Place } from '../http/operation.ts';
import { exclusively } from './exclusive.ts';

/** Finishes what was begun in an organization and not ended: a process died, or the store was away. */
export async function finishBegunWrites(services: Place['services'], org: string): Promise<void> {
  const record = await services.registry.get('organization', org);
  if (record !== null) await exclusively({ services, caller: { organization: callerOrganization(record) } }, [], async () => {});
}
