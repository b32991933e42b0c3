import { compileSource } from '../../compile/source.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { SecretReference } from '../../resources/secret-use.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import type { SecretValue } from '../secret-reader.ts';

/** Reads the secrets of a source and compiles its record. */
export function sourceRules(keyring: Keyring): ResourceRules<'Source'> {
  return {
    kind: 'Source',
    evaluate: async (object, organization, published, secrets) => {
      const { metadata, spec } = object;
      const status = { ingestPath: `/ingest/${organization.slug}/${metadata.name}` };
      const read = (
        ref: SecretReference | undefined,
        field: 'signingSecrets' | 'verifyToken' = 'signingSecrets',
      ): Promise<SecretValue | null> => (ref === undefined ? Promise.resolve(null) : secrets.read(ref, field));
      const signing = await read(spec.signingSecretRef);
      if (signing?.unresolved !== undefined) return { unresolved: signing.unresolved, status };
      const previous = await read(spec.rotation?.previousSecretRef);
      if (previous?.unresolved !== undefined) return { unresolved: previous.unresolved, status };
      const verify = await read(spec.handshake?.verifyTokenSecretRef, 'verifyToken');
      if (verify?.unresolved !== undefined) return { unresolved: verify.unresolved, status };
      const inputs = { organization, signingSecret: signing?.value, previousSecret: previous?.value, verifyToken: verify?.value, keyring };
      return { ...compileSource(object, { ...inputs, published: signing === null && verify === null ? null : await published() }), status };
    },
  };
}
