import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { adminKeyName, installationManagers } from '../../../resources/installation-managers.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import { ownersOfField } from '../../../store/objects/field-owners.ts';
import type { Call } from '../../http/operation.ts';
import { findToRead } from '../../records/lookup.ts';

/** FORBIDDEN unless the caller operates the installation. UNAVAILABLE when the API server does not answer. */
export async function requireOperator(call: Call): Promise<void> {
  if (await isOperator(call)) return;
  const right =
    call.services.installation.mode === 'standalone'
      ? 'the key POSTHORN_API_KEY, or a browser on the machine on which standalone runs'
      : 'the key POSTHORN_API_KEY, or a Kubernetes token with the right to list deliverypools.posthorn.dev in the namespace of the installation';
  throw new PosthornError('FORBIDDEN', `Only operators of the installation may see it. This needs ${right}.`);
}

async function isOperator(call: Call): Promise<boolean> {
  const { credential, organization } = call.caller;
  const { installation, kubernetesCallers } = call.services;
  if (credential.type === 'loopback') return true;
  if (credential.type === 'user')
    return installation.namespace !== null && (await kubernetesCallers?.mayListPools(credential.user, installation.namespace)) === true;
  // A field manager proves nothing in another namespace: a writer of ApiKeys there chooses its name.
  if (organization.slug !== installation.name) return false;
  const key = await keyOf(call, credential.id);
  if (key?.name !== adminKeyName) return false;
  // Another owner of the hash has stored another key instead.
  const owners = ownersOfField(key.managedFields ?? [], 'sha256');
  return owners.length > 0 && owners.every(({ manager }) => installationManagers.has(manager));
}

/** Null: it was just deleted. */
async function keyOf(call: Call, id: string): Promise<PosthornObject<'ApiKey'>['metadata'] | null> {
  try {
    return (await findToRead(call, 'ApiKey', id)).metadata;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  }
}
