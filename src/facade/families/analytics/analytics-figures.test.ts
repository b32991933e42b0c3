import { expect, test } from '@jest/globals';
import type { CircuitState } from '../../../core/circuit.ts';
import { latencyBucket } from '../../../core/latency-histogram.ts';
import { DeliveryStatistics, type TargetStatistics } from '../../../data/analytics/statistics.ts';
import { figuresOf, healthScore, newestFailures, statusBreakdown } from './analytics-figures.ts';

function target(
  changes: { delivered?: number; failed?: number; movedAway?: number; ms?: number } & Partial<TargetStatistics>,
): TargetStatistics {
  const { delivered = 0, failed = 0, movedAway = 0, ms, ...rest } = changes;
  const statistics = Object.assign(new DeliveryStatistics(), { delivered, failed, movedAway });
  if (ms !== undefined) statistics.latencies.add(latencyBucket(ms), 10);
  return {
    routeId: 'rte_a',
    destinationId: 'dst_a',
    statistics,
    fresh: 0,
    retries: 0,
    underWay: { fresh: 0, retries: 0 },
    circuit: 'closed',
    failures: [],
    ...rest,
  };
}
const score = (...targets: TargetStatistics[]): number => healthScore(figuresOf(targets, { movedAwayCounts: true }));

test.each<[string, number, TargetStatistics]>([
  ['without deliveries', 100, target({})],
  ['that delivers everything quickly', 100, target({ delivered: 50, ms: 200 })],
  ['that fails one of four', 75, target({ delivered: 3, failed: 1 })],
  ['whose messages all wait for a retry', 0, target({ retries: 7 })],
  ['whose messages go to the failover', 50, target({ delivered: 1, movedAway: 1 })],
  ['that is slow', 90, target({ delivered: 50, ms: 6000 })],
  ['that is very slow', 80, target({ delivered: 50, ms: 60_000 })],
  ['whose circuit is half open', 60, target({ delivered: 50, circuit: 'half_open' })],
  ['whose circuit is open', 20, target({ delivered: 50, circuit: 'open' })],
])('the health score of a destination %s is %i', (_, expected, of) => {
  expect(Math.abs(score(of) - expected)).toBeLessThanOrEqual(1);
});

test('one open circuit is enough to lower the score', () => {
  expect(score(target({ delivered: 50 }), target({ circuit: 'open' }))).toBe(20);
});

test('what went to a failover destination is no failure of the route', () => {
  expect(figuresOf([target({ delivered: 1, movedAway: 1 })], { movedAwayCounts: false })).toMatchObject({
    deliveries: 1,
    successRate: 100,
  });
});

test('what waits for an open circuit is neither pending nor retrying', () => {
  const waiting = (circuit: CircuitState) => target({ fresh: 2, retries: 3, circuit });
  expect(statusBreakdown(new DeliveryStatistics(), [waiting('open'), waiting('closed'), waiting('half_open')])).toEqual({
    delivered: 0,
    failed: 0,
    pending: 4,
    retrying: 6,
    circuit_open: 5,
  });
});

test('the newest five failures of all routes of a destination are shown', () => {
  const failures = (times: number[]) => times.map((atMs) => ({ messageId: `msg_${atMs}`, atMs, responseStatus: 500, errorMessage: null }));
  const shown = newestFailures([target({ failures: failures([9, 7, 5, 3]) }), target({ failures: failures([8, 6, 4, 2]) })]);
  expect(shown.map(({ atMs }) => atMs)).toEqual([9, 8, 7, 6, 5]);
});
