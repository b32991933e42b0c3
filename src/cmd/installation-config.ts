import { z } from 'zod';
import { defaultInstallation } from '../core/default-installation.ts';

export const installationEnvironment = {
  POSTHORN_INSTALLATION: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be a DNS label, as in spec.installation of an Organization')
    .default(defaultInstallation)
    .describe(
      'Installation that the process is of: the controllers serve the Organizations whose `spec.installation` is this, with everything in their namespaces, and leave all others alone; `posthorn uninstall` releases these alone, and `posthorn rekey` re-encrypts only their secrets. Of two installations in one cluster each has a value, a namespace and a Redis (or a key prefix) of its own. Resources in Redis are of `default`. No process uses a Redis that holds the data of another one. The API shows the installation to the key of that organization (`GET /api/installation`). Default: `default`. The Helm chart sets it.',
    )
    .meta({ roles: ['controller', 'api', 'ingest', 'delivery'] }),
  POSTHORN_INSTALLATION_NAME: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/, 'must be the name of an installation')
    .default('posthorn')
    .describe(
      'Name of the installation, with which the names of its ServiceAccounts and ClusterRoles begin: the controllers bind `NAME-api` to `NAME-organization-api`, and `NAME-controller` to `NAME-organization-controller`, in the namespace of each organization. The ServiceAccounts are in the namespace of the Lease, which no organization may have. Default: `posthorn`, as in `config/rbac`. The Helm chart sets it.',
    )
    .meta({ roles: ['controller'] }),
};

/** `role`: of the process. */
export function installationMistakes(values: {
  POSTHORN_INSTALLATION: string;
  POSTHORN_RESOURCE_STORE: 'kubernetes' | 'redis';
  role: string;
}): string[] {
  const areInRedis = values.role === 'standalone' || values.POSTHORN_RESOURCE_STORE === 'redis';
  if (!areInRedis || values.POSTHORN_INSTALLATION === defaultInstallation) return [];
  return [`POSTHORN_INSTALLATION: must be ${defaultInstallation} where resources live in Redis`];
}
