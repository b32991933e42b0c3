import type { CircuitSetting } from '../../core/circuit.ts';
import type { ThrottleRecord } from '../../core/records.ts';
import type { NewAttempt } from '../shard/attempt-record.ts';
import type { StoredEvent } from '../shard/event-text.ts';
import type { DeadLetterReason } from '../shard/messages.ts';
import type { PauseReason } from '../shard/waits.ts';

/** One (route, destination), by the number that it has in its shard. */
export interface Target {
  number: string;
  org: string;
  routeId: string;
  destinationId: string;
  /** Revision of the setting that is in force; null: none is yet. */
  revision: string | null;
  /** Generation of the target's circuit when the work was taken. */
  circuitGeneration: number;
  /** Its attempts count as slow ones (`includes/slow.lua`). */
  isSlow: boolean;
  /** The setting by which the work was taken leases one message at a time, in order. */
  isInOrder: boolean;
}

/** In any window of so many ms the targets that share it get at most so many messages together. */
export interface SharedLimiter {
  id: string;
  /** Grows with each change. */
  revision: number;
  windows: readonly { ms: number; most: number }[];
}

/** The setting of a target that the queue needs before it leases its work. */
export interface TargetSetting {
  /** Changes whenever anything below does. */
  revision: string;
  paused: boolean;
  /** Why it is paused, or does not serve; null: it is neither. */
  pausedFor: PauseReason | null;
  /**
   * Messages that move on to the next failover destination, or back to their first one, because the target does not serve any more: nobody's, those that
   * came from another destination, or all. Where all do the target is not paused.
   */
  movesOn: 'nobody' | 'guests' | 'all';
  throttle: ThrottleRecord;
  /** The limiter that it shares with other targets of its shard; null: none. */
  sharedLimiter: SharedLimiter | null;
  /** Higher ones come first where targets wait for one limiter. */
  priority: number;
  circuit: CircuitSetting;
  /**
   * Where messages go that this target fails to deliver, in order; `awaited`: those of the route's list that do not serve yet; `afterAttempts` null: once its
   * retries are used up.
   */
  failover: { destinations: readonly { id: string; shard: number }[]; awaited?: readonly string[]; afterAttempts: number | null };
  /** Null: messages go out one by one. Else a batch is complete at so many records or bytes, or when its oldest is so old. */
  batch: { layout: string; records: number; bytes: number; ageMs: number } | null;
  /** Its messages go out in the order in which the shard took them in, one at a time (`shard/includes/order.lua`); null: as before. */
  inOrder: boolean | null;
  /** Ends here are relevant to the alerts of its route. */
  hasAlerts: boolean;
  /** Ends here are relevant to the sources of its organization for Posthorn's own events. */
  hasOwnEvents: boolean;
}

/**
 * Why a message was moved to another destination than its first. `destination_unavailable`: the one before was disabled, suspended or left the route, or a
 * replay sends it elsewhere.
 */
export type FailoverReason =
  | 'circuit_open'
  | 'failed_attempts'
  | 'max_retries_exceeded'
  | 'secret_decryption_failed'
  | 'queue_limit_exceeded'
  | 'destination_not_found'
  | 'destination_unavailable';

/** Where messages go whose target is gone, in order; null: its route is gone, too. */
export type DeletedTargetFailover = readonly { id: string; shard: number }[] | null;

/** A target whose route or destination is gone. */
export interface DeletedTarget {
  target: Target;
  reason: DeadLetterReason;
  failover: DeletedTargetFailover;
}

/** A message that a worker holds until it settles it. */
export interface Job {
  /** `<lane>/<entry>`: names this holding of the message. */
  handle: string;
  target: Target;
  messageId: string;
  messageKey: string;
  eventId: string;
  /** Attempts recorded so far. */
  attempts: number;
  maxAttempts: number;
  /** Attempts that were made elsewhere, which do not count here; null: it has never moved. */
  attemptsElsewhere: number | null;
  /** Null: it is where it was sent first. */
  failover: { originalDestinationId: string; reason: FailoverReason } | null;
  /** Null when the payload is gone, and for a batch. */
  event: StoredEvent | null;
  /** The output of a transform is kept for it. */
  hasOutput: boolean;
  /** Transform of the subscription of a webhook endpoint. */
  transformId: string | null;
  /** The job is a batch of messages (`RedisDeliveryQueue.batch`); its key represents them. */
  isBatch: boolean;
}

export interface BatchMember {
  messageId: string;
  messageKey: string;
  eventId: string;
  /** The output of a transform was kept for it when the batch was formed. */
  hasOutput: boolean;
  /** It was found that it is not to be written. */
  isUnsent: boolean;
}

/** Why a member of a batch is not written, and how it ends; `dlq`: as a dead letter. */
export type UnsentMember = { messageKey: string } & (
  | { status: 'filtered' | 'transform_failed'; reason: string | null }
  | { status: 'dlq'; reason: DeadLetterReason }
);

/** Messages that go out together. It is the same however often it is read, until it is cut. */
export interface Batch {
  /** A ULID. */
  id: string;
  /** By the setting of the target when the batch was formed. */
  layout: string;
  /** Oldest first. */
  members: BatchMember[];
}

export type Outcome =
  | { type: 'delivered'; attempt: NewAttempt }
  | { type: 'retry'; attempt: NewAttempt; delayMs: number }
  /** `attempt` is null when nothing was sent. `isRejected`: its receiver allows no further attempt, whatever the retries that are left. */
  | { type: 'dead'; attempt: NewAttempt | null; reason: DeadLetterReason; isRejected?: true }
  /** Nothing was sent, and nothing will be; `tookMs`: how long it took to find out. */
  | { type: 'unsent'; status: 'filtered' | 'transform_failed'; reason: string | null; tookMs: number }
  /** Back to the queue, no attempt counted. */
  | { type: 'back' };

export interface Settlement {
  job: Job;
  outcome: Outcome;
  /** Largest number of attempts by the policy of today; null: as it was. */
  maxAttempts: number | null;
}

/**
 * Hints of a call to the worker about the shard besides its result: what is left to do there. Every call that reports it does so in this form
 * (`hints.lua`). A hint is true only where the call has checked it or caused it; false does not mean that there is nothing.
 */
export interface ShardHints {
  /** The worker's pool can dequeue work. */
  hasReadyWork: boolean;
  /** Some of that is of others than the dominant account and those that get nothing (`TurnOrder`). */
  hasWorkOfOthers: boolean;
  /** When `promote` has something to move; 0: now; null: nothing is known to wait. */
  nextDueMs: number | null;
  /** Entries of the outbox are to be carried to other shards. */
  hasOutbox: boolean;
  /** Batches have ended whose members have not followed yet (`endBatches`). */
  hasEndedBatches: boolean;
  /** The alerts have work (`AlertStates`). */
  hasEnds: boolean;
}

export interface DequeueAnswer extends ShardHints {
  jobs: Job[];
  /** Targets that have work but need `configure` first. */
  unconfigured: Target[];
}

export interface SettleAnswer extends ShardHints {
  /** One entry per settlement: false when another worker has settled it. */
  settled: boolean[];
}

/** State of a shard that a worker may have missed. Its `hasOutbox`: an entry waits for longer than its maker needs to carry it. */
export interface ShardState extends ShardHints {
  /** Random value of this Redis; another one means that it was emptied. */
  marker: string;
  /** How many messages this worker holds. */
  held: number;
  /** Something is held past its deadline. */
  hasOverdueWork: boolean;
  pausedTargets: number;
  /** Share of Redis' memory limit that is in use; null: there is no limit. */
  memoryShare: number | null;
  /** Tallies of the analytics have grown long enough. */
  hasTallies: boolean;
  /** The backlogs have no sample in these five minutes. */
  isSampleDue: boolean;
}

/** Attempts to slow targets that a worker has under way in all shards, also by account; `slots` is how many attempts it makes at a time. */
export interface SlowAttempts {
  slots: number;
  held: number;
  byAccount: ReadonlyMap<string, number>;
}

/** Messages that ended without a failure of their target since the shard was made, by the kind of target. */
export type EarlyEnds = Record<'cancelled' | 'expired', Record<(typeof targetKinds)[number], number>>;
export const targetKinds = ['destination', 'endpoint'] as const;

export interface QueueStats {
  unfinished: number;
  retriesWaiting: number;
  /** Messages that wait for the time for which they are scheduled. */
  scheduled: number;
  held: number;
  deadLetters: number;
  /** When the oldest unread message of those that the queue's pool of workers serves was accepted. */
  oldestUnreadAtMs: number | null;
  /** Entries that wait for transfer to other shards, and the age of the oldest. */
  outboxEntries: number;
  outboxAgeMs: number;
  /** Messages that more workers of its pool could deliver sooner: not those that wait for their next attempt, a circuit, a limit or the rest of a batch. */
  backlog: number;
  earlyEnds: EarlyEnds;
  /** Messages of targets with order that wait for an earlier one of theirs. */
  behindEarlier: number;
}

/**
 * Retention of messages that have ended. `unwritten`: of those that no archive has written yet; by default they stay for 72 hours. `largestFirst`: the
 * messages of the account with most finished bytes are removed first, whatever their age, and its dead letters only with `deadLettersMs` 0; by default the
 * oldest messages of all accounts are.
 */
export interface Retention {
  finishedMs: number;
  deadLettersMs: number;
  unwritten?: 'stays' | 'goes where the archive fails' | 'goes';
  largestFirst?: boolean;
}

/** All others go before the dominant account (`SlotShares.dominant`); the accounts `without` get nothing. */
export interface TurnOrder {
  dominant?: string | null;
  without?: readonly string[];
}
