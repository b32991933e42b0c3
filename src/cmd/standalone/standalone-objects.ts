import { isPosthornError } from '../../core/errors.ts';
import { standaloneManager } from '../../resources/installation-managers.ts';
import type { ResourceStore } from '../../store/store.ts';
import { adminKey, defaultOrganization } from '../default-organization.ts';

/**
 * Makes the organization `default` when it is missing, and its admin key to be the one given. Of an organization that
 * is there nothing is changed. May be called again.
 */
export async function bootstrap(store: ResourceStore, apiKey: string): Promise<void> {
  await createMissing(() => store.create({ kind: 'Namespace', metadata: { name: defaultOrganization } }, { manager: standaloneManager }));
  await createMissing(() =>
    store.create(
      { kind: 'Organization', metadata: { name: defaultOrganization }, spec: { namespace: defaultOrganization, plan: 'enterprise' } },
      { manager: standaloneManager },
    ),
  );
  await applyAdminKey(store, apiKey);
}

export async function applyAdminKey(store: Pick<ResourceStore, 'apply'>, apiKey: string): Promise<void> {
  await store.apply(adminKey(defaultOrganization, apiKey, 'Admin key of standalone'), { manager: standaloneManager, force: true });
}

async function createMissing(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!isPosthornError(error, 'ALREADY_EXISTS')) throw error;
  }
}
