import { expect, test } from '@jest/globals';
import type { NewAttempt } from '../shard/attempt-record.ts';
import type { Job, Outcome } from './delivery-queue.ts';
import { settleArguments } from './settle-arguments.ts';

const target = { number: 1, org: 'org_a', routeId: 'rte_a', destinationId: 'dst_a', revision: '1', circuitGeneration: 7 };
const job = { handle: 'q1/1', messageKey: 'k', target, attempts: 0, maxAttempts: 3, isBatch: false } as unknown as Job;
const attempt = (responseStatus: number, isSuccess: boolean): NewAttempt => ({
  startedAtMs: 1,
  durationMs: 2,
  responseStatus,
  responseBody: null,
  errorType: isSuccess ? null : 'http_error',
  errorMessage: null,
});
/** The settlement's result for the circuit. */
function toCircuit(outcome: Outcome): string {
  const [, line] = settleArguments({ job, outcome, maxAttempts: null });
  return String(line).split(' ')[4] ?? '';
}

test.each<[number, boolean, string]>([
  [200, true, '+7'],
  [429, true, '+7'],
  [500, false, '-7'],
  [429, false, ''],
])('an attempt that is answered %i, as a success: %j, reports %j to the circuit', (status, isSuccess, expected) => {
  const made = attempt(status, isSuccess);
  expect(toCircuit(isSuccess ? { type: 'delivered', attempt: made } : { type: 'retry', attempt: made, delayMs: 1 })).toBe(expected);
});
