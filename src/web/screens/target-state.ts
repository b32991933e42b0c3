import type { Answer } from '../api/client.ts';

type Health = Answer<'GET /analytics/destinations/health'>['destinations'][number];

/** What the state of a destination takes from its figures. */
export type HealthFacts = Pick<Health, 'deliveryCount' | 'successRate'> & { recentFailures: readonly { at: string }[] };

/** What it takes from the circuit between a route and the destination. */
export interface CircuitFacts {
  state: 'closed' | 'open' | 'half_open';
  lastSuccessAt?: string | null;
  lastFailureAt?: string | null;
}

/** The circuits of one destination. */
export interface KnownCircuits {
  circuits: readonly CircuitFacts[];
  /** Those of all of its routes. */
  isWhole: boolean;
}

/** A destination that has failed is well after this time without a failure. */
const quietMs = 300_000;

/** `circuit_open`, `failed`, `half_open`, `degraded`, `disabled`, `healthy` or, where nothing has been sent, `idle`. */
export function destinationState(enabled: boolean, health: HealthFacts | undefined, known: KnownCircuits, nowMs: number): string {
  if (!enabled) return 'disabled';
  if (known.circuits.some(({ state }) => state === 'open')) return 'circuit_open';
  if (known.circuits.some(({ state }) => state === 'half_open')) return 'half_open';
  if (health === undefined || (health.deliveryCount === 0 && health.recentFailures.length === 0)) return 'idle';
  if (hasHealed(health, known, nowMs)) return 'healthy';
  if (health.successRate === 0 || health.successRate === null) return 'failed';
  return health.successRate < 100 ? 'degraded' : 'healthy';
}

/**
 * The figures of a range keep a failure to its end. The target is well all the same where no attempt has failed in the last five minutes, and
 * one of each route has succeeded since. A route whose circuits were not read may have failed later.
 */
function hasHealed({ recentFailures }: HealthFacts, { circuits, isWhole }: KnownCircuits, nowMs: number): boolean {
  const failures = [recentFailures[0]?.at, ...circuits.map(({ lastFailureAt }) => lastFailureAt)];
  const failedAtMs = Math.max(...failures.map((at) => (at == null ? Number.NEGATIVE_INFINITY : Date.parse(at))));
  const isWell = circuits.every(({ lastSuccessAt, lastFailureAt }) => isLater(lastSuccessAt, lastFailureAt));
  const hasSucceeded = circuits.some(({ lastSuccessAt }) => lastSuccessAt != null && Date.parse(lastSuccessAt) > failedAtMs);
  return isWhole && isWell && hasSucceeded && nowMs - failedAtMs >= quietMs;
}

/** True where the second never was. */
function isLater(one: string | null | undefined, other: string | null | undefined): boolean {
  return other == null || (one != null && Date.parse(one) > Date.parse(other));
}
