import { StringDecoder } from 'node:string_decoder';
import type { AttemptDetailMode } from '../../core/attempt-detail-mode.ts';
import { retryCount, retryDelayMs } from '../../core/backoff.ts';
import { httpDateMs } from '../../core/http-date.ts';
import type { SentAs } from '../../core/sent-as.ts';
import type { Outcome, Settlement } from '../../data/queue/delivery-queue.ts';
import { defaultMessage, type NewAttempt } from '../../data/shard/attempt-record.ts';
import type { AttemptErrorType } from '../../data/shard/messages.ts';
import type { ReadyHttpPlan, ReadyPlan } from '../plans/delivery-plan.ts';
import { errorMessage, errorType } from '../targets/http/error-type.ts';
import type { HttpAnswer, HttpResult } from '../targets/http/http-exchange.ts';
import { attemptDetail } from './traced-detail.ts';

const keptBodyBytes = 10_240;
const longestRetryAfterMs = 86_400_000;
/** The receiver declines further messages (Standard Webhooks): not retried. */
export const goneStatus = 410;
const retryAfterStatuses = new Set([429, 503]);

export interface AttemptTimes {
  startedAtMs: number;
  endedAtMs: number;
}

/** Times of an attempt, and the form in which it sends its message. */
type AttemptSending = AttemptTimes & { sentAs?: SentAs | undefined };

/** Whether the record of an attempt has its detail. `number`: of the attempt, from 1. */
export interface DetailPolicy {
  mode: AttemptDetailMode;
  number: number;
}

/** The detail mode of a test: all of the attempt, unless no details are kept. */
export function testDetailPolicy(mode: AttemptDetailMode): DetailPolicy {
  return { mode: mode === 'failures' ? 'all' : mode, number: 1 };
}

/** The record of one exchange. A response counts as failure unless it is the expected one, by default any 2xx without a complaint. */
export function attemptRecord(
  result: HttpResult,
  plan: Pick<ReadyHttpPlan, 'expectedResponse'>,
  { sentAs, ...times }: AttemptSending,
  wish: DetailPolicy = { mode: 'none', number: 1 },
): NewAttempt {
  const attempt = { ...plainRecord(result, plan, times), ...(sentAs !== undefined && { sentAs }) };
  const isWanted = wish.mode === 'all' || (wish.mode === 'failures' && (attempt.errorType !== null || wish.number > 1));
  const detail = isWanted ? attemptDetail(result.traced) : null;
  return detail === null ? attempt : { ...attempt, detail };
}

function plainRecord(
  result: HttpResult,
  plan: Pick<ReadyHttpPlan, 'expectedResponse'>,
  { startedAtMs, endedAtMs }: AttemptTimes,
): NewAttempt {
  const times = { startedAtMs, durationMs: Math.max(0, Math.round(endedAtMs - startedAtMs)) };
  if (result.type === 'error') {
    const { error } = result;
    return { ...times, responseStatus: null, responseBody: null, errorType: errorType(error), errorMessage: errorMessage(error) };
  }
  const responseStatus = result.status;
  const problem = responseProblem(result, plan.expectedResponse);
  const wish = result.asksForNoRetry === true ? ', and asked for no retry' : '';
  return {
    ...times,
    responseStatus,
    responseBody: keptText(result.body),
    errorType: problem?.type ?? null,
    errorMessage: problem?.message == null ? null : problem.message + wish,
  };
}

/** The outcome of the message after attempt `number` (from 1). */
export function attemptOutcome(
  attempt: NewAttempt,
  result: HttpResult,
  { retryPolicy }: Pick<ReadyPlan, 'retryPolicy'>,
  number: number,
  random: () => number = Math.random,
): Outcome {
  if (attempt.errorType === null) return { type: 'delivered', attempt };
  const isRejected = attempt.responseStatus === goneStatus || (result.type === 'response' && result.asksForNoRetry === true);
  if (isRejected) return { type: 'dead', attempt, reason: 'max_retries_exceeded', isRejected };
  if (number > retryCount(retryPolicy)) return { type: 'dead', attempt, reason: 'max_retries_exceeded' };
  const asked = result.type === 'response' && retryAfterStatuses.has(result.status) ? retryAfterMs(result.retryAfter, attempt) : 0;
  return { type: 'retry', attempt, delayMs: Math.max(asked, retryDelayMs(retryPolicy, number, random)) };
}

/** The settlement with a warning for the sender in its attempt; null: unchanged. */
export function withWarning(settlement: Settlement, warning: string | null): Settlement {
  const { outcome } = settlement;
  if (warning === null || !('attempt' in outcome) || outcome.attempt === null) return settlement;
  const { errorMessage } = outcome.attempt;
  const attempt = { ...outcome.attempt, errorMessage: `${errorMessage === null ? '' : `${errorMessage}; `}warning: ${warning}` };
  return { ...settlement, outcome: { ...outcome, attempt } };
}

function responseProblem(
  { status, body, complaint }: Pick<HttpAnswer, 'status' | 'body' | 'complaint'>,
  expected: ReadyHttpPlan['expectedResponse'],
): { type: AttemptErrorType; message: string | null } | null {
  const codes = expected?.statusCodes ?? [];
  const isExpectedStatus = codes.length > 0 ? codes.includes(status) : status >= 200 && status <= 299;
  if (!isExpectedStatus) return { type: 'http_error', message: defaultMessage({ errorType: 'http_error', responseStatus: status }) };
  if (complaint !== undefined) return { type: 'http_error', message: `the receiver answered ${status}: ${complaint}` };
  const part = expected?.bodyContains ?? null;
  if (part !== null && !body.includes(part)) return { type: 'http_error', message: 'the response body does not contain the expected text' };
  return null;
}

/** Some receivers send a fraction, and proxies join a header that came twice. */
const seconds = /^(\d+(?:\.\d+)?)(?:\s*,.*)?$/;

/** RFC 9110 section 10.2.3: seconds, or a date; at most 24 h, 0 when it is neither. */
function retryAfterMs(value: string | null, { startedAtMs, durationMs }: NewAttempt): number {
  const text = value?.trim() ?? '';
  const endedAtMs = startedAtMs + durationMs;
  const sent = seconds.exec(text)?.[1];
  const ms = sent === undefined ? (httpDateMs(text, endedAtMs) ?? 0) - endedAtMs : Math.ceil(Number(sent) * 1000);
  return Math.min(longestRetryAfterMs, Math.max(0, ms));
}

/** Returns the first 10 KiB of a response body, cut between characters. */
function keptText(body: Buffer): string {
  if (body.length <= keptBodyBytes) return body.toString();
  return new StringDecoder('utf8').write(body.subarray(0, keptBodyBytes));
}
