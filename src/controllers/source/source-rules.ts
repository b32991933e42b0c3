import { compileSource } from '../../compile/source.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import type { SecretReader } from '../secret-reader.ts';

/** A source is in force once its signing secret is read. */
export function sourceRules(secrets: SecretReader, keyring: Keyring): ResourceRules<'Source', 'source'> {
  return {
    kind: 'Source',
    recordKind: 'source',
    evaluate: async (object, organization, published) => {
      const { metadata, spec } = object;
      const status = { ingestPath: `/ingest/${organization.slug}/${metadata.name}` };
      const { signingSecretRef } = spec;
      if (signingSecretRef === undefined)
        return { ...compileSource(object, { organization, signingSecret: undefined, keyring, published: null }), status };
      const read = await secrets.read(organization.id, organization.namespace, signingSecretRef);
      if (read.unresolved !== undefined) return { unresolved: read.unresolved, status };
      return { ...compileSource(object, { organization, signingSecret: read.value, keyring, published: await published() }), status };
    },
  };
}
