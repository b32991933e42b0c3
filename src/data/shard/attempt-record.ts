import { parsePlainJson } from '../../core/plain-json.ts';
import type { AttemptErrorType, AttemptView } from './messages.ts';

/**
 * An attempt stands in the message's hash in a short form when that fits into a listpack value of 64 bytes:
 * `<started, base 36> <duration ms> <status> <error letter> <body>`. Otherwise it is JSON in a hash of its own.
 */
const shortLimitBytes = 64;

const errorLetters: readonly (readonly [AttemptErrorType, string])[] = [
  ['timeout', 't'],
  ['http_error', 'h'],
  ['network', 'n'],
  ['dns', 'd'],
  ['tls', 's'],
  ['blocked', 'b'],
  ['gone', 'g'],
];
const letters: ReadonlyMap<AttemptErrorType | null, string> = new Map(errorLetters);
const types: ReadonlyMap<string, AttemptErrorType> = new Map(errorLetters.map(([type, letter]) => [letter, type]));

/** By which errors are counted, too (`includes/count.lua`). */
export const errorTypeByLetter: ReadonlyMap<string, AttemptErrorType> = types;

export function errorLetter(type: AttemptErrorType): string {
  return letters.get(type) ?? '-';
}

export type NewAttempt = Omit<AttemptView, 'attemptNumber'>;

export function encodeAttempt(attempt: NewAttempt): { short: string; long: string } {
  const { startedAtMs, durationMs, responseStatus, responseBody, errorType, errorMessage } = attempt;
  const letter = letters.get(errorType) ?? '-';
  if (errorMessage === null || errorMessage === defaultMessage(attempt)) {
    const short = `${startedAtMs.toString(36)} ${durationMs} ${responseStatus ?? 0} ${letter} ${responseBody ?? ''}`;
    if (Buffer.byteLength(short) <= shortLimitBytes) return { short, long: '' };
  }
  return { short: '', long: encodeLong(attempt) };
}

function encodeLong({ startedAtMs, durationMs, responseStatus, responseBody, errorType, errorMessage }: NewAttempt): string {
  return JSON.stringify([startedAtMs, durationMs, responseStatus, responseBody, letters.get(errorType) ?? '-', errorMessage]);
}

/** Of a batch each member keeps the short form, without body and message; the long one says what that leaves out. */
export function encodeBatchAttempt(attempt: NewAttempt): { short: string; long: string } {
  const { short } = encodeAttempt({ ...attempt, responseBody: null, errorMessage: null });
  const { errorMessage } = attempt;
  const isWhole = errorMessage === null || errorMessage === defaultMessage(attempt);
  return { short, long: isWhole ? '' : encodeLong(attempt) };
}

/** Null when the text is neither form. */
export function decodeAttempt(attemptNumber: number, stored: string): AttemptView | null {
  const attempt = stored.startsWith('[') ? decodeLong(stored) : decodeShort(stored);
  return attempt === null ? null : { attemptNumber, ...attempt };
}

/** The message of an error that says no more than the status does; it is not stored. */
export function defaultMessage({
  errorType,
  responseStatus,
}: {
  errorType: AttemptErrorType | null;
  responseStatus: number | null;
}): string | null {
  return errorType === 'http_error' || errorType === 'gone' ? `the receiver answered ${responseStatus}` : null;
}

function decodeShort(stored: string): NewAttempt | null {
  const match = /^([0-9a-z]+) (\d+) (\d+) (\S) ([\s\S]*)$/.exec(stored);
  if (match === null) return null;
  const [, started = '', duration = '', status = '', letter = '', body = ''] = match;
  const errorType = types.get(letter) ?? null;
  const responseStatus = status === '0' ? null : Number(status);
  return {
    startedAtMs: Number.parseInt(started, 36),
    durationMs: Number(duration),
    responseStatus,
    responseBody: responseStatus === null ? null : body,
    errorType,
    errorMessage: defaultMessage({ errorType, responseStatus }),
  };
}

function decodeLong(stored: string): NewAttempt | null {
  const value: unknown = parsePlainJson(stored);
  if (!Array.isArray(value)) return null;
  const [startedAtMs, durationMs, responseStatus, responseBody, letter, errorMessage]: unknown[] = value;
  if (typeof startedAtMs !== 'number' || typeof durationMs !== 'number' || typeof letter !== 'string') return null;
  return {
    startedAtMs,
    durationMs,
    responseStatus: typeof responseStatus === 'number' ? responseStatus : null,
    responseBody: typeof responseBody === 'string' ? responseBody : null,
    errorType: types.get(letter) ?? null,
    errorMessage: typeof errorMessage === 'string' ? errorMessage : null,
  };
}
