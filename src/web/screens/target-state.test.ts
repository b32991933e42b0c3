import { expect, test } from '@jest/globals';
import { type CircuitFacts, destinationState } from './target-state.ts';

const failedAt = '2026-03-01T12:00:00.000Z';
const health = { deliveryCount: 10, successRate: 60, recentFailures: [{ at: failedAt }] };
const well: CircuitFacts = { state: 'closed', lastSuccessAt: '2026-03-01T12:00:10.000Z', lastFailureAt: failedAt };
const minutesLater = (minutes: number): number => Date.parse(failedAt) + minutes * 60_000;

test.each([
  ['healthy after five minutes without a failure', [well], true, 5, 'healthy'],
  ['degraded until then, though an attempt has succeeded since', [well], true, 4.9, 'degraded'],
  ['degraded as long as nothing has succeeded since', [{ ...well, lastSuccessAt: null }], true, 60, 'degraded'],
  ['degraded while the last attempt of one of its routes failed', [well, { ...well, lastSuccessAt: null }], true, 60, 'degraded'],
  ['degraded while a route failed lately', [{ ...well, lastFailureAt: '2026-03-01T12:00:05.000Z' }], true, 5, 'degraded'],
  ['degraded where not all of its routes were read', [well], false, 60, 'degraded'],
] as const)('a destination with failures is %s', (_title, circuits, isWhole, minutes, state) => {
  expect(destinationState(true, health, { circuits, isWhole }, minutesLater(minutes))).toBe(state);
});
