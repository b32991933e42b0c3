import { installationManagers } from '../../resources/installation-managers.ts';
import type { Place } from '../http/operation.ts';
import { find } from './lookup.ts';
import { foreignManagers } from './owned-spec.ts';

/** Whether it is the key that the installation was given: changing it in the configuration must not end the keys that it made. */
export async function isOfInstallation(call: Place, { id }: { id: string }): Promise<boolean> {
  const { metadata } = await find(call, 'ApiKey', id);
  return foreignManagers(metadata.managedFields ?? []).some((manager) => installationManagers.has(manager));
}
