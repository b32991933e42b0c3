import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { maxDelaySeconds, notBefore, refusedTime } from '../core/delivery-time.ts';

/** By these headers a sender schedules an event; they are not forwarded. */
const names = { deliverAt: 'x-posthorn-deliver-at', delaySeconds: 'x-posthorn-delay-seconds' };

const timeForm = z.iso.datetime({ offset: true });

/** As `notBefore`, of the headers of a request. Throws VALIDATION_FAILED for a time or a delay that is malformed, too. */
export function notBeforeOfHeaders(headers: IncomingHttpHeaders, receivedAtMs: number): number | null {
  const deliverAt = headers[names.deliverAt]?.toString();
  const delay = headers[names.delaySeconds]?.toString();
  if (delay === undefined && deliverAt !== undefined && !timeForm.safeParse(deliverAt).success)
    throw refusedTime(names.deliverAt, 'must be a time in ISO 8601 with an offset, such as 2026-01-31T08:30:00Z');
  if (deliverAt === undefined && delay !== undefined && !(/^\d{1,9}$/.test(delay) && Number(delay) <= maxDelaySeconds))
    throw refusedTime(names.delaySeconds, `must be a whole number of seconds from 0 to ${maxDelaySeconds}`);
  return notBefore({ deliverAt, delaySeconds: delay === undefined ? undefined : Number(delay) }, receivedAtMs, names);
}
