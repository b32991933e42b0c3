import type { KeyObject } from 'node:crypto';
import type { AttemptDetailMode } from '../../core/attempt-detail-mode.ts';
import { retryCount } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import { templatedHeaders } from '../../core/header-template.ts';
import { sentAs } from '../../core/sent-as.ts';
import type { Job, Outcome, Settlement } from '../../data/queue/delivery-queue.ts';
import type { StoredEvent } from '../../data/shard/event-text.ts';
import { countRequest, type DeliveryMetrics } from '../metrics.ts';
import { keysAt, type WebhookPlan } from '../plans/webhook-plan.ts';
import { exchange, type HttpResult } from '../targets/http/http-exchange.ts';
import type { SentSecrets } from '../targets/http/sent-secrets.ts';
import { webhookHeaders } from '../targets/http/webhook-headers.ts';
import { InsecureUrlError } from '../targets/refusals.ts';
import { attemptOutcome, attemptRecord, goneStatus } from './attempt-outcome.ts';
import { refusedWithoutLink, thinEvent } from './thin-event.ts';

interface Context {
  clock: Clock;
  userAgent: string;
  attemptDetail: AttemptDetailMode;
  metrics: DeliveryMetrics;
  /** Breaks the attempt off; its message then goes back to the queue. */
  signal: AbortSignal;
}

/** Delivers a message to a webhook endpoint once and returns its outcome. Rejects when the endpoint is gone and cannot be disabled. */
export async function attemptWebhook(job: Job, plan: WebhookPlan, context: Context): Promise<Settlement> {
  const { clock, userAgent, metrics, signal, attemptDetail: mode } = context;
  const { event, messageId } = job;
  const settle = (outcome: Outcome): Settlement => ({ job, outcome, maxAttempts: retryCount(plan.retryPolicy) + 1 });
  if (event === null) return settle({ type: 'dead', attempt: null, reason: 'payload_not_found' });
  const number = job.attempts + 1;
  const startedAtMs = clock.now();
  const keys = keysAt(plan.secrets, startedAtMs);
  if (keys === null || plan.headers === null) return settle({ type: 'dead', attempt: null, reason: 'secret_decryption_failed' });
  const eventId = event.webhook?.partOf ?? job.eventId;
  const identity = { messageId, eventId, number, timestampSeconds: Math.floor(startedAtMs / 1000), userAgent };
  const headers = ownHeaders({ headers: plan.headers, templates: plan.templates }, event, identity);
  const full = { event, secrets: plan.sentSecrets };
  const linking = { eventId, eventType: event.sourceSlug, outputOf: job.transformId, nowMs: startedAtMs };
  const sent = plan.thin === null ? full : thinEvent(job, full, plan.thin, linking);
  const result =
    sent === null ? refusedWithoutLink() : await exchangeWithEndpoint(plan, { ...sent, own: headers, keys, identity }, { clock, signal });
  if (signal.aborted && result.type === 'error') return settle({ type: 'back' });
  const own = sentAs('endpoint', { isThin: plan.thin !== null, keys });
  const attempt = attemptRecord(result, plan, { startedAtMs, endedAtMs: clock.now(), sentAs: own }, { mode, number });
  metrics.attemptSeconds.observe({ result: attempt.errorType ?? 'ok' }, attempt.durationMs / 1000);
  countRequest(metrics, 'endpoint', own);
  if (attempt.errorType !== null && attempt.responseStatus === goneStatus) {
    // Disables first: a settled message is not tried again.
    if (await plan.disable('the endpoint answered 410 Gone', { messageId, ifUnchanged: false }))
      metrics.endpointsDisabled.inc({ cause: 'gone' });
    return settle({ type: 'dead', attempt: { ...attempt, errorType: 'gone' }, reason: 'destination_not_found', isRejected: true });
  }
  const outcome = attemptOutcome(attempt, result, plan, number);
  if (outcome.type !== 'delivered') await disableFailing(plan, messageId, metrics, clock.now());
  return settle(outcome);
}

/** Warnings, in percent of the time after which an endpoint is disabled; the largest first. */
const warnedAtPercent = [90, 70, 50];

/** Disables the endpoint if every attempt has failed for as long as its plan allows, and warns of that before. Where Redis does not answer, the next failed attempt retries. */
async function disableFailing(
  plan: Pick<WebhookPlan, 'disable' | 'disableAfterMs' | 'failingSinceMs' | 'warnOfDisabling'>,
  messageId: string,
  metrics: DeliveryMetrics,
  nowMs: number,
): Promise<void> {
  const { disableAfterMs } = plan;
  if (disableAfterMs === null) return;
  try {
    const sinceMs = await plan.failingSinceMs();
    if (sinceMs === null) return;
    if (nowMs - sinceMs < disableAfterMs) {
      const percent = warnedAtPercent.find((each) => nowMs - sinceMs >= (disableAfterMs * each) / 100);
      if (percent !== undefined) await plan.warnOfDisabling?.(sinceMs, percent, messageId);
      return;
    }
    if (await plan.disable(`every attempt has failed since ${new Date(sinceMs).toISOString()}`, { messageId, ifUnchanged: true }))
      metrics.endpointsDisabled.inc({ cause: 'failing' });
  } catch (error) {
    if (!isPosthornError(error, 'UNAVAILABLE')) throw error;
  }
}

interface Sent {
  /** Headers of the endpoint. */
  own: readonly [string, string][];
  keys: readonly KeyObject[];
  event: Pick<StoredEvent, 'headers' | 'contentType' | 'payload' | 'sourceSlug'>;
  /** Masked in what is recorded of the answer. */
  secrets: SentSecrets;
  identity: Parameters<typeof webhookHeaders>[3];
}

/** Signs and sends a payload once, within the limits of the plan. */
export async function exchangeWithEndpoint(
  plan: Omit<WebhookPlan, 'headers'>,
  { own, keys, event, secrets, identity }: Sent,
  { clock, signal }: Pick<Context, 'clock' | 'signal'>,
): Promise<HttpResult> {
  if (plan.isForbidden) return { type: 'error', error: new InsecureUrlError() };
  const headers = webhookHeaders(own, keys, event, identity);
  const { origin, path, timeoutMs } = plan;
  const request = { origin, path, method: 'POST' as const, headers, body: event.payload, secrets };
  return await exchange(plan.dispatcher(), request, { timeoutMs, clock, signal });
}

/** The headers of the endpoint. Their templates read the payload, whatever form goes out; messages to endpoints have no headers of a sender. */
export function ownHeaders(
  { headers, templates }: Pick<WebhookPlan, 'templates'> & { headers: readonly [string, string][] },
  event: Pick<StoredEvent, 'contentType' | 'payload' | 'receivedAtMs' | 'sourceSlug'>,
  { number, messageId, eventId }: Sent['identity'],
): readonly [string, string][] {
  if (templates === null) return headers;
  const message = { ...event, source: event.sourceSlug, headers: [], messageId, eventId, attempt: number };
  return [...headers, ...templatedHeaders(templates, message)];
}
