import { isPosthornError } from '../../core/errors.ts';
import { resourceId } from '../../core/ids.ts';
import { isSealed, type Keyring } from '../../core/sealing.ts';
import { secretSealingContext } from '../../core/sealing-contexts.ts';
import { kinds, type SecretObject } from '../../resources/kinds.ts';
import { madeForIn } from '../../resources/secret-use.ts';
import { listAll } from '../../store/all-objects.ts';
import { installationOf } from '../../store/served-objects.ts';
import { type CompleteStore, versionOf } from '../../store/store.ts';
import { facadeManager } from './owned-spec.ts';

const writeAttempts = 8;

/**
 * Seals what the API of an installation has stored in Secrets under the newest key. Those of other installations have other keys and stay as they are.
 * Returns how many Secrets changed; `report` gets what does not open.
 */
export async function resealSecrets(
  { store, keyring, installation }: { store: CompleteStore; keyring: Keyring; installation: string },
  report: (complaint: string) => void,
): Promise<number> {
  let changed = 0;
  const organizations = await listAll(store, 'Organization');
  for (const { metadata, spec } of organizations.filter((each) => installationOf(each) === installation)) {
    const organization = resourceId(kinds.Organization.idPrefix, metadata);
    const secrets = await listAll(store, 'Secret', spec.namespace);
    for (const secret of secrets.filter(isOurs)) if (await reseal(store, keyring, organization, secret, report)) changed++;
  }
  return changed;
}

async function reseal(
  store: CompleteStore,
  keyring: Keyring,
  organization: string,
  { metadata: { name, namespace } }: SecretObject,
  report: (complaint: string) => void,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      const secret = await store.getSecret({ name, namespace });
      const resealed = (key: string, encoded: string): string => {
        const value = Buffer.from(encoded, 'base64').toString('utf8');
        if (!isSealed(value)) return encoded;
        try {
          return Buffer.from(keyring.reseal(value, secretSealingContext(organization, name, key, madeForIn(secret.metadata)))).toString(
            'base64',
          );
        } catch (error) {
          report(`Secret ${namespace}/${name}: ${key} does not open: ${error instanceof Error ? error.message : error}`);
          return encoded;
        }
      };
      const before = Object.entries(secret.data ?? {});
      const data = before.map(([key, encoded]): [string, string] => [key, resealed(key, encoded)]);
      if (data.every(([, encoded], index) => encoded === before[index]?.[1])) return false;
      const { labels, annotations, ownerReferences } = secret.metadata;
      await store.apply(
        {
          kind: 'Secret',
          metadata: { name, namespace, labels, annotations, ownerReferences },
          type: 'Opaque',
          data: Object.fromEntries(data),
        },
        { manager: facadeManager, force: true, ifVersion: versionOf(secret) },
      );
      return true;
    } catch (error) {
      if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return false;
      if (isPosthornError(error, 'INTERNAL')) {
        report(`Secret ${namespace}/${name} does not open: ${error.message}`);
        return false;
      }
      if (!isPosthornError(error, 'CONFLICT') || attempt === writeAttempts) throw error;
    }
  }
}

function isOurs({ metadata: { labels } }: SecretObject): boolean {
  return labels?.['app.kubernetes.io/managed-by'] === 'posthorn';
}
