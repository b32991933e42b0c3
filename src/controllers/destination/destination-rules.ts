import type { Refusal } from '../../compile/compiled.ts';
import { compileDestination, destinationRefusal } from '../../compile/destination.ts';
import { destinationSecretReferences } from '../../compile/destination-secrets.ts';
import type { OutgoingAddress } from '../../compile/outgoing-address.ts';
import { payloadFormRefusal } from '../../compile/payload-form-refusal.ts';
import { platformIdentityRefusal } from '../../compile/warehouse.ts';
import type { DestinationRecord } from '../../core/records.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { CredentialField } from '../../core/sealing-contexts.ts';
import type { SpecOf } from '../../resources/kinds.ts';
import { credentialOrigin, type SecretReference } from '../../resources/secret-use.ts';
import { readHeaders } from '../header-values.ts';
import { idOf } from '../held-ids.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import type { ObjectSecrets } from '../secret-reader.ts';
import type { ShardDirectory } from '../shard-directory.ts';

interface DestinationRulesOptions {
  keyring: Keyring;
  shards: ShardDirectory;
  /** Warehouses may have the identity of the delivery pods. */
  allowsPlatformIdentity: boolean;
  /** Links of thin deliveries have an address. */
  hasPublicUrl: boolean;
}

/** Reads the secrets of a destination (auth, headers, signature) and compiles its record. */
export function destinationRules({
  keyring,
  shards,
  allowsPlatformIdentity,
  hasPublicUrl,
}: DestinationRulesOptions): ResourceRules<'Destination'> {
  return {
    kind: 'Destination',
    originOf: (record) => credentialOrigin('Destination', record),
    evaluate: async (object, organization, published, secrets) => {
      // Not checked for routes: their messages wait until the installation allows it.
      const refusal =
        destinationRefusal(object.spec) ??
        (allowsPlatformIdentity ? null : platformIdentityRefusal(object.spec)) ??
        payloadFormRefusal(object.spec.http?.payloadForm, 'spec.http.payloadForm', hasPublicUrl);
      if (refusal !== null) return { refusal };
      const read = await readSecrets(object.spec, secrets);
      if (read.unresolved !== undefined) return { unresolved: read.unresolved };
      const { headers, unresolved } = await readHeaders(object.spec.http?.headers, secrets);
      if (unresolved !== undefined) return { unresolved };
      const shard = await shards.of(idOf('Destination', object));
      const hasSecrets = Object.keys(read.values).length > 0 || headers.some(({ isSecret }) => isSecret);
      const compiled = compileDestination(object, {
        organization,
        secrets: read.values,
        headers,
        shard,
        keyring,
        published: hasSecrets ? await published() : null,
      });
      return { ...compiled, outgoing: compiled.record && outgoingOf(compiled.record) };
    },
    retracted: (id) => shards.forget(id),
  };
}

function outgoingOf(record: DestinationRecord): OutgoingAddress {
  if (record.type === 'http') return { at: 'spec.http.url', to: record.http.url };
  return { at: record.type === 'r2' ? 'spec.r2.endpoint' : 'spec.type', to: record };
}

type SecretValues = Partial<Record<CredentialField, string>>;

async function readSecrets(spec: SpecOf<'Destination'>, secrets: ObjectSecrets): Promise<{ values: SecretValues; unresolved?: Refusal }> {
  const values: SecretValues = {};
  const references = Object.entries(destinationSecretReferences(spec)) as [CredentialField, SecretReference][];
  for (const [field, reference] of references) {
    const { value, unresolved } = await secrets.read(reference, field);
    if (unresolved !== undefined) return { values, unresolved };
    values[field] = value;
  }
  return { values };
}
