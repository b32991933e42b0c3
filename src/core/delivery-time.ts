import { PosthornError } from './errors.ts';

/** Seven days, in seconds: a message is scheduled no further ahead. */
export const maxDelaySeconds = 604_800;

/** A time as a sender has given it: `deliverAt` in ISO 8601 with an offset, or `delaySeconds`, 0 to `maxDelaySeconds`, from the receipt of the event. */
interface SentDeliveryTime {
  deliverAt?: string | undefined;
  delaySeconds?: number | undefined;
}

const bodyNames = { deliverAt: 'deliverAt', delaySeconds: 'delaySeconds' };

/**
 * Returns when the first attempt at an event is made at the earliest, in milliseconds since the epoch; null: at once, also for a time that has passed.
 * Throws VALIDATION_FAILED for both at once, and for a time more than seven days ahead. `names`: by which errors call the two.
 */
export function notBefore({ deliverAt, delaySeconds }: SentDeliveryTime, receivedAtMs: number, names = bodyNames): number | null {
  if (deliverAt !== undefined && delaySeconds !== undefined)
    throw refusedTime(names.delaySeconds, `cannot be given together with ${names.deliverAt}`);
  const atMs = deliverAt === undefined ? receivedAtMs + (delaySeconds ?? 0) * 1000 : Date.parse(deliverAt);
  if (atMs > receivedAtMs + maxDelaySeconds * 1000) throw refusedTime(names.deliverAt, 'must be at most 7 days ahead');
  return atMs > receivedAtMs ? atMs : null;
}

/** VALIDATION_FAILED that names a field or a header; `problem` continues the sentence. */
export function refusedTime(name: string, problem: string): PosthornError {
  return new PosthornError('VALIDATION_FAILED', `${name} ${problem}.`, { details: { [name]: [problem] } });
}
