import { integer, list, text } from '../shard/script-reply.ts';
import type { EarlyEnds, QueueStats, ShardHints, ShardState, Target } from './delivery-queue.ts';
import { targetOf } from './job-reply.ts';

/** Reads the reply of `hints.reply()` in `hints.lua`. */
export function shardHints(reply: unknown): ShardHints {
  const [ready, due, outbox, batches, ends] = list(reply);
  return {
    hasReadyWork: integer(ready) > 0,
    hasWorkOfOthers: integer(ready) === 2,
    nextDueMs: unlessNegative(due),
    hasOutbox: integer(outbox) === 1,
    hasEndedBatches: integer(batches) === 1,
    hasEnds: integer(ends) === 1,
  };
}

/** Reads the reply of `refresh-shard.lua`. */
export function shardState(reply: unknown): ShardState {
  const [hints, marker, held, overdue, paused, permille, tallies, sample] = list(reply);
  return {
    ...shardHints(hints),
    marker: text(marker),
    held: integer(held),
    hasOverdueWork: integer(overdue) === 1,
    pausedTargets: integer(paused),
    memoryShare: unlessNegative(permille, 1000),
    hasTallies: integer(tallies) === 1,
    isSampleDue: integer(sample) === 1,
  };
}

/** Reads the reply of `stats.lua`. */
export function queueStats(reply: unknown): QueueStats {
  const [unfinished, retries, held, dead, oldest, outbox, outboxAge, backlog, scheduled, earlyEnds, behind] = list(reply);
  return {
    unfinished: integer(unfinished),
    retriesWaiting: integer(retries),
    scheduled: integer(scheduled),
    held: integer(held),
    deadLetters: integer(dead),
    oldestUnreadAtMs: typeof oldest === 'number' ? oldest : null,
    outboxEntries: integer(outbox),
    outboxAgeMs: integer(outboxAge),
    backlog: integer(backlog),
    earlyEnds: earlyEndsOf(list(earlyEnds)),
    behindEarlier: integer(behind),
  };
}

/** `counts`: cancelled, then expired; of each first those of destinations, then those of endpoints. Null: none. */
function earlyEndsOf(counts: readonly unknown[]): EarlyEnds {
  const [ofDestinations, ofEndpoints, expiredOfDestinations, expiredOfEndpoints] = counts.map(Number);
  return {
    cancelled: { destination: ofDestinations ?? 0, endpoint: ofEndpoints ?? 0 },
    expired: { destination: expiredOfDestinations ?? 0, endpoint: expiredOfEndpoints ?? 0 },
  };
}

/** A page of targets with the next cursor. */
export function targetPage(reply: unknown): { targets: Target[]; next: string | null } {
  const [next, found] = list(reply);
  return { targets: list(found).map(targetOf), next: text(next) === '0' ? null : text(next) };
}

/** Scripts reply a negative number where there is none. */
export function unlessNegative(value: unknown, unit = 1): number | null {
  const number = integer(value);
  return number < 0 ? null : number / unit;
}
