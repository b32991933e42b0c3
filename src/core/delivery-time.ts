import { z } from 'zod';
import { PosthornError } from './errors.ts';

/** Seven days, in seconds: a message is scheduled no further ahead. */
export const maxDelaySeconds = 604_800;

/** By these headers a sender schedules an event at ingest. */
const deliverAtHeader = 'x-posthorn-deliver-at';
const delayHeader = 'x-posthorn-delay-seconds';

const timeForm = z.iso.datetime({ offset: true });

/** A time as a sender has written it: `deliverAt` in ISO 8601 with an offset, or `delaySeconds` from the receipt of the event. */
interface SentDeliveryTime {
  deliverAt?: string | undefined;
  delaySeconds?: number | undefined;
}

/** The names by which errors call the two. */
interface DeliveryTimeNames {
  deliverAt: string;
  delaySeconds: string;
}

const bodyNames: DeliveryTimeNames = { deliverAt: 'deliverAt', delaySeconds: 'delaySeconds' };
const headerNames: DeliveryTimeNames = { deliverAt: deliverAtHeader, delaySeconds: delayHeader };

/**
 * Returns when the first attempt at an event is made at the earliest, in milliseconds since the epoch; null: at once, also for a time that has passed.
 * Throws VALIDATION_FAILED for both at once, for a time or a delay that is malformed, and for one more than seven days ahead.
 */
export function notBefore({ deliverAt, delaySeconds }: SentDeliveryTime, receivedAtMs: number, names = bodyNames): number | null {
  if (deliverAt !== undefined && delaySeconds !== undefined)
    throw refused(names.delaySeconds, `cannot be given together with ${names.deliverAt}`);
  if (delaySeconds !== undefined) return delaySeconds === 0 ? null : receivedAtMs + delayMs(delaySeconds, names);
  if (deliverAt === undefined) return null;
  if (!timeForm.safeParse(deliverAt).success)
    throw refused(names.deliverAt, 'must be a time in ISO 8601 with an offset, such as 2026-01-31T08:30:00Z');
  const atMs = Date.parse(deliverAt);
  if (atMs > receivedAtMs + maxDelaySeconds * 1000) throw refused(names.deliverAt, 'must be at most 7 days ahead');
  return atMs > receivedAtMs ? atMs : null;
}

/** The same of the headers of an ingest request, lower-case names. */
export function notBeforeOfHeaders(headers: Readonly<Record<string, string | string[] | undefined>>, receivedAtMs: number): number | null {
  const deliverAt = headers[deliverAtHeader]?.toString();
  const delay = headers[delayHeader]?.toString();
  if (deliverAt === undefined && delay === undefined) return null;
  return notBefore({ deliverAt, ...(delay !== undefined && { delaySeconds: wholeSeconds(delay) }) }, receivedAtMs, headerNames);
}

function wholeSeconds(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

function delayMs(seconds: number, names: DeliveryTimeNames): number {
  if (!(seconds <= maxDelaySeconds)) throw refused(names.delaySeconds, `must be a whole number of seconds from 0 to ${maxDelaySeconds}`);
  return seconds * 1000;
}

function refused(name: string, problem: string): PosthornError {
  return new PosthornError('VALIDATION_FAILED', `${name} ${problem}.`, { details: { [name]: [problem] } });
}
