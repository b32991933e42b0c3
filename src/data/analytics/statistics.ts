import type { CircuitState } from '../../core/circuit.ts';
import { LatencyHistogram } from '../../core/latency-histogram.ts';
import { hashFields } from '../shard/hash-fields.ts';

/** Replace a bucket (`../queue/includes/statistics.lua`). */
export const retriedBucket = 161;
export const openedBucket = 162;

/** Outcomes of deliveries, and durations of their attempts. */
export class DeliveryStatistics {
  delivered = 0;
  /** Ended without success. */
  failed = 0;
  /** Failed here and went to a failover destination. */
  movedAway = 0;
  /** Failed attempts after which another one was planned; a batch is one. */
  retried = 0;
  /** Circuits that opened. A failed probe is part of the same opening. */
  circuitsOpened = 0;
  latencySumMs = 0;
  /** Latencies of all attempts, including failed ones. */
  readonly latencies = new LatencyHistogram();

  add(other: DeliveryStatistics): void {
    this.delivered += other.delivered;
    this.failed += other.failed;
    this.movedAway += other.movedAway;
    this.retried += other.retried;
    this.circuitsOpened += other.circuitsOpened;
    this.latencySumMs += other.latencySumMs;
    this.latencies.merge(other.latencies);
  }

  /** Adds the list of a target as `../queue/includes/statistics.lua` describes it. */
  addRecord(numbers: readonly number[]): void {
    const [delivered = 0, failed = 0, movedAway = 0, latencySumMs = 0] = numbers;
    this.delivered += delivered;
    this.failed += failed;
    this.movedAway += movedAway;
    this.latencySumMs += latencySumMs;
    for (let i = 4; i + 1 < numbers.length; i += 2) {
      const bucket = numbers[i] ?? 0;
      const count = numbers[i + 1] ?? 0;
      if (bucket === retriedBucket) this.retried += count;
      else if (bucket === openedBucket) this.circuitsOpened += count;
      else this.latencies.add(bucket, count);
    }
  }

  /** Adds what a tally has of a target, as `../shard/includes/count.lua` describes it: a letter, a bucket or '', and how many. */
  addTallied(what: string, bucket: string, count: number): void {
    const { tally } = hashFields;
    if (what === tally.delivered || what === tally.deliveredInBatch) this.delivered += count;
    if (what === tally.failed) this.failed += count;
    if (what === tally.moved) this.movedAway += count;
    if (what === tally.retried) this.retried += count;
    if (what === tally.circuitOpenings) this.circuitsOpened += count;
    if (what === tally.durationMs) this.latencySumMs += count;
    if (bucket !== '') this.latencies.add(Number(bucket), count);
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
  /** The newest of the range; empty unless requested. */
  failures: FailedAttempt[];
}

export interface OrganizationStatistics {
  targets: TargetStatistics[];
  /** Sum over the whole organization, including targets that are gone. */
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
