import { z } from 'zod';
import { defaultPayloadForm } from '../../core/payload-link.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import { parseJson } from '../../core/read-json.ts';
import type { HeaderRecord } from '../../core/records.ts';
import { defaultSignatureScheme } from '../../core/signature-scheme.ts';
import type {
  NewWebhookApplication,
  NewWebhookEndpoint,
  NewWebhookSubscription,
  WebhookApplication,
  WebhookEndpoint,
  WebhookSubscription,
} from './webhooks.ts';

/**
 * Records as they are stored: a head that scripts read (`includes/webhooks.lua`) and JSON with short names, from which is left out
 * what is as by default. Ids and what the head says are not in the JSON.
 */
const defaultRateLimits = { perSecond: 100, perMinute: 1000, perHour: 10_000 };
const defaultTimeoutSeconds = 30;
const defaultCircuit = { failureThreshold: 5, successThreshold: 2, cooldownSeconds: 60 };

/** c created, u last changed when that is another time, v revision from the second on, g custom resource. */
const common = { c: z.number(), u: z.number().optional(), v: z.number().optional(), g: z.string().optional() };
/** x: disabled, with the reason or ''. i: the reason of what is not disabled. z: hours of failure after which it is disabled. */
const disabling = { x: z.string().optional(), i: z.string().optional(), z: z.number().optional() };

const applicationJson = z.object({
  ...common,
  ...disabling,
  n: z.string(),
  e: z.string().optional(),
  m: z.record(z.string(), z.unknown()).optional(),
  l: z.tuple([z.number(), z.number(), z.number()]).optional(),
  s: z.number().optional(),
});
/**
 * h: headers as they are. s: sealed ones, each with its place among all. H: templates of headers. r: seconds between attempts. m: in order, one at a time. j: seconds after which messages
 * expire. xv: the revision with which it was disabled. o: what counts as success. T: links in place of payloads. k, p: secret and previous ones. n: signature scheme. e, f: Ed25519 key and previous ones.
 */
const endpointJson = z.object({
  ...common,
  ...disabling,
  a: z.string(),
  d: z.string().optional(),
  h: z.array(z.tuple([z.string(), z.string()])).optional(),
  s: z.array(z.tuple([z.number(), z.string(), z.string()])).optional(),
  H: z.array(z.tuple([z.string(), z.string()])).optional(),
  t: z.number().optional(),
  l: z.number().optional(),
  y: z.literal(1).optional(),
  m: z.literal(1).optional(),
  r: z.array(z.number()).optional(),
  j: z.number().optional(),
  o: z.array(z.union([z.number(), z.string()])).optional(),
  xv: z.number().optional(),
  b: z.tuple([z.number(), z.number(), z.number()]).optional(),
  k: z.tuple([z.string(), z.string()]),
  w: z.number().optional(),
  p: z.array(z.tuple([z.string(), z.number()])).optional(),
  q: z.string().optional(),
  n: z.enum(['ed25519', 'both']).optional(),
  T: z.literal(1).optional(),
  e: z.tuple([z.string(), z.string()]).optional(),
  f: z.array(z.tuple([z.string(), z.string(), z.number()])).optional(),
});
const subscriptionJson = z.object({
  ...common,
  f: z.string().optional(),
  l: z.record(z.string(), z.union([z.string(), z.array(z.string())])).optional(),
  y: z.literal(1).optional(),
  t: z.string().optional(),
  o: z.literal(1).optional(),
  r: z.string().optional(),
});

type Stamps = Pick<WebhookApplication, 'createdAtMs' | 'updatedAtMs' | 'revision' | 'managedBy'>;
type Disabling = Pick<WebhookApplication, 'isDisabled' | 'disabledReason' | 'disableAfterHours'>;

/** What a record holds beside its head. */
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
  return JSON.stringify({
    n: name,
    e: externalId ?? undefined,
    m: Object.keys(metadata).length === 0 ? undefined : metadata,
    l: isSame(rateLimits, defaultRateLimits) ? undefined : [perSecond, perMinute, perHour],
    s: shard === 0 ? undefined : shard,
    ...encodeDisabling(rest),
    ...encodeStamps(rest),
  } satisfies z.input<typeof applicationJson>);
}

export function decodeApplication(json: string): ApplicationContent {
  const stored = applicationJson.parse(parseJson(json));
  const [perSecond, perMinute, perHour] = stored.l ?? [];
  return {
    name: stored.n,
    externalId: stored.e ?? null,
    metadata: stored.m ?? {},
    rateLimits: { ...defaultRateLimits, ...definedOf({ perSecond, perMinute, perHour }) },
    shard: stored.s ?? 0,
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
  return JSON.stringify({
    a: url,
    d: description ?? undefined,
    ...encodeHeaders(headers),
    H: headerTemplates.length === 0 ? undefined : headerTemplates.map(({ name, template }): [string, string] => [name, template]),
    t: timeoutSeconds === defaultTimeoutSeconds ? undefined : timeoutSeconds,
    l: rateLimitPerSecond === 0 ? undefined : rateLimitPerSecond,
    y: rateLimitStrict ? 1 : undefined,
    m: ordered ? 1 : undefined,
    r: retryDelaysSeconds === null ? undefined : [...retryDelaysSeconds],
    j: expiresAfterSeconds ?? undefined,
    o: successStatusCodes === null ? undefined : [...successStatusCodes],
    xv: disabledRevision,
    b: isSame(circuit, defaultCircuit) ? undefined : [failureThreshold, successThreshold, cooldownSeconds],
    k: [secret.sealed, secret.prefix],
    w: secret.version === 1 ? undefined : secret.version,
    p:
      secret.previous.length === 0
        ? undefined
        : secret.previous.map(({ sealed, validUntilMs }) => [sealed, validUntilMs] as [string, number]),
    q: secret.rotatedBy,
    T: payloadForm === 'thin' ? 1 : undefined,
    n: signatureScheme === 'hmac-sha256' ? undefined : signatureScheme,
    ...encodeSigningKey(signingKey),
    ...encodeDisabling(rest),
    ...encodeStamps(rest),
  } satisfies z.input<typeof endpointJson>);
}

export function decodeEndpoint(json: string): EndpointContent {
  const stored = endpointJson.parse(parsePlainJson(json));
  const [failureThreshold, successThreshold, cooldownSeconds] = stored.b ?? [];
  return {
    url: stored.a,
    description: stored.d ?? null,
    headers: decodeHeaders(stored),
    headerTemplates: (stored.H ?? []).map(([name, template]) => ({ name, template })),
    timeoutSeconds: stored.t ?? defaultTimeoutSeconds,
    rateLimitPerSecond: stored.l ?? 0,
    rateLimitStrict: stored.y === 1,
    ordered: stored.m === 1,
    retryDelaysSeconds: stored.r ?? null,
    expiresAfterSeconds: stored.j ?? null,
    successStatusCodes: stored.o ?? null,
    circuit: { ...defaultCircuit, ...definedOf({ failureThreshold, successThreshold, cooldownSeconds }) },
    secret: {
      sealed: stored.k[0],
      prefix: stored.k[1],
      version: stored.w ?? 1,
      previous: (stored.p ?? []).map(([sealed, validUntilMs]) => ({ sealed, validUntilMs })),
      ...(stored.q === undefined ? {} : { rotatedBy: stored.q }),
    },
    payloadForm: stored.T === 1 ? 'thin' : defaultPayloadForm,
    signatureScheme: stored.n ?? defaultSignatureScheme,
    signingKey: decodeSigningKey(stored),
    ...definedOf({ disabledRevision: stored.xv }),
    ...decodeDisabling(stored),
    ...decodeStamps(stored),
  };
}

type KeyJson = Pick<z.output<typeof endpointJson>, 'e' | 'f'>;

function encodeSigningKey(key: WebhookEndpoint['signingKey']): KeyJson {
  if (key === null) return {};
  const previous = key.previous.map(({ sealed, publicKey, validUntilMs }): [string, string, number] => [sealed, publicKey, validUntilMs]);
  return { e: [key.sealed, key.publicKey], ...(previous.length > 0 && { f: previous }) };
}

function decodeSigningKey({ e, f = [] }: KeyJson): WebhookEndpoint['signingKey'] {
  if (e === undefined) return null;
  const [sealed, publicKey] = e;
  return { sealed, publicKey, previous: f.map(([old, oldPublic, validUntilMs]) => ({ sealed: old, publicKey: oldPublic, validUntilMs })) };
}

function encodeHeaders(headers: readonly HeaderRecord[]): Pick<z.input<typeof endpointJson>, 'h' | 's'> {
  const plain = headers.flatMap(({ name, value }): [string, string][] => (value === undefined ? [] : [[name, value]]));
  const sealed = headers.flatMap(({ name, sealed: text }, place): [number, string, string][] =>
    text === undefined ? [] : [[place, name, text]],
  );
  return { h: plain.length === 0 ? undefined : plain, s: sealed.length === 0 ? undefined : sealed };
}

function decodeHeaders({ h, s }: Pick<z.output<typeof endpointJson>, 'h' | 's'>): HeaderRecord[] {
  const headers: HeaderRecord[] = (h ?? []).map(([name, value]) => ({ name, value }));
  for (const [place, name, sealed] of s ?? []) headers.splice(place, 0, { name, sealed });
  return headers;
}

export function encodeSubscription(content: SubscriptionContent): string {
  const { filterExpression, labelFilters, labelFilterMode, transformId, isEnabled, lastFilterError } = content;
  return JSON.stringify({
    f: filterExpression ?? undefined,
    l: Object.keys(labelFilters).length === 0 ? undefined : labelFilters,
    y: labelFilterMode === 'any' ? 1 : undefined,
    t: transformId ?? undefined,
    o: isEnabled ? undefined : 1,
    r: lastFilterError ?? undefined,
    ...encodeStamps(content),
  } satisfies z.input<typeof subscriptionJson>);
}

export function decodeSubscription(json: string): SubscriptionContent {
  const stored = subscriptionJson.parse(parsePlainJson(json));
  return {
    filterExpression: stored.f ?? null,
    labelFilters: stored.l ?? {},
    labelFilterMode: stored.y === 1 ? 'any' : 'all',
    transformId: stored.t ?? null,
    isEnabled: stored.o !== 1,
    lastFilterError: stored.r ?? null,
    ...decodeStamps(stored),
  };
}

function encodeStamps({ createdAtMs, updatedAtMs, revision, managedBy }: Stamps) {
  return {
    c: createdAtMs,
    u: updatedAtMs === createdAtMs ? undefined : updatedAtMs,
    v: revision === 1 ? undefined : revision,
    g: managedBy ?? undefined,
  };
}

function decodeStamps({ c, u, v, g }: { c: number; u?: number; v?: number; g?: string }): Stamps {
  return { createdAtMs: c, updatedAtMs: u ?? c, revision: v ?? 1, managedBy: g ?? null };
}

function encodeDisabling({ isDisabled, disabledReason, disableAfterHours }: Disabling) {
  return { ...(isDisabled ? { x: disabledReason ?? '' } : { i: disabledReason ?? undefined }), z: disableAfterHours ?? undefined };
}

function decodeDisabling({ x, i, z: hours }: { x?: string; i?: string; z?: number }): Disabling {
  return { isDisabled: x !== undefined, disabledReason: (x ?? i) || null, disableAfterHours: hours ?? null };
}

function isSame<T extends Record<string, number>>(one: T, other: T): boolean {
  return Object.keys(one).every((name) => one[name] === other[name]);
}
