import { z } from 'zod';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { type ReplayRun, replaySkips, replayWaits } from './replay-run.ts';

const count = z.number();
const timeMs = z.number();

const storedState = z.object({
  uid: z.string(),
  /** Id of the record. */
  id: z.string(),
  /** Name of the object. */
  name: z.string(),
  what: z.enum(['deliveries', 'messages', 'events']),
  isDryRun: z.boolean(),
  hop: z.number().optional(),
  phase: z.enum(['Planning', 'Running', 'Succeeded', 'Failed', 'Cancelled']),
  failure: z.object({ reason: z.enum(['TooManyFailures', 'InvalidFilter']), message: z.string() }).nullable(),
  waiting: z.object({ reason: z.enum(replayWaits), message: z.string(), sinceMs: timeMs }).nullable(),
  plan: z.object({ candidates: count, isEstimate: z.boolean(), bytes: count, targets: count, oldestMs: timeMs.nullable() }),
  queued: count,
  skipped: z.partialRecord(z.enum(replaySkips), count),
  delivered: count,
  failed: count,
  endedOtherwise: count,
  beganAtMs: timeMs,
  queuedAtMs: timeMs.nullable(),
  endedAtMs: timeMs.nullable(),
  /** The replay has ended, and its own event is not recorded yet. */
  isToTell: z.boolean(),
  /** Whether it counts as running. */
  isAdmitted: z.boolean(),
  /** Cursor of the walk that is under way; null: at its beginning. */
  cursor: z.string().nullable(),
  /** While it is planned: targets that were found. */
  targets: z.array(z.string()),
  /** When something was queued last. */
  progressAtMs: timeMs,
  /**
   * Originals that are to be replayed next, and the month against which they are counted; null: none. `idTimeMs`: in the ids of their messages. `isLast`: the
   * walk has ended with them.
   */
  step: z.object({ ids: z.array(z.string()), idTimeMs: timeMs, month: z.string().nullable(), isLast: z.boolean() }).nullable(),
});

/** Stored data of a replay. */
export type ReplayState = z.infer<typeof storedState>;

type StatedOfRecord = Pick<ReplayRecord, 'uid' | 'id' | 'slug' | 'what' | 'isDryRun' | 'hop'>;

export function newReplayState({ uid, id, slug: name, what, isDryRun, hop }: StatedOfRecord, nowMs: number): ReplayState {
  return {
    uid,
    id,
    name,
    what,
    isDryRun,
    ...(hop !== undefined && { hop }),
    phase: 'Planning',
    failure: null,
    waiting: null,
    plan: { candidates: 0, isEstimate: false, bytes: 0, targets: 0, oldestMs: null },
    queued: 0,
    skipped: {},
    delivered: 0,
    failed: 0,
    endedOtherwise: 0,
    beganAtMs: nowMs,
    queuedAtMs: null,
    endedAtMs: null,
    isToTell: false,
    isAdmitted: false,
    cursor: null,
    targets: [],
    progressAtMs: nowMs,
    step: null,
  };
}

/** The version and the state of what the scripts store. */
export function parseReplayState(stored: string): { version: number; state: ReplayState } {
  const space = stored.indexOf(' ');
  return { version: Number(stored.slice(0, space)), state: storedState.parse(parsePlainJson(stored.slice(space + 1))) };
}

export function replayRun(identity: string, state: ReplayState): ReplayRun {
  const { uid, id, name, phase, failure, waiting, plan, queued, skipped, delivered, failed, endedOtherwise } = state;
  const { beganAtMs, queuedAtMs, endedAtMs } = state;
  return {
    identity,
    id,
    name,
    uid,
    phase,
    failure,
    waiting,
    plan,
    queued,
    skipped,
    delivered,
    failed,
    endedOtherwise,
    beganAtMs,
    queuedAtMs,
    endedAtMs,
  };
}
