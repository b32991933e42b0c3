import { resourceId } from '../core/ids.ts';
import type { HeaderRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { webhookHeaderSealingContext, webhookSecretSealingContext } from '../core/sealing-contexts.ts';
import { standardWebhooksSecretRule, standardWebhooksSecrets } from '../core/standard-webhooks-secrets.ts';
import type { SuccessStatus } from '../core/success-status.ts';
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

/** An endpoint as the webhook store keeps it. */
export interface ManagedEndpoint {
  id: string;
  org: string;
  applicationId: string;
  url: string;
  description: string | null;
  headers: HeaderRecord[];
  timeoutSeconds: number;
  rateLimitPerSecond: number;
  rateLimitStrict: boolean;
  retryDelaysSeconds: readonly number[] | null;
  successStatusCodes: readonly SuccessStatus[] | null;
  circuit: { failureThreshold: number; successThreshold: number; cooldownSeconds: number };
  secret: ManagedSecret;
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
  published: { secret: ManagedSecret; headers: HeaderRecord[] } | null;
}

const shownCharacters = 'whsec_'.length + 4;
/** Each is one more signature of every message. */
const maxSecrets = 5;
/** Previous secrets sign for as long as they are in the Secret. */
const withoutEndMs = Date.parse('9999-12-31T23:59:59Z');

/** What can be refused without looking at the secret. */
export function webhookEndpointRefusal({ url }: { url: string }, allowsInsecureUrls: boolean): Refusal | null {
  if (!URL.canParse(url)) return { reason: 'InvalidUrl', message: 'spec.url is not a URL' };
  if (allowsInsecureUrls || new URL(url).protocol === 'https:') return null;
  return { reason: 'InsecureUrl', message: 'spec.url must be an https URL; the installation does not allow http' };
}

/** Refuses malformed signing secrets, and headers that cannot be sent. */
export function compileWebhookEndpoint(
  object: PosthornObject<'WebhookEndpoint'>,
  inputs: WebhookEndpointInputs,
): Compiled<ManagedEndpoint> {
  const { metadata, spec } = object;
  const { organization, applicationId, keyring, published } = inputs;
  const id = resourceId(definition.idPrefix, metadata);
  const [current, ...previous] = standardWebhooksSecrets(inputs.secret) ?? [];
  if (current === undefined)
    return refuse('InvalidSigningSecret', `the value behind spec.signingSecretRef is not ${standardWebhooksSecretRule}`);
  if (previous.length >= maxSecrets)
    return refuse('InvalidSigningSecret', `the value behind spec.signingSecretRef contains more than ${maxSecrets} secrets`);
  const headerContext = webhookHeaderSealingContext(organization.id, id);
  const headers = compileHeaders(inputs.headers, 'spec.headers', published?.headers, (plain, kept) =>
    sealValue(plain, headerContext, kept, keyring),
  );
  if (headers.refusal !== undefined) return headers;
  const before = published?.secret;
  const envelopes = before === undefined ? [] : [before.sealed, ...before.previous.map(({ sealed }) => sealed)];
  const seal = (secret: string): string => sealValue(secret, webhookSecretSealingContext(organization.id, id), envelopes, keyring);
  const sealed = seal(current);
  const version = before === undefined ? 1 : before.version + (before.sealed === sealed ? 0 : 1);
  const disabling = disablingOf(object);
  return {
    record: {
      id,
      org: organization.id,
      applicationId,
      url: spec.url,
      description: spec.description ?? null,
      headers: headers.record,
      timeoutSeconds: spec.timeoutSeconds,
      rateLimitPerSecond: spec.rateLimitPerSecond,
      rateLimitStrict: spec.rateLimitStrict ?? false,
      retryDelaysSeconds: spec.retryDelaysSeconds ?? null,
      successStatusCodes: spec.successStatusCodes ?? null,
      circuit: { ...(spec.circuit ?? definition.spec.shape.circuit.unwrap().parse({})) },
      secret: {
        sealed,
        prefix: current.slice(0, shownCharacters),
        version,
        previous: previous.map((secret) => ({ sealed: seal(secret), validUntilMs: withoutEndMs })),
      },
      ...(disabling !== null && { disabling }),
      disableAfterHours: spec.disableAfterHours ?? null,
      managedBy: managedBy(metadata),
    },
  };
}

/** What a generation says counts once: after that a 410 may disable the endpoint, until there is another generation. */
function disablingOf({ metadata, spec, status }: PosthornObject<'WebhookEndpoint'>): ManagedEndpoint['disabling'] | null {
  if (!spec.enabled) return { isDisabled: true, disabledReason: spec.disabledReason ?? null };
  const programmed = status?.conditions?.find(({ type }) => type === 'Programmed');
  const isProgrammed = programmed?.status === 'True' && programmed.observedGeneration === metadata.generation;
  return isProgrammed ? null : { isDisabled: false, disabledReason: null };
}
