import type { HeaderTemplate } from '../../core/header-template.ts';
import type { PayloadForm } from '../../core/payload-link.ts';
import type { HeaderRecord } from '../../core/records.ts';
import type { SignatureScheme } from '../../core/signature-scheme.ts';
import type { SuccessStatus } from '../../core/success-status.ts';
import type { PageQuery, ViewPage } from '../shard/messages.ts';

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
  /** Hours of uninterrupted failure after which an endpoint is disabled; 0: never, null: as said elsewhere (`../../delivery/plans/webhook-plan.ts`). */
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

/** What is absent stays. */
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

/**
 * Applications, endpoints and subscriptions of an organization, in one slot of Redis (`webhook-keys.ts`); why not as custom resources:
 * docs/decisions/0006-webhook-objects-in-redis.md. Whatever is below something deleted
 * is gone with it. Ids of other organizations are unknown. Lists are newest first; a page may be shorter than asked for when
 * few match, and `nextCursor` tells whether there is more. Everything rejects with UNAVAILABLE when Redis does not answer, lists with
 * INVALID_QUERY for a forged cursor, changes with RESOURCE_NOT_FOUND for what is not there, and with CONFLICT when
 * `expectedRevision` is given and another.
 */
export interface WebhookStore {
  application(org: string, id: string): Promise<WebhookApplication | null>;
  applicationByExternalId(org: string, externalId: string): Promise<WebhookApplication | null>;
  /** By id; those that are not there are left out. At most 1,000. */
  applicationsById(org: string, ids: readonly string[]): Promise<Map<string, WebhookApplication>>;
  applications(org: string, filter: ApplicationFilter, page: PageQuery): Promise<ViewPage<WebhookApplication>>;
  /** CONFLICT when the external id or the id is taken. */
  createApplication(application: NewWebhookApplication): Promise<WebhookApplication>;
  /** The application of that external id, made or changed; what is absent stays. */
  upsertApplication(
    application: NewWebhookApplication & { externalId: string },
  ): Promise<{ application: WebhookApplication; created: boolean }>;
  updateApplication(org: string, id: string, change: WebhookApplicationChange, expectedRevision?: number): Promise<WebhookApplication>;
  /** With its endpoints and their subscriptions: they are gone at once, and what they took is given back in the background. */
  deleteApplication(org: string, id: string): Promise<void>;

  endpoint(org: string, id: string): Promise<WebhookEndpoint | null>;
  endpointsById(org: string, ids: readonly string[]): Promise<Map<string, WebhookEndpoint>>;
  endpoints(org: string, filter: EndpointFilter, page: PageQuery): Promise<ViewPage<WebhookEndpoint>>;
  /** How many each application has. */
  endpointCounts(org: string, applicationIds: readonly string[]): Promise<Map<string, number>>;
  /** RESOURCE_NOT_FOUND without the application; CONFLICT when the id is taken. */
  createEndpoint(endpoint: NewWebhookEndpoint): Promise<WebhookEndpoint>;
  updateEndpoint(org: string, id: string, change: WebhookEndpointChange, expectedRevision?: number): Promise<WebhookEndpoint>;
  /** With its subscriptions. */
  deleteEndpoint(org: string, id: string): Promise<void>;

  subscription(org: string, id: string): Promise<WebhookSubscription | null>;
  subscriptions(org: string, filter: SubscriptionFilter, page: PageQuery): Promise<ViewPage<WebhookSubscription>>;
  /** How many each event type has. */
  subscriptionCounts(org: string, eventTypeIds: readonly string[]): Promise<Map<string, number>>;
  subscriptionCountsOfEndpoints(org: string, endpointIds: readonly string[]): Promise<Map<string, number>>;
  /**
   * RESOURCE_NOT_FOUND without the endpoint; CONFLICT `Duplicate subscription`, and when the transform is being deleted. That the event type exists
   * is the caller's to check; one that was deleted since is RESOURCE_NOT_FOUND.
   */
  createSubscription(subscription: NewWebhookSubscription): Promise<WebhookSubscription>;
  /** One for each event type (at most 100) that the endpoint does not subscribe to yet, all in one step. */
  createSubscriptions(
    template: Omit<NewWebhookSubscription, 'id' | 'eventTypeId'>,
    eventTypeIds: readonly string[],
  ): Promise<{ created: WebhookSubscription[]; skipped: number }>;
  updateSubscription(org: string, id: string, change: WebhookSubscriptionChange, expectedRevision?: number): Promise<WebhookSubscription>;
  /** One that is gone, or has another filter by now, is left alone. */
  noteFilterError(org: string, id: string, run: FilterRun): Promise<void>;
  deleteSubscription(org: string, id: string): Promise<void>;
  /** All subscriptions of an event type that is deleted; `name`: the one it had, if it is known. For an hour no other is made, by whoever has seen it before. */
  deleteEventType(org: string, eventTypeId: string, name?: string): Promise<void>;
  /**
   * What deleted applications and endpoints were, by id: the name of the application, the URL of the endpoint. For 90 days, and of at most 10,000 deleted
   * objects of the organization. At most 1,000 ids of each.
   */
  past(org: string, ids: WebhookIds): Promise<Map<string, string>>;
  /** Ids of deleted event types of that name, as long; null: some that were deleted before this was noted may be missing. */
  pastEventTypeIds(org: string, name: string): Promise<string[] | null>;
  /** An event type is there: it may be subscribed to, also when one of this id was deleted. */
  admitEventType(org: string, eventTypeId: string): Promise<void>;
  /** Ids of the event types that are subscribed to, or were, and not deleted. */
  eventTypeIds(org: string): Promise<string[]>;
  /**
   * Before a transform is deleted. Returns how many subscriptions name it; when there are none, none may for a minute, so that it can be deleted
   * meanwhile.
   */
  retireTransform(org: string, transformId: string): Promise<number>;

  /** Ids of all that is kept by custom resources. */
  customResourceIds(org: string): Promise<string[]>;
}
