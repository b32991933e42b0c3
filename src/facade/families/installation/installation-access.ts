import { PosthornError } from '../../../core/errors.ts';
import { adminKeyName } from '../../../resources/installation-managers.ts';
import type { Call } from '../../http/operation.ts';
import { isOfInstallation } from '../../records/installation-key.ts';
import { findToRead } from '../../records/lookup.ts';

/** FORBIDDEN unless the caller operates the installation. UNAVAILABLE when the API server does not answer. */
export async function requireOperator(call: Call): Promise<void> {
  if (await isOperator(call)) return;
  const { mode, namespace } = call.services.installation;
  const right =
    mode === 'standalone'
      ? 'the key POSTHORN_API_KEY, or a browser on the machine on which standalone runs'
      : `the key POSTHORN_API_KEY, or a Kubernetes token with the right to list deliverypools.posthorn.dev in the namespace ${namespace}`;
  throw new PosthornError('FORBIDDEN', `Only operators of the installation may see it. This needs ${right}.`);
}

async function isOperator(call: Call): Promise<boolean> {
  const { credential, organization } = call.caller;
  const { installation, kubernetesCallers } = call.services;
  if (credential.type === 'loopback') return true;
  if (credential.type === 'user')
    return installation.namespace !== null && (await kubernetesCallers?.mayListPools(credential.user, installation.namespace)) === true;
  // Whoever may apply ApiKeys in another namespace may name any field manager there.
  if (organization.slug !== installation.name) return false;
  const { metadata } = await findToRead(call, 'ApiKey', credential.id);
  return metadata.name === adminKeyName && (await isOfInstallation(call, credential));
}
