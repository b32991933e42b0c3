/** Reasons why nothing of a replay can be queued, or sent once all is queued. */
export const replayWaits = [
  'TargetDisabled',
  'CircuitOpen',
  'TargetFull',
  'InFlightLimit',
  'QuotaReached',
  'QueueFull',
  'RedisFull',
  'TooManyReplays',
] as const;
export type ReplayWait = (typeof replayWaits)[number];

/**
 * Why a candidate was not replayed: its payload, or the message itself, was pruned meanwhile; its target is gone; or its target is ordered, where a
 * replay has no position.
 */
export const replaySkips = ['payload_not_found', 'target_not_found', 'target_ordered'] as const;
export type ReplaySkip = (typeof replaySkips)[number];

/** State of a replay that a worker has begun; kept for 90 days after its end. */
export interface ReplayRun {
  identity: string;
  /** Id of the record, and the name of its object. */
  id: string;
  name: string;
  /** Uid of the object for which it was begun: another object with the same identity does not run again. */
  uid: string;
  phase: 'Planning' | 'Running' | 'Succeeded' | 'Failed' | 'Cancelled';
  /** Why it failed, as a word and as a sentence; null: it has not. */
  failure: { reason: 'TooManyFailures' | 'InvalidFilter'; message: string } | null;
  /** Null: it does not wait. */
  waiting: { reason: ReplayWait; message: string; sinceMs: number } | null;
  /** Candidates that the plan has found. `isEstimate`: it ended at 100,000 candidates. */
  plan: { candidates: number; isEstimate: boolean; bytes: number; targets: number; oldestMs: number | null };
  queued: number;
  skipped: Partial<Record<ReplaySkip, number>>;
  delivered: number;
  failed: number;
  /** Queued ones that a filter held back, or that were gone before their end was read. */
  endedOtherwise: number;
  beganAtMs: number;
  /** When all was queued; null: not yet. */
  queuedAtMs: number | null;
  endedAtMs: number | null;
}

/** Returns how many originals were skipped for any reason. */
export function skippedCount(skipped: ReplayRun['skipped']): number {
  return Object.values(skipped).reduce((sum, each) => sum + each, 0);
}
