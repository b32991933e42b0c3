import type { CircuitState } from '../../../core/circuit.ts';
import { worstState } from '../../../core/circuit.ts';
import { DeliveryStatistics, type FailedAttempt, type TargetStatistics } from '../../../data/analytics/statistics.ts';

/** Analytics of several targets together, such as all of a destination. */
export interface Figures {
  delivered: number;
  failed: number;
  /** Ended ones: delivered, failed, gone to a failover destination. */
  deliveries: number;
  /** Wait for their first attempt or a retry, or are under way, now. */
  fresh: number;
  retries: number;
  circuit: CircuitState;
  /** Percent of `deliveries`; null without any. */
  successRate: number | null;
  averageLatencyMs: number | null;
  p50LatencyMs: number | null;
  p95LatencyMs: number | null;
  p99LatencyMs: number | null;
}

/** `movedAwayCounts`: a message moved to a failover destination is a failure of its destination, not of its route; `unsent` failed before any request. */
export function figuresOf(
  targets: readonly TargetStatistics[],
  { movedAwayCounts, unsent = 0 }: { movedAwayCounts: boolean; unsent?: number },
): Figures {
  const sum = new DeliveryStatistics();
  for (const { statistics } of targets) sum.add(statistics);
  const failed = sum.failed + unsent;
  const deliveries = sum.delivered + failed + (movedAwayCounts ? sum.movedAway : 0);
  return {
    delivered: sum.delivered,
    failed,
    deliveries,
    fresh: targets.reduce((all, { fresh }) => all + fresh, 0),
    retries: targets.reduce((all, { retries }) => all + retries, 0),
    circuit: worstState(targets.map(({ circuit }) => circuit)),
    successRate: percent(sum.delivered, deliveries),
    averageLatencyMs: roundedOrNull(sum.averageLatencyMs),
    p50LatencyMs: roundedOrNull(sum.latencies.quantile(0.5)),
    p95LatencyMs: roundedOrNull(sum.latencies.quantile(0.95)),
    p99LatencyMs: roundedOrNull(sum.latencies.quantile(0.99)),
  };
}

/** Null of nothing. */
export function percent(part: number, whole: number): number | null {
  return whole === 0 ? null : rounded((100 * part) / whole);
}

export function roundedOrNull(value: number | null): number | null {
  return value === null ? null : rounded(value);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

const slowMs = 1000;
const msPerPoint = 500;
const maxPointsForLatency = 20;
const maxWhenOpen = 20;
const maxWhenHalfOpen = 60;

export const healthScoreRule =
  `0 to 100: the percent delivered of the deliveries that have ended in the range or wait for a retry now (100 without any), less a point per ${msPerPoint} ms by which ` +
  `p95Latency exceeds ${slowMs} ms (at most ${maxPointsForLatency}); at most ${maxWhenHalfOpen} while one of its circuits is half open, at most ${maxWhenOpen} while one is open.`;

/** See `healthScoreRule`. */
export function healthScore({ delivered, deliveries, retries, p95LatencyMs, circuit }: Figures): number {
  const successes = percent(delivered, deliveries + retries) ?? 100;
  const overMs = Math.max(0, (p95LatencyMs ?? 0) - slowMs);
  const score = Math.max(0, Math.round(successes - Math.min(maxPointsForLatency, overMs / msPerPoint)));
  if (circuit === 'open') return Math.min(maxWhenOpen, score);
  return circuit === 'half_open' ? Math.min(maxWhenHalfOpen, score) : score;
}

export interface StatusBreakdown {
  delivered: number;
  failed: number;
  pending: number;
  retrying: number;
  circuit_open: number;
}

/** The first two are of the range, the others as it is now. */
export function statusBreakdown(total: DeliveryStatistics, targets: readonly TargetStatistics[]): StatusBreakdown {
  const breakdown = { delivered: total.delivered, failed: total.failed, pending: 0, retrying: 0, circuit_open: 0 };
  for (const { fresh, retries, circuit } of targets) {
    if (circuit === 'open') breakdown.circuit_open += fresh + retries;
    else {
      breakdown.pending += fresh;
      breakdown.retrying += retries;
    }
  }
  return breakdown;
}

const maxFailures = 5;

/** The newest first. */
export function newestFailures(targets: readonly TargetStatistics[]): FailedAttempt[] {
  const all = targets.flatMap(({ failures }) => failures);
  return all.sort((one, other) => other.atMs - one.atMs).slice(0, maxFailures);
}
