import type { KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Dispatcher } from 'undici';
import type { RetrySchedule } from '../../core/backoff.ts';
import { type EgressRules, egressRules, type InstallationEgress } from '../../core/egress-policy.ts';
import type { ReadyTemplate } from '../../core/header-template.ts';
import type { PayloadLinks } from '../../core/payload-link.ts';
import type { OrganizationRecord, RouteRecord, ThrottleRecord, TransformRecord } from '../../core/records.ts';
import { describesPayload } from '../../core/reserved-headers.ts';
import type { Keyring } from '../../core/sealing.ts';
import { webhookHeaderSealingContext, webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { signingKey, withoutPrefix } from '../../core/signing.ts';
import { statusesOf } from '../../core/success-status.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { Circuits } from '../../data/queue/circuits.ts';
import type { SharedLimiter, TargetSetting } from '../../data/queue/delivery-queue.ts';
import type { EndpointEventRecord, OwnEventLog } from '../../data/queue/own-event-log.ts';
import { Doorkeeper } from '../../data/registry/doorkeeper.ts';
import { hasOwnSource } from '../../data/registry/own-sources.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import type { EndpointDisabling, EndpointToDisable } from '../../data/webhooks/disable-endpoint.ts';
import type { WebhookDirectory } from '../../data/webhooks/webhook-directory.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSecret } from '../../data/webhooks/webhooks.ts';
import type { Dispatchers } from '../targets/http/dispatchers.ts';
import { type ThinForm, thinForm } from '../targets/http/http-plan.ts';
import { httpTarget } from '../targets/http/http-target.ts';
import { ownTemplates } from '../targets/http/own-templates.ts';
import { openedHeaders } from '../targets/http/request-headers.ts';
import { SentSecrets } from '../targets/http/sent-secrets.ts';
import { endpointHeaders, isEndpointHeader } from '../targets/http/webhook-headers.ts';
import { retainedSetting } from './retained-setting.ts';

/** How requests to a webhook endpoint are made. */
export interface WebhookPlan {
  setting: TargetSetting;
  retryPolicy: RetrySchedule;
  /** Null: it gets payloads. */
  thin: ThinForm | null;
  /** Null: any 2xx is success. */
  expectedResponse: RouteRecord['expectedResponse'];
  /** http, where the installation does not allow that. */
  isForbidden: boolean;
  origin: string;
  path: string;
  timeoutMs: number;
  /** Null: one of them does not open. */
  headers: readonly [string, string][] | null;
  /** Templates of headers whose values are made for each attempt; null: none. */
  templates: readonly ReadyTemplate[] | null;
  secrets: readonly EndpointSecret[];
  /** The signing secrets and credentials that replies must not repeat. */
  sentSecrets: SentSecrets;
  /** Called for each attempt: unused pools are closed. */
  dispatcher: () => Dispatcher;
  /** Null when there is none any more. */
  transform: (id: string) => Promise<TransformRecord | null>;
  /** `ifUnchanged`: only if the endpoint has not changed since. Returns whether it did. Rejects with UNAVAILABLE. */
  disable: (disabledReason: string, by: { messageId: string; ifUnchanged: boolean }) => Promise<boolean>;
  /** Uninterrupted failure after which the endpoint is disabled, in milliseconds; null: it never is. */
  disableAfterMs: number | null;
  /** Since when every attempt has failed, counted from the last change of the endpoint at the earliest; null: its circuit is closed. Rejects with UNAVAILABLE. */
  failingSinceMs: () => Promise<number | null>;
  /** Warns the organization that the endpoint will be disabled unless it recovers: so many percent of the time are over. Null: no warnings requested. Rejects with UNAVAILABLE. */
  warnOfDisabling: ((sinceMs: number, percent: number, messageId: string) => Promise<void>) | null;
}

interface EndpointSecret {
  /** Null: it does not open. A private key makes v1a signatures, a secret key v1. */
  key: KeyObject | null;
  /** End of its validity; null: none, it is the current one. */
  validUntilMs: number | null;
}

export interface WebhookPlanSources {
  directory: EndpointReader & Pick<WebhookDirectory, 'onChange'>;
  /** Rejects with UNAVAILABLE. */
  disableEndpoint: (endpoint: EndpointToDisable) => Promise<EndpointDisabling>;
  circuits: Pick<Circuits, 'ofTarget'>;
  ownEvents: Pick<OwnEventLog, 'note'>;
  /** Default for endpoints without a setting of their own or of their application; 0: never. */
  disableAfterHours: number;
  /** Retry schedule of endpoints without delays of their own. */
  retries: RetrySchedule;
  /** Endpoints may be reached by http. */
  allowsInsecureUrls: boolean;
}

/** A cache of the store, or the store. */
type EndpointReader = Pick<WebhookDirectory, 'application' | 'endpoint'>;

interface Sources {
  /** Null: the worker has no public address. */
  payloadLinks: PayloadLinks | null;
  webhooks: Omit<WebhookPlanSources, 'directory'> & { directory: EndpointReader };
  registry: RegistryReader;
  keyring: Keyring;
  dispatchers: Dispatchers;
  allowed: InstallationEgress;
}

interface Made {
  from: readonly [WebhookEndpoint, WebhookApplication, OrganizationRecord | null, hasOwnEvents: boolean];
  plan: WebhookPlan;
}

const plansKept = 20_000;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** The plans of webhook endpoints, cached from their third use on, and rebuilt when the endpoint, application or organization changes. */
export class WebhookPlans {
  readonly #sources: Sources;
  readonly #made = new LRUCache<string, Made>({ maxSize: plansKept, sizeCalculation: () => 1 });
  readonly #doorkeeper = new Doorkeeper();

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  /** Null when the endpoint or its application is gone. `org` is the real organization. Throws UNAVAILABLE. */
  async of(org: string, applicationId: string, endpointId: string): Promise<WebhookPlan | null> {
    const { webhooks, registry } = this.#sources;
    const [endpoint, application, organization, hasOwnEvents] = await Promise.all([
      webhooks.directory.endpoint(org, endpointId),
      webhooks.directory.application(org, applicationId),
      registry.get('organization', org),
      hasOwnSource(registry, org),
    ]);
    if (endpoint === null || application === null || endpoint.applicationId !== applicationId) return null;
    const known = this.#made.get(endpointId);
    const from = [endpoint, application, organization, hasOwnEvents] as const;
    if (known?.from.every((each, i) => each === from[i]) === true) return known.plan;
    const egress = egressRules(this.#sources.allowed, organization);
    const made = this.#make(org, endpoint, application, { egress, hasOwnEvents });
    const plan = organization?.retained === undefined ? made : { ...made, setting: retainedSetting(made.setting) };
    if (this.#doorkeeper.admits(endpointId)) this.#made.set(endpointId, { from, plan });
    return plan;
  }

  #make(
    org: string,
    endpoint: WebhookEndpoint,
    application: WebhookApplication,
    { egress, hasOwnEvents }: { egress: EgressRules; hasOwnEvents: boolean },
  ): WebhookPlan {
    const { webhooks, registry, keyring, dispatchers, payloadLinks } = this.#sources;
    const { id } = endpoint;
    const { protocol, origin, path } = httpTarget(endpoint.url);
    const texts: string[] = [];
    const secretNames: string[] = [];
    const opened = (sealed: string): KeyObject | null => {
      try {
        const text = keyring.open(sealed, webhookSecretSealingContext(org, id));
        texts.push(text, withoutPrefix(text));
        return signingKey(text);
      } catch {
        return null;
      }
    };
    const ownHeaders = (): [string, string][] | null => {
      try {
        const own = openedHeaders(endpoint.headers, (sealed) => keyring.open(sealed, webhookHeaderSealingContext(org, id)));
        texts.push(...own.secrets);
        secretNames.push(...own.secretNames);
        return endpointHeaders(own.headers);
      } catch {
        return null;
      }
    };
    const headers = ownHeaders();
    const isThin = endpoint.payloadForm === 'thin';
    const isSent = (name: string): boolean => !(isThin && describesPayload(name));
    const target = { routeId: application.id, destinationId: id };
    const note = async (about: Pick<EndpointEventRecord, 'kind' | 'number' | 'reason' | 'messageId'>): Promise<void> =>
      await webhooks.ownEvents.note({ shard: application.shard, org: webhookOrganization(org), ...target, ...about });
    const disableAfterMs = (endpoint.disableAfterHours ?? application.disableAfterHours ?? webhooks.disableAfterHours) * hourMs || null;
    const secrets = signingOf(endpoint).map(({ sealed, validUntilMs }) => ({ key: sealed === null ? null : opened(sealed), validUntilMs }));
    return {
      setting: settingOf(endpoint, application, hasOwnEvents),
      retryPolicy: endpoint.retryDelaysSeconds === null ? webhooks.retries : scheduleOf(endpoint.retryDelaysSeconds),
      thin: isThin ? thinForm(headers ?? [], payloadLinks) : null,
      expectedResponse:
        endpoint.successStatusCodes === null ? null : { statusCodes: statusesOf(endpoint.successStatusCodes), bodyContains: null },
      isForbidden: protocol !== 'https:' && !webhooks.allowsInsecureUrls,
      origin,
      path,
      timeoutMs: endpoint.timeoutSeconds * 1000,
      headers: headers?.filter(([name]) => isSent(name)) ?? null,
      templates: ownTemplates(endpoint.headerTemplates, headers ?? [], (name) => isEndpointHeader(name) && isSent(name), {
        application: application.id,
        endpoint: id,
      }),
      secrets,
      sentSecrets: new SentSecrets(texts, secretNames),
      dispatcher: dispatchers.forRules({ egress, tls: null, usesProxy: false }),
      transform: (transformId) => registry.getOf(org, 'transform', transformId),
      disable: async (disabledReason, { messageId, ifUnchanged }) => {
        const endpointToDisable = { org, id, disabledReason, ifRevision: ifUnchanged ? endpoint.revision : undefined };
        const { isDone, revision } = await webhooks.disableEndpoint(endpointToDisable);
        // Each worker that finds it disabled reports it: the worker that disabled it may have died.
        if (hasOwnEvents && revision !== null) await note({ kind: 'disabled', number: revision, reason: disabledReason, messageId });
        return isDone;
      },
      disableAfterMs,
      warnOfDisabling:
        hasOwnEvents && disableAfterMs !== null
          ? async (sinceMs, percent, messageId) =>
              await note({
                kind: 'disabling',
                number: sinceMs * 100 + percent,
                reason: `${percent} ${sinceMs} ${sinceMs + disableAfterMs}`,
                messageId,
              })
          : null,
      failingSinceMs: async () => {
        const circuit = await webhooks.circuits.ofTarget(application.shard, webhookOrganization(org), target);
        return circuit?.openedAtMs == null ? null : Math.max(circuit.openedAtMs, circuit.lastSuccessAtMs ?? 0, endpoint.updatedAtMs);
      },
    };
  }
}

/** Signs its messages by its scheme. `sealed` is null for a missing secret: nothing is sent without it. */
function signingOf({ signatureScheme, secret, signingKey }: WebhookEndpoint): { sealed: string | null; validUntilMs: number | null }[] {
  const all = ({ sealed, previous }: Pick<WebhookSecret, 'sealed' | 'previous'>) => [{ sealed, validUntilMs: null }, ...previous];
  return [
    ...(signatureScheme === 'ed25519' ? [] : all(secret)),
    ...(signatureScheme === 'hmac-sha256' ? [] : signingKey === null ? [{ sealed: null, validUntilMs: null }] : all(signingKey)),
  ];
}

function scheduleOf(delaysSeconds: readonly number[]): RetrySchedule {
  return { delaysMs: delaysSeconds.map((seconds) => seconds * 1000) };
}

/** The keys that sign at a time; null when one of them does not open. */
export function keysAt(secrets: readonly EndpointSecret[], nowMs: number): KeyObject[] | null {
  const keys: KeyObject[] = [];
  for (const { key, validUntilMs } of secrets) {
    if (validUntilMs !== null && nowMs >= validUntilMs) continue;
    if (key === null) return null;
    keys.push(key);
  }
  return keys;
}

/** The limits of an application over all its endpoints. */
export function applicationLimiter({ id, revision, rateLimits }: WebhookApplication): SharedLimiter {
  const { perSecond, perMinute, perHour } = rateLimits;
  const windows = [
    { ms: 1000, most: perSecond },
    { ms: minuteMs, most: perMinute },
    { ms: 60 * minuteMs, most: perHour },
  ];
  return { id, revision, windows: windows.filter(({ most }) => most > 0) };
}

function settingOf(endpoint: WebhookEndpoint, application: WebhookApplication, hasOwnEvents: boolean): TargetSetting {
  const { failureThreshold, successThreshold, cooldownSeconds } = endpoint.circuit;
  const limiter = applicationLimiter(application);
  const pausedFor = endpoint.isDisabled ? 'endpoint_disabled' : application.isDisabled ? 'application_disabled' : null;
  return {
    // Contains of the application only what counts here: its name may change often.
    revision: [
      endpoint.revision,
      pausedFor ?? 'r',
      ...limiter.windows.map(({ most }) => most),
      ...(hasOwnEvents ? ['own'] : []),
      // Workers of the release before support no order: what they put in force is another setting.
      ...(endpoint.ordered ? ['ordered'] : []),
    ].join('.'),
    paused: pausedFor !== null,
    pausedFor,
    movesOn: 'nobody',
    throttle: throttleOf(endpoint),
    sharedLimiter: limiter,
    priority: 0,
    circuit: { failureThreshold, cooldownSeconds, probeSuccessThreshold: successThreshold },
    failover: { destinations: [], afterAttempts: null },
    batch: null,
    inOrder: endpoint.ordered,
    hasAlerts: false,
    hasOwnEvents,
  };
}

function throttleOf({ rateLimitPerSecond: rateLimit, rateLimitStrict }: WebhookEndpoint): ThrottleRecord {
  return rateLimit === 0 ? unlimited : { ...unlimited, mode: 'rate', rateLimit, ...(rateLimitStrict && { strict: true }) };
}

const unlimited: ThrottleRecord = { mode: 'off', rateLimit: null, rateUnit: 'second', maxConcurrency: null, queueLimit: null };
