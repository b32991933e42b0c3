import { z } from 'zod';
import { maxExpirySeconds } from '../../../../core/expiry.ts';

/** Field of an event that is sent. */
export const sentExpiry = z
  .int()
  .min(1)
  .max(maxExpirySeconds)
  .optional()
  .describe(
    'Seconds after which a message of the event is given up that has not been delivered: a dead letter whose last error is expired. Where the event type or an endpoint has fewer, these.',
  );
