import { signingKeyPrefix } from '../core/ed25519-keys.ts';
import type { HeaderTemplate } from '../core/header-template.ts';
import { resourceId } from '../core/ids.ts';
import { defaultPayloadForm, type PayloadForm } from '../core/payload-link.ts';
import type { HeaderRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { webhookHeaderSealingContext, webhookSecretSealingContext } from '../core/sealing-contexts.ts';
import { defaultSignatureScheme, type NamedSigningKey, type SignatureScheme, signingSecretsFor } from '../core/signature-scheme.ts';
import type { SuccessStatus } from '../core/success-status.ts';
import { urlProblem } from '../core/url-problem.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { webhookEndpoint as definition } from '../resources/webhook-endpoint.ts';
import { type Compiled, type Refusal, refuse } from './compiled.ts';
import { compileHeaders, type HeaderInput } from './headers.ts';
import { managedBy } from './managed-by.ts';
import type { OrganizationFacts } from './organization.ts';
import { sealValue } from './sealed-value.ts';

interface ManagedSecret {
  sealed: string;
  prefix: string;
  version: number;
  previous: { sealed: string; validUntilMs: number }[];
}

interface ManagedSigningKey {
  sealed: string;
  publicKey: string;
  previous: { sealed: string; publicKey: string; validUntilMs: number }[];
}

/** An endpoint as the webhook store keeps it. */
export interface ManagedEndpoint {
  id: string;
  org: string;
  applicationId: string;
  url: string;
  description: string | null;
  headers: HeaderRecord[];
  headerTemplates: readonly HeaderTemplate[];
  timeoutSeconds: number;
  rateLimitPerSecond: number;
  rateLimitStrict: boolean;
  ordered: boolean;
  retryDelaysSeconds: readonly number[] | null;
  expiresAfterSeconds: number | null;
  successStatusCodes: readonly SuccessStatus[] | null;
  circuit: { failureThreshold: number; successThreshold: number; cooldownSeconds: number };
  payloadForm: PayloadForm;
  signatureScheme: SignatureScheme;
  /** The first `whsec_` secret; where there is none, the first `whsk_` key, so that no worker takes the endpoint for one that is not signed. */
  secret: ManagedSecret;
  /** Null: the Secret holds no `whsk_` key. */
  signingKey: ManagedSigningKey | null;
  /** Absent: as it is, which a 410 may have changed. */
  disabling?: { isDisabled: boolean; disabledReason: string | null };
  disableAfterHours: number | null;
  managedBy: string;
}

export interface WebhookEndpointInputs {
  organization: OrganizationFacts;
  applicationId: string;
  /** Value behind `signingSecretRef`. */
  secret: string;
  /** `spec.headers` with their values. */
  headers: readonly HeaderInput[];
  keyring: Keyring;
  /** The published record. The compiler reuses an envelope of it that holds the same value. */
  published: { secret: ManagedSecret; signingKey: ManagedSigningKey | null; headers: HeaderRecord[] } | null;
}

const shownCharacters = 'whsec_'.length + 4;
/** Characters that are shown of a key: only what it is. */
const shownOfKey = signingKeyPrefix.length;
/** Each is one more signature of every message. */
const maxSecrets = 5;
/** Previous secrets sign for as long as they are in the Secret. */
const withoutEndMs = Date.parse('9999-12-31T23:59:59Z');

/** Refusals that need no secret. */
export function webhookEndpointRefusal({ url }: { url: string }, allowsInsecureUrls: boolean): Refusal | null {
  const problem = urlProblem(url);
  if (problem !== null) return { reason: 'InvalidUrl', message: `spec.url ${problem}` };
  if (allowsInsecureUrls || new URL(url).protocol === 'https:') return null;
  return { reason: 'InsecureUrl', message: 'spec.url must be an https URL; the installation does not allow http' };
}

/** Refuses signing secrets that are malformed or that the scheme does not find, and headers that cannot be sent. */
export function compileWebhookEndpoint(
  object: PosthornObject<'WebhookEndpoint'>,
  inputs: WebhookEndpointInputs,
): Compiled<ManagedEndpoint> {
  const { metadata, spec } = object;
  const { organization, applicationId, keyring, published } = inputs;
  const id = resourceId(definition.idPrefix, metadata);
  const signatureScheme = spec.signatureScheme ?? defaultSignatureScheme;
  const found = signingSecretsFor(inputs.secret, signatureScheme);
  if (found.problem !== undefined) return refuse('InvalidSigningSecret', `the value behind spec.signingSecretRef ${found.problem}`);
  if (found.secrets.length > maxSecrets || found.keys.length > maxSecrets)
    return refuse('InvalidSigningSecret', `the value behind spec.signingSecretRef contains more than ${maxSecrets} secrets`);
  const headerContext = webhookHeaderSealingContext(organization.id, id);
  const headers = compileHeaders(inputs.headers, 'spec.headers', published?.headers, (plain, kept) =>
    sealValue(plain, headerContext, kept, keyring),
  );
  if (headers.refusal !== undefined) return headers;
  const before = published?.secret;
  const keyBefore = published?.signingKey ?? undefined;
  const envelopes = [before, keyBefore].flatMap((each) =>
    each === undefined ? [] : [each.sealed, ...each.previous.map(({ sealed }) => sealed)],
  );
  const seal = (text: string): string => {
    const sealed = sealValue(text, webhookSecretSealingContext(organization.id, id), envelopes, keyring);
    // A key in place of a secret, too, has one envelope.
    envelopes.push(sealed);
    return sealed;
  };
  const signingKey = compileKeys(found.keys, seal);
  const secret = compileSecret(found.secrets.length > 0 ? found.secrets : found.keys.map(({ text }) => text), seal);
  const isRotated =
    isReplaced(keyBefore, signingKey) ||
    (before?.prefix.slice(0, shownOfKey) === secret.prefix.slice(0, shownOfKey) && isReplaced(before, secret));
  const disabling = disablingOf(object);
  return {
    record: {
      id,
      org: organization.id,
      applicationId,
      url: spec.url,
      description: spec.description ?? null,
      headers: headers.record,
      headerTemplates: spec.headerTemplates ?? [],
      timeoutSeconds: spec.timeoutSeconds,
      rateLimitPerSecond: spec.rateLimitPerSecond,
      rateLimitStrict: spec.rateLimitStrict ?? false,
      ordered: spec.ordered ?? false,
      retryDelaysSeconds: spec.retryDelaysSeconds ?? null,
      expiresAfterSeconds: spec.expiresAfterSeconds ?? null,
      successStatusCodes: spec.successStatusCodes ?? null,
      circuit: { ...(spec.circuit ?? definition.spec.shape.circuit.unwrap().parse({})) },
      payloadForm: spec.payloadForm ?? defaultPayloadForm,
      signatureScheme,
      secret: { ...secret, version: (before?.version ?? 1) + (isRotated ? 1 : 0) },
      signingKey,
      ...(disabling !== null && { disabling }),
      disableAfterHours: spec.disableAfterHours ?? null,
      managedBy: managedBy(metadata),
    },
  };
}

type SealText = (text: string) => string;

function compileSecret([current = '', ...previous]: readonly string[], seal: SealText): Omit<ManagedSecret, 'version'> {
  return {
    sealed: seal(current),
    prefix: current.slice(0, current.startsWith(signingKeyPrefix) ? shownOfKey : shownCharacters),
    previous: previous.map((text) => ({ sealed: seal(text), validUntilMs: withoutEndMs })),
  };
}

function compileKeys([current, ...previous]: readonly NamedSigningKey[], seal: SealText): ManagedSigningKey | null {
  if (current === undefined) return null;
  const sealed = ({ text, publicKey }: NamedSigningKey) => ({ sealed: seal(text), publicKey });
  return { ...sealed(current), previous: previous.map((key) => ({ ...sealed(key), validUntilMs: withoutEndMs })) };
}

function isReplaced(before: { sealed: string } | undefined, after: { sealed: string } | null): boolean {
  return before !== undefined && after !== null && before.sealed !== after.sealed;
}

/** A generation counts once: after that a 410 may disable the endpoint, until there is another generation. */
function disablingOf({ metadata, spec, status }: PosthornObject<'WebhookEndpoint'>): ManagedEndpoint['disabling'] | null {
  if (!spec.enabled) return { isDisabled: true, disabledReason: spec.disabledReason ?? null };
  const programmed = status?.conditions?.find(({ type }) => type === 'Programmed');
  const isProgrammed = programmed?.status === 'True' && programmed.observedGeneration === metadata.generation;
  return isProgrammed ? null : { isDisabled: false, disabledReason: null };
}
