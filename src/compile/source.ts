import { resourceId } from '../core/ids.ts';
import { plainSecret } from '../core/plain-secret.ts';
import { hasStandardSecrets } from '../core/providers/providers.ts';
import { recordLayoutVersion, type SourceRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { verificationSecretsIn } from '../core/verification-secrets.ts';
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
  const present = signingSecretsOf(spec.provider, signingSecret);
  if (present.problem !== undefined) return refusedSecret(present, 'signingSecretRef');
  const previous = signingSecretsOf(spec.provider, previousSecret);
  if (previous.problem !== undefined) return refusedSecret(previous, 'rotation.previousSecretRef');
  const { secrets, publicKeys } = present;
  if (spec.handshake?.type === 'crc_token' && secrets.length === 0)
    return refusedSecret({ problem: 'contains no secret, with which the handshake crc_token signs' }, 'signingSecretRef');
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
      ...(publicKeys.length > 0 && { publicKeys }),
      ...(rotation !== undefined && {
        previousSigningSecrets: {
          sealed: previous.secrets.map(seal),
          ...(previous.publicKeys.length > 0 && { publicKeys: previous.publicKeys }),
          validUntilMs: Date.parse(rotation.validUntil),
        },
      }),
      rejectInvalidSignatures: spec.rejectInvalidSignatures ?? secrets.length + publicKeys.length > 0,
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

function refusedSecret({ problem }: { problem: string }, field: string): Compiled<SourceRecord> {
  return refuse('InvalidSigningSecret', `the value behind spec.${field} ${problem}`);
}

function signingSecretsOf(provider: SourceRecord['provider'], value: string | undefined): ReturnType<typeof verificationSecretsIn> {
  if (value === undefined) return { secrets: [], publicKeys: [] };
  if (hasStandardSecrets(provider)) return verificationSecretsIn(value);
  const secret = plainSecret(value);
  return secret === '' ? { problem: 'is empty' } : { secrets: [secret], publicKeys: [] };
}
