import { describe, expect, test } from '@jest/globals';
import type { HttpResult } from '../targets/http/http-exchange.ts';
import { attemptOutcome, attemptRecord } from './attempt-outcome.ts';

const times = { startedAtMs: Date.UTC(2026, 0, 1), endedAtMs: Date.UTC(2026, 0, 1) + 20 };
const retryPolicy = { maxRetries: 2, initialDelayMs: 1000, maxDelayMs: 60_000, backoffMultiplier: 4 };
const response = (status: number, retryAfter: string | null = null, body = ''): HttpResult => ({
  type: 'response',
  status,
  retryAfter,
  body: Buffer.from(body),
});

function outcomeOf(
  result: HttpResult,
  { number = 1, expectedResponse = null as { statusCodes: number[]; bodyContains: string | null } | null } = {},
) {
  return attemptOutcome(attemptRecord(result, { expectedResponse }, times), result, { retryPolicy }, number, () => 0.5);
}

describe('a response', () => {
  test.each([200, 201, 204, 299])('a response with status %i delivers', (status) =>
    expect(outcomeOf(response(status)).type).toBe('delivered'),
  );
  test.each([199, 300, 302, 404, 409, 500, 599])('a response with status %i is tried again', (status) =>
    expect(outcomeOf(response(status))).toMatchObject({ type: 'retry', delayMs: 1000, attempt: { errorType: 'http_error' } }),
  );

  test('a response after the last retry is a dead letter', () => {
    expect(outcomeOf(response(500), { number: 2 })).toMatchObject({ type: 'retry', delayMs: 4000 });
    expect(outcomeOf(response(500), { number: 3 })).toMatchObject({ type: 'dead', reason: 'max_retries_exceeded' });
  });

  test('a response counts by the status codes and the text that the route expects', () => {
    const expectedResponse = { statusCodes: [202, 404], bodyContains: 'ok' };
    expect(outcomeOf(response(404, null, 'all ok'), { expectedResponse }).type).toBe('delivered');
    expect(outcomeOf(response(200, null, 'all ok'), { expectedResponse }).type).toBe('retry');
    expect(outcomeOf(response(202, null, 'no'), { expectedResponse }).type).toBe('retry');
  });
});

test.each([200, 204])('a complaint with status %i is tried again, and says what the receiver said', (status) => {
  const complained: HttpResult = { type: 'response', status, retryAfter: null, body: Buffer.from('too large'), complaint: 'too large' };
  expect(outcomeOf(complained)).toMatchObject({
    type: 'retry',
    attempt: { errorType: 'http_error', responseStatus: status, errorMessage: `the receiver answered ${status}: too large` },
  });
});

test('410 is not tried again, unless it is what is expected', () => {
  expect(outcomeOf(response(410))).toMatchObject({ type: 'dead', reason: 'max_retries_exceeded' });
  expect(outcomeOf(response(410), { expectedResponse: { statusCodes: [410], bodyContains: null } }).type).toBe('delivered');
});

test('an answer that requests no retry is the last one, unless it is what is expected', () => {
  const asking = (status: number): HttpResult => ({ ...response(status), asksForNoRetry: true }) as HttpResult;
  expect(outcomeOf(asking(422))).toMatchObject({
    type: 'dead',
    reason: 'max_retries_exceeded',
    attempt: { errorType: 'http_error', responseStatus: 422, errorMessage: 'the receiver answered 422, and asked for no retry' },
  });
  expect(outcomeOf(asking(200))).toMatchObject({ type: 'delivered', attempt: { errorMessage: null } });
});

describe('Retry-After', () => {
  test.each([
    [429, '30', 30_000],
    [503, 'Thu, 01 Jan 2026 00:01:00 GMT', 59_980],
    [429, '999999999', 86_400_000],
    [429, 'Thu Jan  1 00:01:00 2026', 59_980],
    [503, ' Thursday, 01-Jan-26 00:01:00 GMT ', 59_980],
    [429, '2.5', 2500],
    [429, '30, 60', 30_000],
    [503, 'Thu Jan 01 2026 01:01:00 GMT+0100 (Central European Standard Time)', 59_980],
    [503, '0', 1000],
    [429, 'soon', 1000],
    [429, '2027', 2_027_000],
    [429, '2027-01', 1000],
    [429, 'Jan 2 2026', 1000],
    [429, 'Thu, 01 Jan 1970 00:00:00 GMT', 1000],
    [500, '30', 1000],
  ])('of a %i saying %j waits %i ms', (status, value, delayMs) => expect(outcomeOf(response(status, value))).toMatchObject({ delayMs }));
});

test('at most 10 KiB of the body are kept, cut between characters', () => {
  const body = Buffer.from('é'.repeat(8000));
  const record = attemptRecord(
    { type: 'response', status: 200, retryAfter: null, body: body.subarray(1) },
    { expectedResponse: null },
    times,
  );
  expect(Buffer.byteLength(record.responseBody ?? '')).toBeLessThanOrEqual(10_240 + 2);
  const whole = attemptRecord({ type: 'response', status: 200, retryAfter: null, body }, { expectedResponse: null }, times);
  expect(whole.responseBody).toBe('é'.repeat(5120));
});
