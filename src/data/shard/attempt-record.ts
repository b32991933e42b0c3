import { StringDecoder } from 'node:string_decoder';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { SentAs } from '../../core/sent-as.ts';
import type { SignatureScheme } from '../../core/signature-scheme.ts';
import { headersWithin, packedDetail, unpackedDetail } from './attempt-detail.ts';
import { fittingText, jsonBytes, sharesOf } from './json-room.ts';
import type { AttemptErrorType, AttemptView } from './messages.ts';

/**
 * An attempt is stored in the message's hash in a short form when that fits into a listpack value of 64 bytes:
 * `<started, base 36> <duration ms> <status> <error letter> <body>`, without a status `<beginning of the error message>` in place of the body. Otherwise it is JSON
 * in a hash of its own. One that failed, or came after such, then has both forms, the short one with the beginning of its body, because the long one may go
 * (`../queue/includes/attempt-details.lua`).
 *
 * A payload form or signature scheme other than the default of the target costs one zero or more in front of a number, which do not change the number for earlier readers.
 * The time has as many as the index of the scheme in `schemes`; the duration has one for the thin form. The long form has both behind the detail.
 */
const shortLimitBytes = 64;
/** Most bytes of the long form beside a short one. */
const longLimitBytes = 4096;
const messageLimitBytes = 1536;

const errorLetters: readonly (readonly [AttemptErrorType, string])[] = [
  ['timeout', 't'],
  ['http_error', 'h'],
  ['network', 'n'],
  ['dns', 'd'],
  ['tls', 's'],
  ['blocked', 'b'],
  ['gone', 'g'],
];
export const attemptErrorTypes = errorLetters.map(([type]) => type);
const letters: ReadonlyMap<AttemptErrorType | null, string> = new Map(errorLetters);
const types: ReadonlyMap<string, AttemptErrorType> = new Map(errorLetters.map(([type, letter]) => [letter, type]));

/** By which errors are counted, too (`includes/count.lua`). */
export const errorTypeByLetter: ReadonlyMap<string, AttemptErrorType> = types;

export function errorLetter(type: AttemptErrorType): string {
  return letters.get(type) ?? '-';
}

/** In the order of their zeros; their positions are stored. */
const schemes: readonly (SignatureScheme | null)[] = [null, 'hmac-sha256', 'ed25519', 'both'];

export type NewAttempt = Omit<AttemptView, 'attemptNumber'>;

/** `number`: of the attempt, from 1. */
export function encodeAttempt(attempt: NewAttempt, number = 1): { short: string; long: string } {
  const { responseBody, errorType, errorMessage, detail = null } = attempt;
  const rest = responseBody ?? '';
  const isWhole = detail === null && (errorMessage === null || errorMessage === defaultMessage(attempt));
  if (isWhole) {
    const short = shortForm(attempt, rest);
    if (Buffer.byteLength(short) <= shortLimitBytes) return { short, long: '' };
  }
  if (detail === null && errorType === null && number === 1) return { short: '', long: encodeLong(attempt) };
  return { short: compactForm(attempt), long: fittingLong(attempt) };
}

function shortForm(attempt: NewAttempt, rest: string): string {
  const { startedAtMs, durationMs, responseStatus, errorType, sentAs } = attempt;
  const started = '0'.repeat(placeOf(sentAs)) + startedAtMs.toString(36);
  const duration = `${sentAs?.isThin === true ? '0' : ''}${durationMs}`;
  return `${started} ${duration} ${responseStatus ?? 0} ${letters.get(errorType) ?? '-'} ${rest}`;
}

/** Rest of an attempt whose long form goes. */
function compactForm(attempt: NewAttempt): string {
  const { responseStatus, responseBody, errorMessage } = attempt;
  const rest = (responseStatus === null ? errorMessage : responseBody) ?? '';
  const room = shortLimitBytes - Buffer.byteLength(shortForm(attempt, ''));
  return shortForm(attempt, new StringDecoder('utf8').write(Buffer.from(rest.slice(0, room)).subarray(0, room)));
}

function placeOf(own: SentAs | undefined): number {
  return own === undefined ? 0 : schemes.indexOf(own.scheme);
}

/** Undefined: all is as is the default. */
function sentAsOf(place: number, isThin: boolean): SentAs | undefined {
  const scheme = schemes[place] ?? null;
  return isThin || scheme !== null ? { isThin, scheme } : undefined;
}

function encodeLong(attempt: NewAttempt, packed?: unknown[]): string {
  const { startedAtMs, durationMs, responseStatus, responseBody, errorType, errorMessage, sentAs } = attempt;
  const letter = letters.get(errorType) ?? '-';
  return JSON.stringify([
    startedAtMs,
    durationMs,
    responseStatus,
    responseBody,
    letter,
    errorMessage,
    ...(packed === undefined && sentAs === undefined ? [] : [packed ?? null]),
    ...(sentAs === undefined ? [] : [placeOf(sentAs), Number(sentAs.isThin)]),
  ]);
}

/** The long form, its body and headers cut so that it is small enough. */
function fittingLong(given: NewAttempt): string {
  const { detail = null, responseBody, errorMessage } = given;
  const attempt = { ...given, errorMessage: errorMessage === null ? null : fittingText(errorMessage, messageLimitBytes) };
  const pack = (kept: Parameters<typeof packedDetail>[1]): unknown[] | undefined =>
    detail === null ? undefined : packedDetail(detail, kept);
  const requestHeaders = detail?.requestHeaders ?? null;
  const responseHeaders = detail?.responseHeaders ?? null;
  const whole = encodeLong(attempt, pack({ requestHeaders, responseHeaders, areCut: false }));
  if (Buffer.byteLength(whole) <= longLimitBytes) return whole;
  const none = { requestHeaders: requestHeaders && [], responseHeaders: responseHeaders && [], areCut: false };
  const bare = encodeLong({ ...attempt, responseBody: responseBody === null ? null : '' }, pack(none));
  const room = longLimitBytes - Buffer.byteLength(bare);
  const wanted = [requestHeaders, responseHeaders, responseBody].map((part) => (part === null ? 0 : jsonBytes(part)));
  const [forSent = 0, forReceived = 0, forBody = 0] = sharesOf(room, wanted);
  const body = responseBody === null ? null : fittingText(responseBody, forBody);
  const kept = headersWithin({ requestHeaders, responseHeaders }, { forSent, forReceived });
  return encodeLong({ ...attempt, responseBody: body }, pack(kept));
}

/** Encodes an attempt at a batch: each member keeps the short form, without body and message; the long one lists what that leaves out. */
export function encodeBatchAttempt(attempt: NewAttempt): { short: string; long: string } {
  const short = shortForm(attempt, '');
  const { errorMessage } = attempt;
  const isWhole = errorMessage === null || errorMessage === defaultMessage(attempt);
  return { short, long: isWhole ? '' : encodeLong(attempt) };
}

/** Null when the text is neither form. */
export function decodeAttempt(attemptNumber: number, stored: string): AttemptView | null {
  const attempt = stored.startsWith('[') ? decodeLong(stored) : decodeShort(stored);
  return attempt === null ? null : { attemptNumber, ...attempt };
}

/** The message of an error that only repeats the status; it is not stored. */
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
  const sentAs = sentAsOf(zerosBefore(started), zerosBefore(duration) > 0);
  return {
    startedAtMs: Number.parseInt(started, 36),
    durationMs: Number(duration),
    responseStatus,
    responseBody: responseStatus === null ? null : body,
    errorType,
    errorMessage: responseStatus === null && body !== '' ? body : defaultMessage({ errorType, responseStatus }),
    ...(sentAs !== undefined && { sentAs }),
  };
}

/** Number of leading zeros before a number that may itself be 0. */
function zerosBefore(digits: string): number {
  return /^0*(?=.)/.exec(digits)?.[0].length ?? 0;
}

function decodeLong(stored: string): NewAttempt | null {
  const value: unknown = parsePlainJson(stored);
  if (!Array.isArray(value)) return null;
  const [startedAtMs, durationMs, responseStatus, responseBody, letter, errorMessage, packed, place, isThin]: unknown[] = value;
  if (typeof startedAtMs !== 'number' || typeof durationMs !== 'number' || typeof letter !== 'string') return null;
  const detail = unpackedDetail(packed);
  const sentAs = sentAsOf(typeof place === 'number' ? place : 0, isThin === 1);
  return {
    startedAtMs,
    durationMs,
    responseStatus: typeof responseStatus === 'number' ? responseStatus : null,
    responseBody: typeof responseBody === 'string' ? responseBody : null,
    errorType: types.get(letter) ?? null,
    errorMessage: typeof errorMessage === 'string' ? errorMessage : null,
    ...(detail !== null && { detail }),
    ...(sentAs !== undefined && { sentAs }),
  };
}
