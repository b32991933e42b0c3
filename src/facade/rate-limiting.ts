import type { ServerResponse } from 'node:http';
import { PosthornError } from '../core/errors.ts';
import type { Plan } from '../core/records.ts';
import { type RateLimiter, tellRate } from '../data/rate-limit.ts';
import type { Caller } from './caller.ts';

/** What is counted apart from each other: requests, and those that send events. */
export type Counted = 'request' | 'send';

/** Per minute and credential (API decisions, "Both families"); null: no limit. */
const limits: Readonly<Record<Counted, Readonly<Record<Plan, number | null>>>> = {
  request: { free: 1000, starter: 1000, pro: 1000, business: 1000, enterprise: null },
  send: { free: 100, starter: 1000, pro: 5000, business: 10_000, enterprise: null },
};

const sendPath = /^\/api\/(?:organizations\/[^/]+\/)?send-events?(?:\/|$)/;

/** What a request to a path counts as. */
export function countedAs(path: string): Counted {
  return sendPath.test(path) ? 'send' : 'request';
}

/** Counts `count` of them, and says so in the `X-RateLimit-*` headers of `response`; RATE_LIMITED beyond the limit. */
export async function limitRate(
  rateLimiter: RateLimiter,
  caller: Caller,
  { response, counted, count = 1 }: { response: Pick<ServerResponse, 'setHeader'>; counted: Counted; count?: number },
): Promise<void> {
  const limit = limits[counted][caller.organization.plan];
  if (limit === null || count === 0) return;
  const { id } = caller.credential;
  const state = await rateLimiter.take(counted === 'send' ? `${id}:send` : id, limit, count);
  if (state === null) return;
  tellRate(response, state);
  if (state.allowed) return;
  const options = { retryAfterSeconds: state.retryAfterSeconds };
  throw new PosthornError(
    'RATE_LIMITED',
    `More than ${state.limit} ${counted === 'send' ? 'events' : 'requests'} in a minute with these credentials.`,
    options,
  );
}
