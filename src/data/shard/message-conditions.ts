import type { StatusRange } from '../../core/status-range.ts';
import { attemptErrorTypes, errorLetter } from './attempt-record.ts';
import type { MessageFilter, PayloadFilter } from './message-filter.ts';
import type { AttemptErrorType, AttemptView } from './messages.ts';

/** The filter's conditions on a message itself. */
interface Outcome {
  id: string;
  createdAtMs: number;
  attempts: number;
  lastErrorType: string | null;
  lastResponseStatus: number | null;
}

/** A filter as `list.lua` takes it. */
export interface OutcomeConditions {
  /** Letters of errors. */
  errors?: string;
  responses?: readonly StatusRange[];
  attempts?: readonly [min: number, max: number];
  failed?: readonly [fromMs: number, toMs: number];
}

/** Error types of messages that ended without an attempt, or could not be attempted once more; all of these are in the index of failures. */
export const endErrorTypes: readonly string[] = [
  'secret_decryption_failed',
  'disabled',
  'cancelled',
  'expired',
  'filtered',
  'schema_failed',
  'transform_failed',
];
const firstFailure = 300;
/** By so much the clocks of those who accept events and of those who send them may differ. */
const clockSkewMs = 60_000;
const endOfTimeMs = 9_999_999_999_999;

function isAttemptError(type: string): type is AttemptErrorType {
  return attemptErrorTypes.some((each) => each === type);
}

/** Whether the message is one that the filter lets pass, but for the times of its attempts (`failedWithin`). */
export function meetsFilter(filter: MessageFilter, message: Outcome): boolean {
  const { ids, errorTypes, responseStatuses, attemptsMin = 0, attemptsMax = Number.POSITIVE_INFINITY } = filter;
  const { fromMs = 0, toMs = Number.POSITIVE_INFINITY } = filter;
  const { id, createdAtMs, attempts, lastErrorType, lastResponseStatus } = message;
  return (
    (ids === undefined || ids.includes(id)) &&
    createdAtMs >= fromMs &&
    createdAtMs <= toMs &&
    attempts >= attemptsMin &&
    attempts <= attemptsMax &&
    (errorTypes === undefined || (lastErrorType !== null && errorTypes.includes(lastErrorType))) &&
    (responseStatuses === undefined || responseStatuses.some((range) => isAnswerWithin(range, lastResponseStatus, lastErrorType)))
  );
}

/** Whether the status of the last response is one of these; from 300 on only where the attempt failed. */
export function isAnswerWithin({ first, last }: StatusRange, status: number | null, errorType: string | null): boolean {
  return status !== null && status >= first && status <= last && (status < firstFailure || errorType !== null);
}

/** Whether it filters by failure time. */
export function filtersByFailureTime({ failedFromMs, failedToMs }: MessageFilter): boolean {
  return failedFromMs !== undefined || failedToMs !== undefined;
}

/** Whether one of the attempts failed within the times of the filter. */
export function failedWithin(
  { failedFromMs = 0, failedToMs = Number.POSITIVE_INFINITY }: MessageFilter,
  attempts: readonly AttemptView[],
): boolean {
  return attempts.some(({ errorType, startedAtMs }) => errorType !== null && startedAtMs >= failedFromMs && startedAtMs <= failedToMs);
}

/** Whether every message that passes has failed or ended unsent, so that it is in the index of failures. */
export function isOfFailures(filter: MessageFilter): boolean {
  const { errorTypes, responseStatuses, attemptsMin = 0 } = filter;
  return (
    attemptsMin > 1 ||
    filtersByFailureTime(filter) ||
    errorTypes?.every((type) => isAttemptError(type) || endErrorTypes.includes(type)) === true ||
    responseStatuses?.every(({ first }) => first >= firstFailure) === true
  );
}

/** The range of creation in which a list with the filter is read: no attempt is made before its message. */
export function readRange({ fromMs, toMs, failedToMs }: MessageFilter): { fromMs?: number; toMs?: number } {
  const lastMs = failedToMs === undefined ? toMs : Math.min(toMs ?? endOfTimeMs, failedToMs + clockSkewMs);
  return { ...(fromMs !== undefined && { fromMs }), ...(lastMs !== undefined && { toMs: lastMs }) };
}

/** Null: the script can exclude nothing. */
export function outcomeConditions(filter: MessageFilter): OutcomeConditions | null {
  const { errorTypes, responseStatuses, attemptsMin, attemptsMax, failedFromMs = 0, failedToMs = endOfTimeMs } = filter;
  const conditions: OutcomeConditions = {
    ...(errorTypes?.every(isAttemptError) === true && { errors: errorTypes.map(errorLetter).join('') }),
    ...(responseStatuses !== undefined && { responses: responseStatuses }),
    ...((attemptsMin !== undefined || attemptsMax !== undefined) && { attempts: [attemptsMin ?? 0, attemptsMax ?? 9999] as const }),
    ...(filtersByFailureTime(filter) && { failed: [failedFromMs, failedToMs] as const }),
  };
  return Object.keys(conditions).length === 0 ? null : conditions;
}

/** The filter in the scope of cursors, beside its range of creation; none for an empty filter. */
export function filterScope(filter: MessageFilter & PayloadFilter): string[] {
  const { errorTypes, responseStatuses, attemptsMin, attemptsMax, failedFromMs, failedToMs, where } = filter;
  const ranges = responseStatuses?.map(({ first, last }) => `${first}-${last}`);
  const asked = [
    filter.ids?.toSorted(),
    errorTypes?.toSorted(),
    ranges?.toSorted(),
    attemptsMin,
    attemptsMax,
    failedFromMs,
    failedToMs,
    where,
  ];
  return asked.every((each) => each === undefined) ? [] : [JSON.stringify(asked)];
}
