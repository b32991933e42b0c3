import type { CircuitState } from '../core/circuit.ts';
import { LatencyHistogram } from '../core/latency-histogram.ts';
import type { StatisticsRange } from './statistics-periods.ts';

/** What became of deliveries, and how long their attempts took. */
export class DeliveryStatistics {
  delivered = 0;
  /** Ended without success. */
  failed = 0;
  /** Failed here and went to a failover destination. */
  movedAway = 0;
  latencySumMs = 0;
  /** Of all attempts, also failed ones. */
  readonly latencies = new LatencyHistogram();

  add(other: DeliveryStatistics): void {
    this.delivered += other.delivered;
    this.failed += other.failed;
    this.movedAway += other.movedAway;
    this.latencySumMs += other.latencySumMs;
    this.latencies.merge(other.latencies);
  }

  get averageLatencyMs(): number | null {
    return this.latencies.total === 0 ? null : this.latencySumMs / this.latencies.total;
  }
}

/** A failed attempt. */
export interface FailedAttempt {
  messageId: string;
  atMs: number;
  responseStatus: number | null;
  errorMessage: string | null;
}

/** One (route, destination): its statistics of the range, and what waits for it now. */
export interface TargetStatistics {
  routeId: string;
  destinationId: string;
  statistics: DeliveryStatistics;
  /** Messages that wait for their first attempt or are in it. */
  fresh: number;
  retries: number;
  /** How many of both are being attempted. */
  underWay: { fresh: number; retries: number };
  circuit: CircuitState;
  /** The newest of the range; empty unless asked for. */
  failures: FailedAttempt[];
}

export interface OrganizationStatistics {
  targets: TargetStatistics[];
  /** Of the whole organization, also of targets that are gone. */
  total: DeliveryStatistics;
  /** Per source its events, per route those it has taken. */
  events: ReadonlyMap<string, number>;
  /** Per route the events that its filter held back. */
  filtered: ReadonlyMap<string, number>;
  /** Per route the deliveries that failed before they were sent, because of its schema or its transform. */
  unsent: ReadonlyMap<string, number>;
  /** Per source the repeated events that were dropped. */
  duplicates: ReadonlyMap<string, number>;
}

/** For the analytics. Throws UNAVAILABLE when Redis does not answer. */
export interface StatisticsReader {
  /** `failures`: with the newest failed attempts of each target. */
  ofOrganization(org: string, range: StatisticsRange, options?: { failures?: boolean }): Promise<OrganizationStatistics>;
}
