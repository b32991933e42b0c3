import type { Refusal } from '../../compile/compiled.ts';
import { compileDestination, destinationRefusal } from '../../compile/destination.ts';
import { destinationSecretReferences, type SecretReference } from '../../compile/destination-secrets.ts';
import type { OrganizationFacts } from '../../compile/organization.ts';
import { platformIdentityRefusal } from '../../compile/warehouse.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { SealedRecordField } from '../../core/sealing-contexts.ts';
import type { SpecOf } from '../../resources/kinds.ts';
import { idOf } from '../references.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import type { SecretReader } from '../secret-reader.ts';
import type { ShardDirectory } from '../shard-directory.ts';

interface DestinationRulesOptions {
  secrets: SecretReader;
  keyring: Keyring;
  shards: ShardDirectory;
  /** Warehouses may have the identity of the delivery pods. */
  allowsPlatformIdentity: boolean;
}

/** A destination is in force once the secrets of its auth and signature are read. */
export function destinationRules({
  secrets,
  keyring,
  shards,
  allowsPlatformIdentity,
}: DestinationRulesOptions): ResourceRules<'Destination', 'destination'> {
  return {
    kind: 'Destination',
    recordKind: 'destination',
    evaluate: async (object, organization, published) => {
      // Not what routes ask: their messages wait until the installation allows it.
      const refusal = destinationRefusal(object.spec) ?? (allowsPlatformIdentity ? null : platformIdentityRefusal(object.spec));
      if (refusal !== null) return { refusal };
      const read = await readSecrets(object.spec, organization, secrets);
      if (read.unresolved !== undefined) return { unresolved: read.unresolved };
      const shard = await shards.of(idOf('Destination', object));
      const hasSecrets = Object.keys(read.values).length > 0;
      return compileDestination(object, {
        organization,
        secrets: read.values,
        shard,
        keyring,
        published: hasSecrets ? await published() : null,
      });
    },
    retracted: (id) => shards.forget(id),
  };
}

type SecretValues = Partial<Record<SealedRecordField, string>>;

async function readSecrets(
  spec: SpecOf<'Destination'>,
  organization: OrganizationFacts,
  secrets: SecretReader,
): Promise<{ values: SecretValues; unresolved?: Refusal }> {
  const values: SecretValues = {};
  const references = Object.entries(destinationSecretReferences(spec)) as [SealedRecordField, SecretReference][];
  for (const [field, reference] of references) {
    const { value, unresolved } = await secrets.read(organization.id, organization.namespace, reference);
    if (unresolved !== undefined) return { values, unresolved };
    values[field] = value;
  }
  return { values };
}
