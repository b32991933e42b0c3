import { resourceId } from '../core/ids.ts';
import { recordLayoutVersion, type SourceRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { source as definition } from '../resources/source.ts';
import { type Compiled, refuse } from './compiled.ts';
import type { OrganizationFacts } from './organization.ts';
import { sealValue } from './sealed-value.ts';
import { standardWebhooksSecretRule, standardWebhooksSecrets } from './signing-secrets.ts';

export interface SourceInputs {
  organization: OrganizationFacts;
  /** Value behind `signingSecretRef`; undefined when the source has none. */
  signingSecret: string | undefined;
  keyring: Keyring;
  /** What is in force now: its envelopes are kept where they hold the same values. */
  published: SourceRecord | null;
}

/** Refuses a signing secret that the provider's scheme cannot use. */
export function compileSource(object: PosthornObject<'Source'>, inputs: SourceInputs): Compiled<SourceRecord> {
  const { metadata, spec } = object;
  const { organization, signingSecret, keyring, published } = inputs;
  const id = resourceId(definition.idPrefix, metadata);
  const secrets = signingSecret === undefined ? [] : signingSecretsOf(spec.provider, signingSecret);
  if (secrets === null) {
    const rule = hasStandardSecrets(spec.provider) ? `not ${standardWebhooksSecretRule}` : 'empty';
    return refuse('InvalidSigningSecret', `the value behind spec.signingSecretRef is ${rule}`);
  }
  const context = recordSealingContext(organization.id, 'source', id, 'signingSecrets');
  return {
    record: {
      v: recordLayoutVersion,
      id,
      org: organization.id,
      orgSlug: organization.slug,
      slug: metadata.name,
      name: spec.name ?? metadata.name,
      provider: spec.provider,
      ...(spec.verification !== undefined && { verification: { ...spec.verification, header: spec.verification.header.toLowerCase() } }),
      signingSecrets: secrets.map((secret) => sealValue(secret, context, published?.signingSecrets ?? [], keyring)),
      rejectInvalidSignatures: spec.rejectInvalidSignatures ?? secrets.length > 0,
      allowedMethods: [...spec.allowedMethods],
      payloadLimitBytes: organization.payloadLimitBytes,
      enabled: spec.enabled,
      generation: metadata.generation,
    },
  };
}

/** A line break at the end comes from files and `echo`, never from a provider. */
function signingSecretsOf(provider: SourceRecord['provider'], value: string): string[] | null {
  if (hasStandardSecrets(provider)) return standardWebhooksSecrets(value);
  const secret = value.replace(/\r?\n$/, '');
  return secret === '' ? null : [secret];
}

function hasStandardSecrets(provider: SourceRecord['provider']): boolean {
  return provider === 'standard-webhooks' || provider === 'svix';
}
