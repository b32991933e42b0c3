import type { ServerResponse } from 'node:http';
import { PosthornError } from '../../core/errors.ts';
import type { Plan } from '../../core/records.ts';
import { type RateLimiter, type RateLimitState, setRateLimitHeaders } from '../../data/intake/rate-limit.ts';
import type { Caller } from './caller.ts';

/** Classes with counters of their own: requests, requests that send events, and fetches of payloads by receivers, which have no credentials. */
export type RequestClass = 'request' | 'send' | 'fetch';

/**
 * Per minute and organization, all its credentials together; null: no limit. A limit per credential
 * would grow with the number of keys.
 */
const limits: Readonly<Record<RequestClass, Readonly<Record<Plan, number | null>>>> = {
  request: { free: 1000, starter: 1000, pro: 1000, business: 1000, enterprise: null },
  send: { free: 100, starter: 1000, pro: 5000, business: 10_000, enterprise: null },
  fetch: { free: 1000, starter: 1000, pro: 5000, business: 10_000, enterprise: null },
};

const countedWords: Readonly<Record<RequestClass, string>> = { request: 'requests', send: 'events', fetch: 'fetches of payloads' };

/** Owner of the limit. */
type Counting = { organization: Pick<Caller['organization'], 'id' | 'plan'> };

const sendPath = /^\/api\/(?:organizations\/[^/]+\/)?send-events?(?:\/|$)/;

/** Counter of a request to a path. */
export function countedAs(path: string): RequestClass {
  return sendPath.test(path) ? 'send' : 'request';
}

/** Counts `count` of them and sets the `X-RateLimit-*` headers of `response`, when there is one; RATE_LIMITED beyond the limit. */
export async function limitRate(
  rateLimiter: RateLimiter,
  caller: Counting,
  { response, counted, count = 1 }: { response: Pick<ServerResponse, 'setHeader'> | null; counted: RequestClass; count?: number },
): Promise<void> {
  const limit = limits[counted][caller.organization.plan];
  if (limit === null || count === 0) return;
  const state = await rateLimiter.take(countedSubject(caller, counted), limit, count);
  if (state === null) return;
  if (response !== null) setRateLimitHeaders(response, state);
  refuseBeyond(state, `${countedWords[counted]} per minute`);
}

function refuseBeyond({ allowed, limit, retryAfterSeconds }: RateLimitState, what: string): void {
  if (!allowed) throw new PosthornError('RATE_LIMITED', `The organization is limited to ${limit} ${what}.`, { retryAfterSeconds });
}

const hourMs = 3_600_000;
/** The tests of e-mail channels that an organization has in an hour: the mails come from the installation, and the addresses may belong to anyone. */
const mailTestsPerHour = 5;

/** Counts a test of an e-mail channel; RATE_LIMITED beyond the limit, which no plan raises. */
export async function limitMailTests(rateLimiter: RateLimiter, { organization }: Caller): Promise<void> {
  const state = await rateLimiter.take(`${organization.id}:mail-tests`, mailTestsPerHour, 1, hourMs);
  if (state !== null) refuseBeyond(state, 'tests of e-mail channels per hour');
}

const bytesPerRequest = 64 * 1024;
/** About 50 ms of work. */
const turnsPerRequest = 10;

/** How many requests a body counts as, beyond the one that brings it. */
export function bodyCharge(bytes: number): number {
  return Math.floor(bytes / bytesPerRequest);
}

/** How many additional requests the work of a request counts as: `waits` as counted by `LoopTurn`. */
export function workCharge(waits: number): number {
  return Math.floor(waits / turnsPerRequest);
}

/** Counts requests for work that is done: as many as are left, without an error. */
export async function chargeWork(rateLimiter: RateLimiter, caller: Caller, requests: number): Promise<void> {
  const limit = limits.request[caller.organization.plan];
  if (limit === null || requests === 0) return;
  const subject = countedSubject(caller, 'request');
  const state = await rateLimiter.take(subject, limit, requests);
  if (state?.allowed === false && state.remaining > 0) await rateLimiter.take(subject, limit, state.remaining);
}

function countedSubject({ organization }: Counting, counted: RequestClass): string {
  return counted === 'request' ? organization.id : `${organization.id}:${counted}`;
}
