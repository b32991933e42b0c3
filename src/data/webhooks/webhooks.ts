import type { HeaderTemplate } from '../../core/header-template.ts';
import type { PayloadForm } from '../../core/payload-link.ts';
import type { HeaderRecord } from '../../core/records.ts';
import type { SignatureScheme } from '../../core/signature-scheme.ts';
import type { SuccessStatus } from '../../core/success-status.ts';

/** One customer of the sender. Times are milliseconds since the epoch. */
export interface WebhookApplication {
  id: string;
  org: string;
  externalId: string | null;
  name: string;
  metadata: Record<string, unknown>;
  rateLimits: WebhookRateLimits;
  isDisabled: boolean;
  disabledReason: string | null;
  /** Hours of uninterrupted failure after which an endpoint is disabled; 0: never, null: by default (`../../delivery/plans/webhook-plan.ts`). */
  disableAfterHours: number | null;
  /** Where the messages of all its endpoints live. */
  shard: number;
  createdAtMs: number;
  updatedAtMs: number;
  /** Grows with each change. */
  revision: number;
  /** `namespace/name` of the custom resource it is kept by; null: made through the API. */
  managedBy: string | null;
}

export interface WebhookRateLimits {
  perSecond: number;
  perMinute: number;
  perHour: number;
}

export interface WebhookEndpoint {
  id: string;
  org: string;
  applicationId: string;
  url: string;
  description: string | null;
  /** Sealed ones by the caller (`webhookHeaderSealingContext`). */
  headers: HeaderRecord[];
  /** Headers whose values are made of the message. */
  headerTemplates: readonly HeaderTemplate[];
  timeoutSeconds: number;
  /** 0: unlimited. */
  rateLimitPerSecond: number;
  /** Nothing goes at once after a pause. */
  rateLimitStrict: boolean;
  /** Messages go out in the order of their acceptance, one at a time. */
  ordered: boolean;
  /** Between its attempts; null: those of the installation. */
  retryDelaysSeconds: readonly number[] | null;
  /** Null: its messages do not expire. */
  expiresAfterSeconds: number | null;
  /** Null: any 2xx. */
  successStatusCodes: readonly SuccessStatus[] | null;
  circuit: { failureThreshold: number; successThreshold: number; cooldownSeconds: number };
  payloadForm: PayloadForm;
  signatureScheme: SignatureScheme;
  secret: WebhookSecret;
  /** Null: none was made or declared yet. It stays when the scheme does not use it. */
  signingKey: WebhookSigningKey | null;
  isDisabled: boolean;
  disabledReason: string | null;
  /** The revision with which it was disabled; absent: it is not, or was created so, or by a release that noted none. */
  disabledRevision?: number;
  /** As of an application. */
  disableAfterHours: number | null;
  createdAtMs: number;
  updatedAtMs: number;
  revision: number;
  managedBy: string | null;
}

/** Sealed by the caller (`webhookSecretSealingContext`); the store keeps the text. */
export interface WebhookSecret {
  sealed: string;
  /** Leading part of the secret, shown to users. */
  prefix: string;
  version: number;
  previous: { sealed: string; validUntilMs: number }[];
  /** Mark of the request that has put it in the place of the one before; absent: it had none. */
  rotatedBy?: string;
}

/** An Ed25519 key, sealed as a `WebhookSecret` is. It is replaced together with that, and shares its version. */
export interface WebhookSigningKey {
  sealed: string;
  /** `whpk_` + base64. */
  publicKey: string;
  previous: { sealed: string; publicKey: string; validUntilMs: number }[];
}

export type LabelFilters = Record<string, string | string[]>;
export type LabelFilterMode = 'all' | 'any';

export interface WebhookSubscription {
  id: string;
  org: string;
  endpointId: string;
  applicationId: string;
  eventTypeId: string;
  filterExpression: string | null;
  labelFilters: LabelFilters;
  labelFilterMode: LabelFilterMode;
  transformId: string | null;
  isEnabled: boolean;
  lastFilterError: string | null;
  createdAtMs: number;
  updatedAtMs: number;
  revision: number;
  managedBy: string | null;
}

/** `error`: what the last run of a filter failed with; null: it did not. */
export interface FilterRun {
  filterExpression: string | null;
  error: string | null;
}

/**
 * `id`: of a custom resource; otherwise the store makes one. `mark`: of the request; what is to be made under one a second time within a day is
 * what was made the first time, as it is now.
 */
interface Origin {
  id?: string;
  mark?: string;
}
export type NewWebhookApplication = Pick<WebhookApplication, 'org' | 'name' | 'shard'> &
  Origin &
  Partial<Pick<WebhookApplication, 'externalId' | 'metadata' | 'isDisabled' | 'disabledReason' | 'disableAfterHours' | 'managedBy'>> & {
    rateLimits?: Partial<WebhookRateLimits>;
  };

/** `sealSecret`, `sealSigningKey` and `sealHeaders` get the id that the endpoint will have, to which its secrets are bound. */
export type NewWebhookEndpoint = Pick<WebhookEndpoint, 'org' | 'applicationId' | 'url'> &
  Origin & {
    sealSecret(endpointId: string): WebhookSecret;
    /** Absent: it has none. */
    sealSigningKey?(endpointId: string): WebhookSigningKey | null;
    /** In place of `headers`. */
    sealHeaders?(endpointId: string): HeaderRecord[];
  } & Partial<
    Pick<
      WebhookEndpoint,
      | 'description'
      | 'headers'
      | 'headerTemplates'
      | 'timeoutSeconds'
      | 'rateLimitPerSecond'
      | 'rateLimitStrict'
      | 'ordered'
      | 'retryDelaysSeconds'
      | 'expiresAfterSeconds'
      | 'successStatusCodes'
      | 'payloadForm'
      | 'signatureScheme'
      | 'isDisabled'
      | 'disabledReason'
      | 'disableAfterHours'
      | 'managedBy'
    >
  > & { circuit?: Partial<WebhookEndpoint['circuit']> };

export type NewWebhookSubscription = Pick<WebhookSubscription, 'org' | 'endpointId' | 'eventTypeId'> &
  Origin &
  Partial<Pick<WebhookSubscription, 'filterExpression' | 'labelFilters' | 'labelFilterMode' | 'transformId' | 'isEnabled' | 'managedBy'>>;

/** Absent fields stay. */
export type WebhookApplicationChange = Partial<Omit<NewWebhookApplication, keyof Origin | 'org' | 'shard'>>;
export type WebhookEndpointChange = Partial<
  Omit<NewWebhookEndpoint, keyof Origin | 'org' | 'applicationId' | 'sealSecret' | 'sealSigningKey' | 'sealHeaders'>
> & {
  secret?: WebhookSecret;
  signingKey?: WebhookSigningKey | null;
  /** The key that the endpoint gets if it has none. */
  signingKeyIfNone?: WebhookSigningKey | undefined;
};
export type WebhookSubscriptionChange = Partial<Omit<NewWebhookSubscription, keyof Origin | 'org' | 'endpointId' | 'eventTypeId'>>;

export interface ApplicationFilter {
  /** Part of the name or the external id, in any case. */
  search?: string;
  isDisabled?: boolean;
  orderBy?: 'created_at' | 'name';
  order?: 'asc' | 'desc';
}
export interface EndpointFilter {
  applicationId?: string | undefined;
  isDisabled?: boolean | undefined;
}
export interface WebhookIds {
  applications?: readonly string[];
  endpoints?: readonly string[];
}
export interface SubscriptionFilter {
  endpointId?: string | undefined;
  eventTypeId?: string | undefined;
  applicationId?: string | undefined;
  isEnabled?: boolean | undefined;
}
