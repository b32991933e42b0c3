import {
  type Alert,
  channelOfClosingTarget,
  organizationBehind,
  parseAlert,
  routeOfMailTarget,
  routingKeyHeader,
} from '../../core/alert.ts';
import type { AttemptDetailMode } from '../../core/attempt-detail-mode.ts';
import type { Clock } from '../../core/clock.ts';
import type { ChannelAlert } from '../../data/alerts/channel-alerts.ts';
import type { Job, Settlement } from '../../data/queue/delivery-queue.ts';
import type { NewAttempt } from '../../data/shard/attempt-record.ts';
import type { AlertPlan } from '../plans/alert-plan.ts';
import type { AlertAttempt } from '../targets/channel/channel-sender.ts';
import { attemptOutcome, attemptRecord } from './attempt-outcome.ts';

/** Result of an attempt to send an alert. */
export interface AlertReport {
  job: Job;
  /** Null: its payload is no longer stored, or cannot be read. */
  alert: Alert | null;
  channelType: AlertPlan['channelType'];
  outcome: Settlement['outcome'];
}

const states = { delivered: 'delivered', retry: 'retrying', dead: 'failed' } as const;

/** Sends an alert once and returns its outcome. Never rejects. */
export async function attemptAlert(
  job: Job,
  { send, retryPolicy, channelType }: AlertPlan,
  {
    clock,
    signal,
    onAlert,
    attemptDetail: mode,
  }: { clock: Clock; signal: AbortSignal; onAlert: (report: AlertReport) => void; attemptDetail: AttemptDetailMode },
): Promise<Settlement> {
  const { event, messageId, eventId } = job;
  const alert = event === null ? null : parseAlert(event.payload.toString());
  const settle = (outcome: Settlement['outcome']): Settlement => {
    if (outcome.type !== 'back') onAlert({ job, alert, channelType, outcome });
    return { job, outcome, maxAttempts: null };
  };
  if (event === null || alert === null) return settle({ type: 'dead', attempt: null, reason: 'payload_not_found' });
  if (send === null) return settle({ type: 'dead', attempt: null, reason: 'secret_decryption_failed' });
  const number = job.attempts + 1;
  const startedAtMs = clock.now();
  const isBroken = event.headers.some(([name]) => name === 'broken');
  const routingKey = event.headers.find(([name]) => name === routingKeyHeader)?.[1] ?? null;
  const attempt: AlertAttempt = { alert, isBroken, routingKey, messageId, eventId, number, signal };
  const result = await send(attempt);
  if (signal.aborted && result.type === 'error') return settle({ type: 'back' });
  // The response is not stored: it may repeat secrets of the request.
  const times = { startedAtMs, endedAtMs: clock.now() };
  const record = { ...attemptRecord(result, { expectedResponse: null }, times, { mode, number }), responseBody: null };
  return settle(attemptOutcome(record, result, { retryPolicy }, number));
}

/** Returns the entry of the attempt in the alerts of its channel; null: it was not for a channel, nothing was sent, or its payload is no longer stored. */
export function channelAlertOf({ job, alert, outcome }: AlertReport): { org: string; alert: ChannelAlert } | null {
  const { messageId, attempts } = job;
  const { destinationId: channelId, org } = job.target;
  if (routeOfMailTarget(channelId) !== null || channelOfClosingTarget(channelId) !== null) return null;
  if (alert === null || !('attempt' in outcome) || outcome.attempt === null) return null;
  const made = { messageId, attempts: attempts + 1, state: states[outcome.type] };
  return { org: organizationBehind(org) ?? org, alert: channelAlert(alert, made, outcome.attempt) };
}

/** An alert as the list of its channel shows it. */
export function channelAlert(
  { type, route, destination, count, test }: Alert,
  made: Pick<ChannelAlert, 'messageId' | 'attempts' | 'state'>,
  { startedAtMs, durationMs, responseStatus, errorMessage }: NewAttempt,
): ChannelAlert {
  const last = { lastAttemptAtMs: startedAtMs + durationMs, responseStatus, errorMessage };
  return { ...made, type, route, destination, count, isTest: test === true, ...last };
}
