import { resourceId } from '../core/ids.ts';
import { plainSecret } from '../core/plain-secret.ts';
import { hasStandardSecrets } from '../core/providers/providers.ts';
import { recordLayoutVersion, type SourceRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { standardWebhooksSecretRule, standardWebhooksSecrets } from '../core/standard-webhooks-secrets.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { source as definition } from '../resources/source.ts';
import { type Compiled, refuse } from './compiled.ts';
import type { OrganizationFacts } from './organization.ts';
import { sealValue } from './sealed-value.ts';

export interface SourceInputs {
  organization: OrganizationFacts;
  /** Value behind `signingSecretRef`; undefined when the source has none. */
  signingSecret: string | undefined;
  /** Value behind `rotation.previousSecretRef`; undefined when none is being replaced. */
  previousSecret?: string | undefined;
  /** Value behind `handshake.verifyTokenSecretRef`; undefined when there is none. */
  verifyToken?: string | undefined;
  keyring: Keyring;
  /** The published record. The compiler reuses an envelope of it that holds the same value. */
  published: SourceRecord | null;
}

/** Refuses a signing secret that the provider's scheme cannot use, and an empty verify token. */
export function compileSource(object: PosthornObject<'Source'>, inputs: SourceInputs): Compiled<SourceRecord> {
  const { metadata, spec } = object;
  const { organization, signingSecret, previousSecret, keyring, published } = inputs;
  const id = resourceId(definition.idPrefix, metadata);
  const secrets = signingSecret === undefined ? [] : signingSecretsOf(spec.provider, signingSecret);
  if (secrets === null) return refusedSecret(spec.provider, 'signingSecretRef');
  const previousSecrets = previousSecret === undefined ? [] : signingSecretsOf(spec.provider, previousSecret);
  if (previousSecrets === null) return refusedSecret(spec.provider, 'rotation.previousSecretRef');
  const context = recordSealingContext(organization.id, 'source', id, 'signingSecrets');
  const envelopes = [...(published?.signingSecrets ?? []), ...(published?.previousSigningSecrets?.sealed ?? [])];
  const seal = (secret: string): string => sealValue(secret, context, envelopes, keyring);
  const handshake = handshakeOf(spec, inputs.verifyToken, (token) =>
    sealValue(
      token,
      recordSealingContext(organization.id, 'source', id, 'verifyToken'),
      [published?.handshake?.verifyToken ?? ''],
      keyring,
    ),
  );
  if (handshake === null) return refuse('InvalidVerifyToken', 'the value behind spec.handshake.verifyTokenSecretRef is empty');
  const { verification, rotation, rateLimitPerMinute } = spec;
  const [ipFilter, dedup] = [ipFilterOf(spec), dedupOf(spec)];
  return {
    record: {
      v: recordLayoutVersion,
      id,
      org: organization.id,
      orgSlug: organization.slug,
      slug: metadata.name,
      name: spec.name ?? metadata.name,
      provider: spec.provider,
      ...(verification !== undefined && { verification: { ...verification, header: verification.header.toLowerCase() } }),
      signingSecrets: secrets.map(seal),
      ...(rotation !== undefined && {
        previousSigningSecrets: { sealed: previousSecrets.map(seal), validUntilMs: Date.parse(rotation.validUntil) },
      }),
      rejectInvalidSignatures: spec.rejectInvalidSignatures ?? secrets.length > 0,
      ...(rateLimitPerMinute !== undefined && { rateLimitPerMinute }),
      ...(ipFilter !== undefined && { ipFilter }),
      ...(dedup !== undefined && { dedup }),
      ...(handshake !== undefined && { handshake }),
      allowedMethods: [...spec.allowedMethods],
      payloadLimitBytes: organization.payloadLimitBytes,
      ...(organization.largePayloadLimitBytes !== undefined && { largePayloadLimitBytes: organization.largePayloadLimitBytes }),
      ...(organization.monthlyMessages !== undefined && { monthlyMessages: organization.monthlyMessages }),
      enabled: spec.enabled,
      generation: metadata.generation,
    },
  };
}

/** Null: the verify token is empty. */
function handshakeOf(
  { handshake }: PosthornObject<'Source'>['spec'],
  verifyToken: string | undefined,
  seal: (token: string) => string,
): SourceRecord['handshake'] | null {
  if (handshake === undefined || verifyToken === undefined) return handshake === undefined ? undefined : { type: handshake.type };
  const token = plainSecret(verifyToken);
  return token === '' ? null : { type: handshake.type, verifyToken: seal(token) };
}

function ipFilterOf({ ipFilter }: PosthornObject<'Source'>['spec']): SourceRecord['ipFilter'] {
  const { mode = 'none', allowlist = [], denylist = [] } = ipFilter ?? {};
  if (mode === 'none') return undefined;
  return { allow: mode === 'denylist' ? null : [...allowlist], deny: mode === 'allowlist' ? [] : [...denylist] };
}

function dedupOf({ dedup }: PosthornObject<'Source'>['spec']): SourceRecord['dedup'] {
  if (dedup === undefined) return undefined;
  return { strategy: dedup.strategy, header: dedup.header?.toLowerCase() ?? null, windowHours: dedup.windowHours };
}

function refusedSecret(provider: SourceRecord['provider'], field: string): Compiled<SourceRecord> {
  const rule = hasStandardSecrets(provider) ? `not ${standardWebhooksSecretRule}` : 'empty';
  return refuse('InvalidSigningSecret', `the value behind spec.${field} is ${rule}`);
}

function signingSecretsOf(provider: SourceRecord['provider'], value: string): string[] | null {
  if (hasStandardSecrets(provider)) return standardWebhooksSecrets(value);
  const secret = plainSecret(value);
  return secret === '' ? null : [secret];
}
