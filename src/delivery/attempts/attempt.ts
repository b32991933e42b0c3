import type { KeyObject } from 'node:crypto';
import type { AttemptDetailMode } from '../../core/attempt-detail-mode.ts';
import { retryCount } from '../../core/backoff.ts';
import type { LargeWork } from '../../core/large-ed25519.ts';
import { AbandonedError, loopTurns } from '../../core/loop-turns.ts';
import { wholePayloadBytes } from '../../core/payload-sizes.ts';
import { sentAs } from '../../core/sent-as.ts';
import { withQuery } from '../../core/sent-query.ts';
import { largeWebhookSignature } from '../../core/signing.ts';
import type { Job, Settlement } from '../../data/queue/delivery-queue.ts';
import type { StoredEvent } from '../../data/shard/event-text.ts';
import { countRequest } from '../metrics.ts';
import type { ReadyHttpPlan, ReadyPlan } from '../plans/delivery-plan.ts';
import { exchange, type HttpResult } from '../targets/http/http-exchange.ts';
import type { HttpPlan } from '../targets/http/http-plan.ts';
import { withLookupShare } from '../targets/http/name-lookups.ts';
import { withTemplates } from '../targets/http/own-templates.ts';
import { type AttemptIdentity, type DestinationHeaders, requestHeaders } from '../targets/http/request-headers.ts';
import { type AlertReport, attemptAlert } from './alert-attempt.ts';
import { attemptOutcome, attemptRecord } from './attempt-outcome.ts';
import { refusedWithoutLink, type SentEvent, thinEvent } from './thin-event.ts';
import { hasTransform } from './transformed-event.ts';
import { attemptUpload, type UploadContext } from './upload-attempt.ts';
import { attemptWebhook } from './webhook-attempt.ts';

/** The signal breaks the attempt off; its message then goes back to the queue. */
export interface AttemptContext extends UploadContext {
  userAgent: string;
  attemptDetail: AttemptDetailMode;
  /** Called for every attempt to send an alert. */
  onAlert: (report: AlertReport) => void;
}

/** Delivers a message or a batch once and returns its outcome. Rejects when a batch cannot be read, or an endpoint not be disabled. */
export function attemptDelivery(job: Job, plan: ReadyPlan, context: AttemptContext): Promise<Settlement> {
  return withLookupShare(job.target.org, () => attempt(job, plan, context));
}

function attempt(job: Job, plan: ReadyPlan, context: AttemptContext): Promise<Settlement> {
  switch (plan.type) {
    case 'http':
      return attemptHttp(job, plan, context);
    case 'alert':
      return attemptAlert(job, plan, context);
    case 'warehouse':
      return attemptUpload(job, plan, context);
    case 'webhook':
      return attemptWebhook(job, plan, context);
    default:
      return plan satisfies never;
  }
}

/** Whether a message that has returned to its first destination has no retries left there. */
function hasUsedUpRetries({ attempts, attemptsElsewhere, failover }: Job, policy: ReadyPlan['retryPolicy']): boolean {
  return failover === null && attemptsElsewhere !== null && attempts - attemptsElsewhere > retryCount(policy);
}

type SentAttempt = SentEvent & { identity: AttemptIdentity };
type ExchangeContext = Pick<AttemptContext, 'clock' | 'signal'>;

async function attemptHttp(job: Job, plan: ReadyHttpPlan, context: AttemptContext): Promise<Settlement> {
  const { clock, userAgent, metrics, signal, attemptDetail: mode } = context;
  if (job.event === null) return { job, outcome: { type: 'dead', attempt: null, reason: 'payload_not_found' }, maxAttempts: null };
  const number = job.attempts + 1;
  // Each destination that a message comes to has the retries of its own policy.
  const before = job.attemptsElsewhere ?? 0;
  if (hasUsedUpRetries(job, plan.retryPolicy))
    return { job, outcome: { type: 'dead', attempt: null, reason: 'max_retries_exceeded' }, maxAttempts: null };
  const startedAtMs = clock.now();
  const sent = sentEvent(job, job.event, plan, startedAtMs);
  let result: HttpResult;
  if (sent === null) result = refusedWithoutLink();
  else {
    const identity: AttemptIdentity = {
      messageId: job.messageId,
      eventId: job.eventId,
      number,
      timestampSeconds: Math.floor(startedAtMs / 1000),
      userAgent,
      failover: job.failover,
    };
    const exchanged = sent.event.payload.length > wholePayloadBytes ? exchangeLarge : exchangeWithDestination;
    result = await exchanged(job, plan, { event: sent.event, secrets: sent.secrets, identity }, context);
  }
  if (signal.aborted && result.type === 'error') return { job, outcome: { type: 'back' }, maxAttempts: null };
  const { thin, headers } = plan.http;
  const own = sentAs('destination', { isThin: thin !== null, keys: headers.signingKeys });
  const attempt = attemptRecord(result, plan, { startedAtMs, endedAtMs: clock.now(), sentAs: own }, { mode, number });
  metrics.attemptSeconds.observe({ result: attempt.errorType ?? 'ok' }, attempt.durationMs / 1000);
  countRequest(metrics, 'destination', own);
  return { job, outcome: attemptOutcome(attempt, result, plan, number - before), maxAttempts: before + retryCount(plan.retryPolicy) + 1 };
}

/** The sent body: the payload, or a link to it. Null: there is no address for the link. */
function sentEvent(job: Job, event: StoredEvent, plan: ReadyHttpPlan, nowMs: number): SentEvent | null {
  const { thin, secrets } = plan.http;
  if (thin === null) return { event, secrets };
  const outputOf = hasTransform(job, plan) ? job.target.routeId : null;
  return thinEvent(job, { event, secrets }, thin, { eventId: job.eventId, eventType: null, outputOf, nowMs });
}

async function exchangeLarge(job: Job, plan: ReadyHttpPlan, sent: SentAttempt, context: ExchangeContext): Promise<HttpResult> {
  const { timestampSeconds } = sent.identity;
  const signature = await largeSignature(job, plan.http.headers.signingKeys, { timestampSeconds, signal: context.signal });
  if (signature instanceof AbandonedError) return { type: 'error', error: signature };
  if (signature !== null) sent.identity.signature = signature;
  return await exchangeWithDestination(job, plan, sent, context);
}

function exchangeWithDestination(
  job: Job,
  { http }: ReadyHttpPlan,
  { event, secrets, identity }: SentAttempt,
  { clock, signal }: ExchangeContext,
): Promise<HttpResult> {
  const headers = requestHeaders(ownHeaders(job, http, identity), event, identity);
  const path = http.forwardsQuery ? withQuery(http.path, event.query) : http.path;
  const request = { origin: http.origin, path, method: http.method, headers, body: event.payload, secrets };
  return exchange(http.dispatcher(), request, { timeoutMs: http.timeoutMs, clock, signal });
}

/** The headers of the destination. Their templates read the payload, whatever form goes out. */
function ownHeaders(
  { event }: Job,
  { headers, templates }: HttpPlan,
  { messageId, eventId, number }: Pick<AttemptIdentity, 'messageId' | 'eventId' | 'number'>,
): DestinationHeaders {
  if (templates === null || event === null) return headers;
  return withTemplates(headers, templates, { ...event, source: event.sourceSlug, messageId, eventId, attempt: number });
}

/** Signs a payload that is too large for one turn of the event loop; null: it is not signed. An error once the attempt is aborted. */
async function largeSignature(
  job: Job,
  keys: readonly KeyObject[],
  { timestampSeconds, signal }: { timestampSeconds: number; signal: AbortSignal },
): Promise<string | AbandonedError | null> {
  const payload = job.event?.payload;
  if (payload === undefined || keys.length === 0) return null;
  const organization = job.target.org;
  const inTurns: LargeWork['inTurns'] = (pieces) => loopTurns.of(organization, job.target.destinationId).run(pieces, signal);
  try {
    return await largeWebhookSignature(
      keys,
      { id: job.messageId, timestampSeconds, body: payload },
      { organization, part: job.target.destinationId, inTurns, signal },
    );
  } catch (error) {
    if (error instanceof AbandonedError) return error;
    throw error;
  }
}
