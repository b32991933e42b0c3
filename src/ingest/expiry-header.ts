import type { IncomingHttpHeaders } from 'node:http';
import { PosthornError } from '../core/errors.ts';
import { expirySeconds, maxExpirySeconds } from '../core/expiry.ts';

/** Seconds after which messages of the event expire, at most; it is not forwarded. */
const expiryHeader = 'x-posthorn-expires-after-seconds';

/** Undefined: the event has none. Throws VALIDATION_FAILED for what are no such seconds. */
export function sentExpirySeconds(headers: IncomingHttpHeaders): number | undefined {
  const text = headers[expiryHeader];
  if (text === undefined) return undefined;
  const seconds = typeof text === 'string' ? expirySeconds(text) : null;
  if (seconds === null)
    throw new PosthornError('VALIDATION_FAILED', `The header ${expiryHeader} must be a whole number from 1 to ${maxExpirySeconds}`, {
      details: { [expiryHeader]: [`must be a whole number from 1 to ${maxExpirySeconds}`] },
    });
  return seconds;
}
