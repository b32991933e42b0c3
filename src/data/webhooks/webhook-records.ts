import { z } from 'zod';
import { defaultPayloadForm } from '../../core/payload-link.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import { parseJson } from '../../core/read-json.ts';
import type { HeaderRecord } from '../../core/records.ts';
import { defaultSignatureScheme } from '../../core/signature-scheme.ts';
import { webhookFields } from './webhook-fields.ts';
import type {
  NewWebhookApplication,
  NewWebhookEndpoint,
  NewWebhookSubscription,
  WebhookApplication,
  WebhookEndpoint,
  WebhookSubscription,
} from './webhooks.ts';

/**
 * Records as they are stored: a head that scripts read (`includes/webhooks.lua`) and JSON with short names (`webhook-fields.ts`), from which is left out
 * what is as by default. Ids and what the head says are not in the JSON.
 */
const defaultRateLimits = { perSecond: 100, perMinute: 1000, perHour: 10_000 };
const defaultTimeoutSeconds = 30;
const defaultCircuit = { failureThreshold: 5, successThreshold: 2, cooldownSeconds: 60 };

const common = {
  createdAtMs: z.number(),
  /** When that is another time. */
  updatedAtMs: z.number().optional(),
  /** From the second on. */
  revision: z.number().optional(),
  managedBy: z.string().optional(),
};
const disabling = {
  /** Reason of what is disabled, or ''. */
  disabledFor: z.string().optional(),
  /** Reason of what is not disabled. */
  reason: z.string().optional(),
  disableAfterHours: z.number().optional(),
};

const applicationJson = z.object({
  ...common,
  ...disabling,
  name: z.string(),
  externalId: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  rateLimits: z.tuple([z.number(), z.number(), z.number()]).optional(),
  shard: z.number().optional(),
});
const endpointJson = z.object({
  ...common,
  ...disabling,
  url: z.string(),
  description: z.string().optional(),
  headers: z.array(z.tuple([z.string(), z.string()])).optional(),
  /** Each with its place among all headers. */
  sealedHeaders: z.array(z.tuple([z.number(), z.string(), z.string()])).optional(),
  headerTemplates: z.array(z.tuple([z.string(), z.string()])).optional(),
  timeoutSeconds: z.number().optional(),
  rateLimitPerSecond: z.number().optional(),
  rateLimitStrict: z.literal(1).optional(),
  ordered: z.literal(1).optional(),
  retryDelaysSeconds: z.array(z.number()).optional(),
  expiresAfterSeconds: z.number().optional(),
  successStatusCodes: z.array(z.union([z.number(), z.string()])).optional(),
  /** With which it was disabled. */
  disabledRevision: z.number().optional(),
  circuit: z.tuple([z.number(), z.number(), z.number()]).optional(),
  secret: z.tuple([z.string(), z.string()]),
  secretVersion: z.number().optional(),
  previousSecrets: z.array(z.tuple([z.string(), z.number()])).optional(),
  secretRotatedBy: z.string().optional(),
  signatureScheme: z.enum(['ed25519', 'both']).optional(),
  /** Links in place of payloads. */
  isThin: z.literal(1).optional(),
  signingKey: z.tuple([z.string(), z.string()]).optional(),
  previousSigningKeys: z.array(z.tuple([z.string(), z.string(), z.number()])).optional(),
});
const subscriptionJson = z.object({
  ...common,
  filterExpression: z.string().optional(),
  labelFilters: z.record(z.string(), z.union([z.string(), z.array(z.string())])).optional(),
  matchesAnyLabel: z.literal(1).optional(),
  transform: z.string().optional(),
  isOff: z.literal(1).optional(),
  lastFilterError: z.string().optional(),
});

const wordsOf = {
  webhookApplication: wordsOfTable(webhookFields.webhookApplication),
  webhookEndpoint: wordsOfTable(webhookFields.webhookEndpoint),
  webhookSubscription: wordsOfTable(webhookFields.webhookSubscription),
};

type Stamps = Pick<WebhookApplication, 'createdAtMs' | 'updatedAtMs' | 'revision' | 'managedBy'>;
type Disabling = Pick<WebhookApplication, 'isDisabled' | 'disabledReason' | 'disableAfterHours'>;

/** Contents of a record after its head. */
export type ApplicationContent = Omit<WebhookApplication, 'id' | 'org'>;
export type EndpointContent = Omit<WebhookEndpoint, 'id' | 'org' | 'applicationId'>;
export type SubscriptionContent = Omit<WebhookSubscription, 'id' | 'org' | 'endpointId' | 'applicationId' | 'eventTypeId'>;

export function newApplicationContent(
  { name, shard, externalId, metadata, rateLimits, managedBy, ...rest }: NewWebhookApplication,
  nowMs: number,
): ApplicationContent {
  return {
    name,
    shard,
    externalId: externalId ?? null,
    metadata: metadata ?? {},
    rateLimits: { ...defaultRateLimits, ...definedOf(rateLimits ?? {}) },
    ...newDisabling(rest),
    ...newStamps(managedBy, nowMs),
  };
}

export function newEndpointContent(endpoint: NewWebhookEndpoint, id: string, nowMs: number): EndpointContent {
  const { url, description, timeoutSeconds, rateLimitPerSecond, rateLimitStrict, circuit, managedBy } = endpoint;
  const { ordered, retryDelaysSeconds, expiresAfterSeconds, successStatusCodes } = endpoint;
  return {
    url,
    description: description ?? null,
    headers: endpoint.sealHeaders?.(id) ?? endpoint.headers ?? [],
    headerTemplates: endpoint.headerTemplates ?? [],
    timeoutSeconds: timeoutSeconds ?? defaultTimeoutSeconds,
    rateLimitPerSecond: rateLimitPerSecond ?? 0,
    rateLimitStrict: rateLimitStrict ?? false,
    ordered: ordered ?? false,
    retryDelaysSeconds: retryDelaysSeconds ?? null,
    expiresAfterSeconds: expiresAfterSeconds ?? null,
    successStatusCodes: successStatusCodes ?? null,
    circuit: { ...defaultCircuit, ...definedOf(circuit ?? {}) },
    payloadForm: endpoint.payloadForm ?? defaultPayloadForm,
    signatureScheme: endpoint.signatureScheme ?? defaultSignatureScheme,
    secret: endpoint.sealSecret(id),
    signingKey: endpoint.sealSigningKey?.(id) ?? null,
    ...newDisabling(endpoint),
    ...newStamps(managedBy, nowMs),
  };
}

export function newSubscriptionContent(
  { filterExpression, labelFilters, labelFilterMode, transformId, isEnabled, managedBy }: Omit<NewWebhookSubscription, 'eventTypeId'>,
  nowMs: number,
): SubscriptionContent {
  return {
    filterExpression: filterExpression ?? null,
    labelFilters: labelFilters ?? {},
    labelFilterMode: labelFilterMode ?? 'all',
    transformId: transformId ?? null,
    isEnabled: isEnabled ?? true,
    lastFilterError: null,
    ...newStamps(managedBy, nowMs),
  };
}

function newDisabling({ isDisabled, disabledReason, disableAfterHours }: Partial<Disabling>): Disabling {
  return { isDisabled: isDisabled ?? false, disabledReason: disabledReason ?? null, disableAfterHours: disableAfterHours ?? null };
}

function newStamps(managedBy: string | null | undefined, nowMs: number): Stamps {
  return { createdAtMs: nowMs, updatedAtMs: nowMs, revision: 1, managedBy: managedBy ?? null };
}

/** Without the members that are undefined. */
export function definedOf<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

export function encodeApplication({ name, externalId, metadata, rateLimits, shard, ...rest }: ApplicationContent): string {
  const { perSecond, perMinute, perHour } = rateLimits;
  return encoded(webhookFields.webhookApplication, {
    name,
    externalId: externalId ?? undefined,
    metadata: Object.keys(metadata).length === 0 ? undefined : metadata,
    rateLimits: isSame(rateLimits, defaultRateLimits) ? undefined : [perSecond, perMinute, perHour],
    shard: shard === 0 ? undefined : shard,
    ...encodeDisabling(rest),
    ...encodeStamps(rest),
  } satisfies z.input<typeof applicationJson>);
}

export function decodeApplication(json: string): ApplicationContent {
  const stored = applicationJson.parse(named(parseJson(json), wordsOf.webhookApplication));
  const [perSecond, perMinute, perHour] = stored.rateLimits ?? [];
  return {
    name: stored.name,
    externalId: stored.externalId ?? null,
    metadata: stored.metadata ?? {},
    rateLimits: { ...defaultRateLimits, ...definedOf({ perSecond, perMinute, perHour }) },
    shard: stored.shard ?? 0,
    ...decodeDisabling(stored),
    ...decodeStamps(stored),
  };
}

export function encodeEndpoint({
  url,
  description,
  headers,
  headerTemplates,
  timeoutSeconds,
  rateLimitPerSecond,
  rateLimitStrict,
  ordered,
  retryDelaysSeconds,
  expiresAfterSeconds,
  successStatusCodes,
  circuit,
  payloadForm,
  signatureScheme,
  secret,
  signingKey,
  disabledRevision,
  ...rest
}: EndpointContent): string {
  const { failureThreshold, successThreshold, cooldownSeconds } = circuit;
  return encoded(webhookFields.webhookEndpoint, {
    url,
    description: description ?? undefined,
    ...encodeHeaders(headers),
    headerTemplates:
      headerTemplates.length === 0 ? undefined : headerTemplates.map(({ name, template }): [string, string] => [name, template]),
    timeoutSeconds: timeoutSeconds === defaultTimeoutSeconds ? undefined : timeoutSeconds,
    rateLimitPerSecond: rateLimitPerSecond === 0 ? undefined : rateLimitPerSecond,
    rateLimitStrict: rateLimitStrict ? 1 : undefined,
    ordered: ordered ? 1 : undefined,
    retryDelaysSeconds: retryDelaysSeconds === null ? undefined : [...retryDelaysSeconds],
    expiresAfterSeconds: expiresAfterSeconds ?? undefined,
    successStatusCodes: successStatusCodes === null ? undefined : [...successStatusCodes],
    disabledRevision,
    circuit: isSame(circuit, defaultCircuit) ? undefined : [failureThreshold, successThreshold, cooldownSeconds],
    secret: [secret.sealed, secret.prefix],
    secretVersion: secret.version === 1 ? undefined : secret.version,
    previousSecrets:
      secret.previous.length === 0
        ? undefined
        : secret.previous.map(({ sealed, validUntilMs }) => [sealed, validUntilMs] as [string, number]),
    secretRotatedBy: secret.rotatedBy,
    isThin: payloadForm === 'thin' ? 1 : undefined,
    signatureScheme: signatureScheme === 'hmac-sha256' ? undefined : signatureScheme,
    ...encodeSigningKey(signingKey),
    ...encodeDisabling(rest),
    ...encodeStamps(rest),
  } satisfies z.input<typeof endpointJson>);
}

export function decodeEndpoint(json: string): EndpointContent {
  const stored = endpointJson.parse(named(parsePlainJson(json), wordsOf.webhookEndpoint));
  const [failureThreshold, successThreshold, cooldownSeconds] = stored.circuit ?? [];
  return {
    url: stored.url,
    description: stored.description ?? null,
    headers: decodeHeaders(stored),
    headerTemplates: (stored.headerTemplates ?? []).map(([name, template]) => ({ name, template })),
    timeoutSeconds: stored.timeoutSeconds ?? defaultTimeoutSeconds,
    rateLimitPerSecond: stored.rateLimitPerSecond ?? 0,
    rateLimitStrict: stored.rateLimitStrict === 1,
    ordered: stored.ordered === 1,
    retryDelaysSeconds: stored.retryDelaysSeconds ?? null,
    expiresAfterSeconds: stored.expiresAfterSeconds ?? null,
    successStatusCodes: stored.successStatusCodes ?? null,
    circuit: { ...defaultCircuit, ...definedOf({ failureThreshold, successThreshold, cooldownSeconds }) },
    secret: {
      sealed: stored.secret[0],
      prefix: stored.secret[1],
      version: stored.secretVersion ?? 1,
      previous: (stored.previousSecrets ?? []).map(([sealed, validUntilMs]) => ({ sealed, validUntilMs })),
      ...(stored.secretRotatedBy === undefined ? {} : { rotatedBy: stored.secretRotatedBy }),
    },
    payloadForm: stored.isThin === 1 ? 'thin' : defaultPayloadForm,
    signatureScheme: stored.signatureScheme ?? defaultSignatureScheme,
    signingKey: decodeSigningKey(stored),
    ...definedOf({ disabledRevision: stored.disabledRevision }),
    ...decodeDisabling(stored),
    ...decodeStamps(stored),
  };
}

type KeyJson = Pick<z.output<typeof endpointJson>, 'signingKey' | 'previousSigningKeys'>;

function encodeSigningKey(key: WebhookEndpoint['signingKey']): KeyJson {
  if (key === null) return {};
  const previous = key.previous.map(({ sealed, publicKey, validUntilMs }): [string, string, number] => [sealed, publicKey, validUntilMs]);
  return { signingKey: [key.sealed, key.publicKey], ...(previous.length > 0 && { previousSigningKeys: previous }) };
}

function decodeSigningKey({ signingKey, previousSigningKeys = [] }: KeyJson): WebhookEndpoint['signingKey'] {
  if (signingKey === undefined) return null;
  const [sealed, publicKey] = signingKey;
  return {
    sealed,
    publicKey,
    previous: previousSigningKeys.map(([old, oldPublic, validUntilMs]) => ({ sealed: old, publicKey: oldPublic, validUntilMs })),
  };
}

function encodeHeaders(headers: readonly HeaderRecord[]): Pick<z.input<typeof endpointJson>, 'headers' | 'sealedHeaders'> {
  const plain = headers.flatMap(({ name, value }): [string, string][] => (value === undefined ? [] : [[name, value]]));
  const sealed = headers.flatMap(({ name, sealed: text }, place): [number, string, string][] =>
    text === undefined ? [] : [[place, name, text]],
  );
  return { headers: plain.length === 0 ? undefined : plain, sealedHeaders: sealed.length === 0 ? undefined : sealed };
}

function decodeHeaders({
  headers: plain,
  sealedHeaders,
}: Pick<z.output<typeof endpointJson>, 'headers' | 'sealedHeaders'>): HeaderRecord[] {
  const headers: HeaderRecord[] = (plain ?? []).map(([name, value]) => ({ name, value }));
  for (const [place, name, sealed] of sealedHeaders ?? []) headers.splice(place, 0, { name, sealed });
  return headers;
}

export function encodeSubscription(content: SubscriptionContent): string {
  const { filterExpression, labelFilters, labelFilterMode, transformId, isEnabled, lastFilterError } = content;
  return encoded(webhookFields.webhookSubscription, {
    filterExpression: filterExpression ?? undefined,
    labelFilters: Object.keys(labelFilters).length === 0 ? undefined : labelFilters,
    matchesAnyLabel: labelFilterMode === 'any' ? 1 : undefined,
    transform: transformId ?? undefined,
    isOff: isEnabled ? undefined : 1,
    lastFilterError: lastFilterError ?? undefined,
    ...encodeStamps(content),
  } satisfies z.input<typeof subscriptionJson>);
}

export function decodeSubscription(json: string): SubscriptionContent {
  const stored = subscriptionJson.parse(named(parsePlainJson(json), wordsOf.webhookSubscription));
  return {
    filterExpression: stored.filterExpression ?? null,
    labelFilters: stored.labelFilters ?? {},
    labelFilterMode: stored.matchesAnyLabel === 1 ? 'any' : 'all',
    transformId: stored.transform ?? null,
    isEnabled: stored.isOff !== 1,
    lastFilterError: stored.lastFilterError ?? null,
    ...decodeStamps(stored),
  };
}

function encodeStamps({ createdAtMs, updatedAtMs, revision, managedBy }: Stamps) {
  return {
    createdAtMs,
    updatedAtMs: updatedAtMs === createdAtMs ? undefined : updatedAtMs,
    revision: revision === 1 ? undefined : revision,
    managedBy: managedBy ?? undefined,
  };
}

type StoredStamps = Pick<z.output<typeof applicationJson>, keyof Stamps>;

function decodeStamps({ createdAtMs, updatedAtMs = createdAtMs, revision = 1, managedBy }: StoredStamps): Stamps {
  return { createdAtMs, updatedAtMs, revision, managedBy: managedBy ?? null };
}

function encodeDisabling({ isDisabled, disabledReason, disableAfterHours }: Disabling) {
  return {
    ...(isDisabled ? { disabledFor: disabledReason ?? '' } : { reason: disabledReason ?? undefined }),
    disableAfterHours: disableAfterHours ?? undefined,
  };
}

type StoredDisabling = Pick<z.output<typeof applicationJson>, keyof typeof disabling>;

function decodeDisabling({ disabledFor, reason, disableAfterHours }: StoredDisabling): Disabling {
  return {
    isDisabled: disabledFor !== undefined,
    disabledReason: (disabledFor ?? reason) || null,
    disableAfterHours: disableAfterHours ?? null,
  };
}

/** JSON of a record with the short names of its members. */
function encoded<T extends Readonly<Record<string, string>>>(names: T, members: { [K in keyof T]?: unknown }): string {
  return JSON.stringify(Object.fromEntries(Object.entries(members).map(([word, value]) => [names[word], value])));
}

/** The members of a record by their words; those that this release does not have are left out. */
function named(stored: unknown, words: ReadonlyMap<string, string>): unknown {
  if (typeof stored !== 'object' || stored === null) return stored;
  const members = Object.entries(stored).map(([short, value]): [string | undefined, unknown] => [words.get(short), value]);
  return Object.fromEntries(members.filter(([word]) => word !== undefined));
}

function wordsOfTable(names: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(names).map(([word, short]) => [short, word]));
}

function isSame<T extends Record<string, number>>(one: T, other: T): boolean {
  return Object.keys(one).every((name) => one[name] === other[name]);
}
