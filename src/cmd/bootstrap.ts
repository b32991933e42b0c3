import type { Clock } from '../core/clock.ts';
import { isPosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { bootstrapManager } from '../resources/installation-managers.ts';
import { posthornKinds } from '../resources/kinds.ts';
import type { ApplyObject, ResourceStore } from '../store/store.ts';
import { adminKey, defaultOrganization } from './default-organization.ts';

const firstRetryMs = 250;
const longestRetryMs = 60_000;

export interface BootstrapOptions {
  store: Pick<ResourceStore, 'get' | 'apply'>;
  /** Of YAML manifests. */
  directory: string | undefined;
  /** Admin key of the organization `default`, in whatever namespace that is. */
  apiKey: string | undefined;
  clock: Clock;
  logger: Logger;
}

/**
 * Applies what an installation must have, over what others have made of it since, and tries again until all of it is there or the
 * signal aborts: the namespace of the admin key, for one, is made by the controllers. Deletes nothing.
 */
export async function bootstrapInstallation(options: BootstrapOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  let last = '';
  for (let failures = 0; !signal.aborted; failures++) {
    const complaints = await applyAll(options);
    if (complaints.length === 0) return;
    // The first round comes before the namespace of the admin key is made: not worth a line.
    if (failures > 2 && complaints.join() !== last) {
      last = complaints.join();
      logger.warn({ complaints }, 'the bootstrap manifests could not be applied; retrying');
    }
    await clock.sleep(Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(failures, 20)) * (0.8 + Math.random() * 0.4), signal);
  }
}

async function applyAll({ store, directory, apiKey }: BootstrapOptions): Promise<string[]> {
  const complaints: string[] = [];
  const attempt = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      const details = isPosthornError(error)
        ? Object.entries(error.details ?? {}).map(([field, texts]) => `${field}: ${texts.join(', ')}`)
        : [];
      complaints.push([`${what}: ${error instanceof Error ? error.message : String(error)}`, ...details].join('; '));
    }
  };
  const apply = (object: ApplyObject) => store.apply(object, { manager: bootstrapManager, force: true });
  if (directory !== undefined) {
    await attempt(directory, async () => {
      const { readManifests } = await import('../runtime/manifests/read-directory.ts');
      const { objects, errors } = await readManifests(directory, posthornKinds);
      for (const { file, message } of errors) complaints.push(`${file}: ${message}`);
      for (const object of objects) await attempt(`${object.kind} ${object.metadata.name}`, () => apply(object));
    });
  }
  if (apiKey !== undefined) {
    await attempt('the admin key', async () => {
      const { spec } = await store.get('Organization', { name: defaultOrganization });
      await apply(adminKey(spec.namespace, apiKey, 'Admin key of the installation'));
    });
  }
  return complaints;
}
