import { z } from 'zod';
import { attemptDetailModes } from '../core/attempt-detail-mode.ts';
import { count } from './config-values.ts';

/** The variables for the attempts of workers. */
export const workerEnvironment = {
  POSTHORN_DELIVERY_CONCURRENCY: count(1, 10_000, 128)
    .describe('Delivery attempts under way at the same time in one worker.')
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_ATTEMPT_DETAIL: z
    .enum(attemptDetailModes)
    .default('failures')
    .describe(
      'Attempts whose headers, peer address, bytes and phases are kept. `failures`: failed attempts, and a success after a failure. `all`: also successes at the first attempt, about 1 KiB of Redis each. `none`: no attempt.',
    )
    .meta({ roles: ['delivery', 'standalone'] }),
};
