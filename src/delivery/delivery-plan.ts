import type { Dispatcher } from 'undici';
import type { DestinationRecord, HttpAuthRecord, RetryPolicyRecord, RouteRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext, type SealedRecordField } from '../core/sealing-contexts.ts';
import { signingKey } from '../core/signing.ts';
import type { Target, TargetSetting } from '../data/delivery-queue.ts';
import type { DeadLetterReason } from '../data/messages.ts';
import type { RegistryReader } from '../data/registry.ts';
import type { ConnectionRules, Dispatchers } from './targets/http/dispatchers.ts';
import { type DestinationHeaders, destinationHeaders } from './targets/http/request-headers.ts';

export interface ReadyPlan {
  state: 'ready';
  setting: TargetSetting;
  retryPolicy: RetryPolicyRecord;
  expectedResponse: RouteRecord['expectedResponse'];
  origin: string;
  path: string;
  method: DestinationRecord['http']['method'];
  timeoutMs: number;
  headers: DestinationHeaders;
  /** Asked for each attempt: pools that were not used for long are closed. */
  dispatcher: () => Dispatcher;
}

/** How a target's messages are to be treated by today's records. */
export type DeliveryPlan =
  | ReadyPlan
  /** Route or destination is disabled: messages wait. */
  | { state: 'paused'; setting: TargetSetting }
  /** `setting` is null when route or destination are gone. */
  | { state: 'impossible'; reason: DeadLetterReason; setting: TargetSetting | null };

export interface PlanSources {
  registry: RegistryReader;
  keyring: Keyring;
  dispatchers: Dispatchers;
  /** Of the installation; an organization's own are added. */
  allowedCidrs: readonly string[];
}

/** The plan of a target, kept until its route, destination or organization changes. Throws UNAVAILABLE without Redis. */
export async function deliveryPlan(sources: PlanSources, { org, routeId, destinationId }: Target): Promise<DeliveryPlan> {
  return await sources.registry.derive(`delivery:${routeId}/${destinationId}`, async () => ({
    value: await makePlan(sources, org, routeId, destinationId),
    dependsOn: [`route:${routeId}`, `destination:${destinationId}`, `organization:${org}`],
  }));
}

async function makePlan(sources: PlanSources, org: string, routeId: string, destinationId: string): Promise<DeliveryPlan> {
  const { registry, keyring, dispatchers, allowedCidrs } = sources;
  const [route, destination, organization] = await Promise.all([
    registry.get('route', routeId),
    registry.get('destination', destinationId),
    registry.get('organization', org),
  ]);
  if (route === null) return { state: 'impossible', reason: 'route_deleted', setting: null };
  if (destination === null) return withoutDestination(route, destinationId);
  const { retryPolicy, http } = destination;
  const setting = targetSetting(route, destination);
  if (setting.paused) return { state: 'paused', setting };
  const opened = openedSecrets(keyring, destination);
  if (opened === null) return { state: 'impossible', reason: 'secret_decryption_failed', setting };
  const url = new URL(http.url);
  return {
    state: 'ready',
    setting,
    retryPolicy,
    expectedResponse: route.expectedResponse,
    origin: url.origin,
    path: url.pathname + url.search,
    method: http.method,
    timeoutMs: http.timeoutMs,
    headers: opened.headers,
    dispatcher: dispatchers.forRules({
      egress: {
        allowedCidrs: [...allowedCidrs, ...(organization?.egress.allowedCidrs ?? [])],
        allowedHosts: organization?.egress.allowedHosts ?? [],
      },
      tls: opened.tls,
      usesProxy: http.useStaticIp ?? false,
    }),
  };
}

/** A destination that the route still names will have a record again, or soon its first one: messages wait for it. */
function withoutDestination(route: RouteRecord, id: string): DeliveryPlan {
  const isNamed = [...route.destinations, ...route.failover.destinations].some((each) => each.id === id);
  if (!isNamed) return { state: 'impossible', reason: 'destination_not_found', setting: null };
  return { state: 'paused', setting: targetSetting(route, { id, enabled: false, generation: 0, throttle: unlimited }) };
}

const unlimited = { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null } as const;

/** A failover destination hands on to those after it; only the first destination does so before its retries are used up. */
function targetSetting(
  route: RouteRecord,
  destination: Pick<DestinationRecord, 'id' | 'enabled' | 'generation' | 'throttle'>,
): TargetSetting {
  const { destinations, afterAttempts } = route.failover;
  const position = destinations.findIndex(({ id }) => id === destination.id);
  return {
    revision: `${destination.generation}.${route.generation}`,
    paused: !route.enabled || !destination.enabled,
    throttle: destination.throttle,
    priority: route.priority,
    circuit: route.circuit,
    failover: {
      destinations: destinations.slice(position + 1),
      afterAttempts: position < 0 ? afterAttempts : null,
    },
  };
}

/** Null when a secret does not open or is no signing secret. */
function openedSecrets(
  keyring: Keyring,
  { org, id, http }: DestinationRecord,
): { headers: DestinationHeaders; tls: ConnectionRules['tls'] } | null {
  const open = (sealed: string, field: SealedRecordField): string =>
    keyring.open(sealed, recordSealingContext(org, 'destination', id, field));
  try {
    const keys = http.signingSecrets.map((secret) => signingKey(open(secret, 'signingSecrets')));
    const { ca = null, clientCertificate: cert = null, clientKey: key = null } = http.tls ?? {};
    return {
      headers: destinationHeaders(http.headers, openedAuth(http.auth, open), keys),
      tls:
        http.tls === undefined
          ? null
          : { ca, cert: cert === null ? null : open(cert, 'clientCertificate'), key: key === null ? null : open(key, 'clientKey') },
    };
  } catch {
    return null;
  }
}

function openedAuth(auth: HttpAuthRecord, open: (sealed: string, field: SealedRecordField) => string): HttpAuthRecord {
  switch (auth.type) {
    case 'none':
      return auth;
    case 'basic':
      return { ...auth, password: open(auth.password, 'password') };
    case 'bearer':
      return { ...auth, token: open(auth.token, 'token') };
    case 'api_key':
      return { ...auth, key: open(auth.key, 'key') };
    case 'custom_header':
      return { ...auth, headerValue: open(auth.headerValue, 'headerValue') };
    default:
      return auth satisfies never;
  }
}
