import type { Response } from 'express';
import { PosthornError } from '../core/errors.ts';
import type { Plan } from '../core/records.ts';
import type { RateLimiter } from '../data/rate-limit.ts';
import type { Caller } from './caller.ts';

/** Requests per minute and credential (API decisions, "Both families"); null: no limit. */
function limitOf(plan: Plan): number | null {
  return plan === 'enterprise' ? null : 1000;
}

/** Counts the request and sets the `X-RateLimit-*` headers; RATE_LIMITED beyond the limit. */
export async function limitRate(rateLimiter: RateLimiter, caller: Caller, response: Response): Promise<void> {
  const limit = limitOf(caller.organization.plan);
  if (limit === null) return;
  const state = await rateLimiter.take(caller.apiKeyId, limit);
  if (state === null) return;
  response.set({
    'X-RateLimit-Limit': String(state.limit),
    'X-RateLimit-Remaining': String(state.remaining),
    'X-RateLimit-Reset': String(Math.ceil(state.resetAtMs / 1000)),
  });
  if (state.allowed) return;
  const options = { retryAfterSeconds: state.retryAfterSeconds };
  throw new PosthornError('RATE_LIMITED', `More than ${state.limit} requests in a minute with this API key.`, options);
}
