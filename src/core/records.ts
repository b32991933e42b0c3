import type { HeaderTemplate } from './header-template.ts';
import type { UntoldRotation } from './own-event.ts';
import type { PayloadForm } from './payload-link.ts';
import type { SignatureScheme } from './providers/descriptor.ts';
import type { Handshake, Provider } from './providers/providers.ts';
import type { ReplayRecord } from './replay-record.ts';

/**
 * Compiled records: what the controller publishes to Redis and what ingest, delivery and the facade's authentication
 * read. References are resolved to API ids, secrets are sealed envelopes (`core/sealing.ts`),
 * filters are checked. `id` is the API id; `org` the API id of the organization; `generation` that of the resource.
 */
export const recordLayoutVersion = 1;

export const recordKinds = [
  'organization',
  'source',
  'destination',
  'route',
  'transform',
  'payloadSchema',
  'notificationChannel',
  'cronJob',
  'replay',
  'eventType',
  'apiKey',
  'credentials',
] as const;
export type RecordKind = (typeof recordKinds)[number];

/** Fields of the record of every object of an organization. `v`: the layout, `generation`: of the object that it was made of. */
interface AnyRecord {
  v: number;
  id: string;
  org: string;
  generation: number;
}

export interface OrganizationRecord {
  v: number;
  id: string;
  slug: string;
  namespace: string;
  plan: Plan;
  payloadLimitBytes: number;
  /** Where sources may take larger payloads than 1 MiB, which `payloadLimitBytes` never exceeds. */
  largePayloadLimitBytes?: number;
  /** Messages that may be queued in a month; absent: any number. */
  monthlyMessages?: number;
  /** Resources of each kind that may be in the namespace; absent: any number. */
  objectsPerKind?: number;
  egress: { allowedCidrs: string[]; allowedHosts: string[] };
  /** Where finished messages are kept; `destinationId` null: what is named is not there, or is no warehouse. Absent: nowhere. */
  archive?: { destinationId: string | null };
  /** The pool that serves it; absent: the default pool. */
  deliveryPool?: string;
  /** Its data goes with it; absent: it is retained. */
  deletionPolicy?: 'Delete';
  /** It was deleted, and its data and the records of its targets are kept: nothing is accepted or delivered. */
  retained?: RetainedSince;
  generation: number;
}

export interface RetainedSince {
  atMs: number;
  /** Uid of its namespace at that time; null: there was none any more. */
  namespaceUid: string | null;
}

/** From the lowest on. */
export const plans = ['free', 'starter', 'pro', 'business', 'enterprise'] as const;
export type Plan = (typeof plans)[number];

export type DedupStrategy = 'auto' | 'provider_id' | 'payload_hash' | 'idempotency_key' | 'none';

export interface SourceRecord extends AnyRecord {
  orgSlug: string;
  slug: string;
  name: string;
  provider: Provider;
  /** With provider `custom`. */
  verification?: SignatureScheme;
  /** Sealed; associated data from `sealingContext`. Several while a rotation lasts. */
  signingSecrets: string[];
  /** `whpk_…`: public keys that verify, beside `signingSecrets`, where an earlier release would take them for secrets. Absent: none. */
  publicKeys?: string[];
  /** Secrets sealed in the same way, and public keys; taken until `validUntilMs`. */
  previousSigningSecrets?: { sealed: string[]; publicKeys?: string[]; validUntilMs: number };
  untoldRotation?: UntoldRotation;
  rejectInvalidSignatures: boolean;
  /** Absent: unlimited. */
  rateLimitPerMinute?: number;
  /** CIDRs; null: any address. Absent: no filter. */
  ipFilter?: { allow: string[] | null; deny: string[] };
  /** Absent: strategy auto, 24 hours. */
  dedup?: { strategy: DedupStrategy; header: string | null; windowHours: number };
  /** Absent: none but that of the provider. `verifyToken` is sealed. */
  handshake?: { type: Handshake; verifyToken?: string };
  allowedMethods: string[];
  payloadLimitBytes: number;
  /** Above 1 MiB; absent: `payloadLimitBytes` is all. */
  largePayloadLimitBytes?: number;
  /** Messages that the organization may queue in a month; absent: any number. */
  monthlyMessages?: number;
  enabled: boolean;
}

export type FilterOperator =
  | 'equals'
  | 'not_equals'
  | 'contains'
  | 'not_contains'
  | 'starts_with'
  | 'ends_with'
  | 'matches'
  | 'exists'
  | 'not_exists'
  | 'gt'
  | 'gte'
  | 'lt'
  | 'lte'
  | 'in'
  | 'not_in';

export interface FilterCondition {
  field: string;
  operator: FilterOperator;
  value?: unknown;
}
export interface FilterDefinition {
  logic: 'AND' | 'OR';
  conditions: FilterCondition[];
}

export interface NotificationsRecord {
  onFailure: boolean;
  onSuccess: boolean;
  onRecovery: boolean;
  failureThreshold: number;
  /** Null: all of the organization that are enabled. */
  channelIds: string[] | null;
  emails: string[];
}

/** A transform whose code parses. */
export interface TransformRecord extends AnyRecord {
  type: 'jsonata' | 'javascript' | 'liquid';
  code: string;
}

/** `jsonSchema`: JSON text of a schema that compiles. */
export interface PayloadSchemaRecord extends AnyRecord {
  jsonSchema: string;
  version: number;
}

export interface RouteRecord extends AnyRecord {
  slug: string;
  name: string;
  sourceId: string;
  priority: number;
  enabled: boolean;
  filter: FilterDefinition | null;
  /** Absent: none. Their records may be gone, when they were deleted while the route still names them. */
  transformId?: string;
  schemaId?: string;
  /** In the order of the resource; `shard` is where the destination's targets live. */
  destinations: { id: string; shard: number }[];
  expectedResponse: { statusCodes: number[]; bodyContains: string | null } | null;
  failover: { destinations: { id: string; shard: number }[]; afterAttempts: number };
  circuit: { failureThreshold: number; cooldownSeconds: number; probeSuccessThreshold: number };
  /** Absent: no alerts. */
  notifications?: NotificationsRecord;
}

export type HttpAuthRecord =
  | { type: 'none' }
  | { type: 'basic'; username: string; password: string }
  | { type: 'bearer'; token: string }
  | { type: 'api_key'; headerName: string; key: string }
  | { type: 'custom_header'; headerName: string; headerValue: string };

/** A header that is sent with every request; `sealed`: its value, a credential. */
export type HeaderRecord = { name: string; value: string; sealed?: undefined } | { name: string; value?: undefined; sealed: string };

/** PEM texts. `ca`: the authorities trusted instead of the well-known ones. */
export interface TlsRecord {
  ca: string | null;
  clientCertificate: string | null;
  clientKey: string | null;
}

export interface GrowingDelays {
  maxRetries: number;
  initialDelayMs: number;
  maxDelayMs: number;
  backoffMultiplier: number;
  delaysMs?: undefined;
}

/** With `delaysMs` the delays are these, and `maxRetries` is their number, which is all that ingest reads. */
export type RetryPolicyRecord = GrowingDelays | (Omit<GrowingDelays, 'delaysMs'> & { delaysMs: readonly number[] });

export interface ThrottleRecord {
  mode: 'off' | 'rate' | 'concurrency';
  rateLimit: number | null;
  rateUnit: 'second' | 'minute' | 'hour' | null;
  maxConcurrency: number | null;
  queueLimit: number | null;
  /** Nothing goes at once after a pause. */
  strict?: true;
}

interface AnyDestinationRecord extends AnyRecord {
  slug: string;
  name: string;
  enabled: boolean;
  /** It is not enabled because the plan does not have what it uses. */
  suspended?: true;
  shard: number;
  throttle: ThrottleRecord;
  /** Messages of each route go out in the order of their acceptance, one at a time; never of a warehouse. */
  ordered?: true;
  retryPolicy: RetryPolicyRecord;
  /** Absent: its messages do not expire. */
  expiresAfterSeconds?: number;
  untoldRotation?: UntoldRotation;
}

export interface HttpDestinationRecord extends AnyDestinationRecord {
  type: 'http';
  /** Sealed are `password`, `token`, `key`, `headerValue`, `signingSecrets`, `clientCertificate`, `clientKey` and, under `headerValue`, headers. */
  http: {
    url: string;
    method: 'POST' | 'PUT' | 'PATCH';
    headers: HeaderRecord[];
    auth: HttpAuthRecord;
    timeoutMs: number;
    signingSecrets: string[];
    tls?: TlsRecord;
    useStaticIp?: boolean;
    forwardQuery?: boolean;
    headerTemplates?: readonly HeaderTemplate[];
    /** Names in lower case of the headers of an event that are sent on; absent: all that are kept with it. */
    forwardHeaders?: readonly string[];
    /** Absent: full. */
    payloadForm?: PayloadForm;
  };
}

export type ColumnType = 'string' | 'number' | 'boolean' | 'timestamp' | 'json';

export interface FieldMappingRule {
  /** JSONPath, RFC 9535. */
  source: string;
  target: string;
  type: ColumnType;
  /** Absent: null where the source is. */
  default?: string;
}

/** How objects are named and written. */
export interface WarehouseLayout {
  prefix: string;
  fileFormat: 'jsonl' | 'json';
  partitionBy: 'date' | 'hour' | 'source';
}

export interface WarehouseRecord extends WarehouseLayout {
  /** Null: whole records. */
  fieldMapping: FieldMappingRule[] | null;
}

/** Credentials are sealed; null: the identity of the platform. */
export type ObjectStoreRecord =
  | { type: 's3'; s3: { bucket: string; region: string; credentials: AccessKeyRecord | null } }
  | { type: 'r2'; r2: { bucket: string; endpoint: string; credentials: AccessKeyRecord | null } }
  | { type: 'gcs'; gcs: { bucket: string; projectId: string; credentials: { serviceAccountKey: string } | null } }
  | { type: 'azure_blob'; azureBlob: { accountName: string; containerName: string; credentials: { accountKey: string } | null } };

export interface AccessKeyRecord {
  accessKeyId: string;
  secretAccessKey: string;
}

export type WarehouseDestinationRecord = AnyDestinationRecord & ObjectStoreRecord & { warehouse: WarehouseRecord };

export type DestinationRecord = HttpDestinationRecord | WarehouseDestinationRecord;

/** `webhookUrl`, `routingKey`, `headers[].value` and `signingSecrets` are sealed. */
export type ChannelRecord =
  | { type: 'slack' | 'teams' | 'discord'; webhookUrl: string }
  | { type: 'pagerduty'; routingKey: string; severity: 'critical' | 'error' | 'warning' | 'info' }
  | { type: 'email'; addresses: string[] }
  | { type: 'webhook'; url: string; headers: { name: string; value: string }[]; signingSecrets: string[] };

export interface NotificationChannelRecord extends AnyRecord {
  slug: string;
  name: string;
  enabled: boolean;
  channel: ChannelRecord;
}

export interface CronJobRecord extends AnyRecord {
  slug: string;
  name: string;
  enabled: boolean;
  /** Five fields; see `cron-expression.ts`. */
  schedule: string;
  /** Name in the IANA database. */
  timeZone: string;
  http: {
    url: string;
    method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    /** Sealed ones under `headerValue`. */
    headers: HeaderRecord[];
    /** Empty: the request has no body. */
    payload: string;
    timeoutMs: number;
    useStaticIp: boolean;
  };
}

/** `schema`: JSON text of a schema that compiles; null: none. */
export interface EventTypeRecord extends AnyRecord {
  name: string;
  enabled: boolean;
  schema: string | null;
  schemaVersion: number;
  /** Absent: messages of its events do not expire by it. */
  expiresAfterSeconds?: number;
  /** Null: it is not deprecated. */
  deprecatedAtMs: number | null;
}

export type Role = 'admin' | 'developer' | 'viewer';
export type Scope = 'read' | 'write' | 'delete';

export interface ApiKeyRecord extends AnyRecord {
  orgSlug: string;
  namespace: string;
  name: string;
  /** Hex SHA-256 of the whole key. */
  sha256: string;
  role: Role;
  scopes: Scope[];
  /** Milliseconds since the epoch; null: never. */
  expiresAtMs: number | null;
  /** SHA-256 of the key that made this one, which does no more and lives no longer. */
  makerSha256?: string;
}

/**
 * Content of the Secrets that an object refers to and may use: the API shows and merges it, and reads no Secrets. `id` and `generation` are the
 * object's. Values that are not there, or not the object's to use, are left out.
 */
export interface CredentialsRecord extends AnyRecord {
  /** `secret` and `key`: the reference; `isMadeByApi`: the API made the Secret for this object. */
  values: { secret: string; key: string; sealed: string; isMadeByApi: boolean }[];
}

/** Kinds whose records belong to an organization, and whose ids stay that organization's. */
export type OwnedRecordKind = Exclude<RecordKind, 'organization'>;

export interface RecordByKind {
  organization: OrganizationRecord;
  source: SourceRecord;
  destination: DestinationRecord;
  route: RouteRecord;
  transform: TransformRecord;
  payloadSchema: PayloadSchemaRecord;
  notificationChannel: NotificationChannelRecord;
  cronJob: CronJobRecord;
  replay: ReplayRecord;
  eventType: EventTypeRecord;
  apiKey: ApiKeyRecord;
  credentials: CredentialsRecord;
}
