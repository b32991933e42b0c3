import { apiKeyPrefix, hashApiKey } from '../core/api-key-hash.ts';
import { adminKeyName } from '../resources/installation-managers.ts';
import type { ApplyObject } from '../store/store.ts';

/** Name of the organization that standalone begins with, and of its namespace. In a cluster it has the name of the installation. */
export const defaultOrganization = 'default';

/** The resource of the admin key of the organization that the installation begins with. */
export function adminKey(namespace: string, apiKey: string, name: string): ApplyObject {
  return {
    kind: 'ApiKey',
    metadata: { name: adminKeyName, namespace },
    spec: { name, sha256: hashApiKey(apiKey), prefix: apiKeyPrefix(apiKey), role: 'admin' },
  };
}
