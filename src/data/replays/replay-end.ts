import type { ReplayRecord } from '../../core/replay-record.ts';
import { shardOf } from '../../core/shard-of.ts';
import type { OwnEventLog } from '../queue/own-event-log.ts';
import type { RedisReplayRuns, ReplayChange } from './redis-replay-runs.ts';
import { skippedCount } from './replay-run.ts';
import type { ReplayState } from './replay-state.ts';

/** Messages of a replay that must have ended before their failures are evaluated. */
const minEnded = 100;

export interface ReplayEndOptions {
  runs: Pick<RedisReplayRuns, 'save'>;
  notes: Pick<OwnEventLog, 'noteOfOrganization'>;
  /** Whether the organization has an enabled source for Posthorn's own events. */
  hasOwnSource: (org: string) => Promise<boolean>;
  shards: number;
}

type Ended = Pick<ReplayRecord, 'org' | 'identity'>;

/**
 * Saves the end of a replay, and records `replay.finished` if the organization has a source for it. The replay stays among the running ones until the event is recorded,
 * so that another worker records it after a crash. Returns false if another process has saved the replay meanwhile.
 */
export async function endReplay(options: ReplayEndOptions, ended: Ended, change: ReplayChange): Promise<boolean> {
  const { runs, hasOwnSource } = options;
  const isToTell = await hasOwnSource(ended.org);
  const state = { ...change.state, isToTell };
  const reply = await runs.save(ended.org, ended.identity, { ...change, state, ...(!isToTell && { place: 'end' }) });
  if (reply !== 'saved') return false;
  return !isToTell || (await recordReplayEnd(options, ended, { version: change.version + 1, state }));
}

/** Records `replay.finished`, and removes the replay from the running ones. A repeated record is the same event. Returns as `endReplay`. */
export async function recordReplayEnd(
  { runs, notes, shards }: ReplayEndOptions,
  { org, identity }: Ended,
  { version, state }: Pick<ReplayChange, 'version' | 'state'>,
): Promise<boolean> {
  const note = { org, kind: 'replayFinished', about: identity, data: dataOf(state), hop: state.hop } as const;
  await notes.noteOfOrganization(note, shardOf(org, shards));
  return (await runs.save(org, identity, { version, state: { ...state, isToTell: false }, place: 'end' })) === 'saved';
}

function dataOf({ id, name, what, isDryRun, phase, failure, plan, beganAtMs, endedAtMs, ...counts }: ReplayState): Record<string, unknown> {
  const { queued, skipped, delivered, failed, endedOtherwise } = counts;
  return {
    replayId: id,
    name,
    what,
    dryRun: isDryRun,
    phase,
    candidates: plan.candidates,
    isEstimate: plan.isEstimate,
    bytes: plan.bytes,
    queued,
    skipped: skippedCount(skipped),
    skippedByReason: skipped,
    delivered,
    failed,
    endedOtherwise,
    failure,
    startedAt: new Date(beganAtMs).toISOString(),
    completedAt: new Date(endedAtMs ?? beganAtMs).toISOString(),
  };
}

/** Null: it may continue. */
export function tooManyFailed({ stopAfterFailurePercent }: ReplayRecord, { delivered, failed }: ReplayState): ReplayState['failure'] {
  const ended = delivered + failed;
  if (stopAfterFailurePercent === undefined || ended < minEnded) return null;
  if (failed * 100 <= stopAfterFailurePercent * ended) return null;
  return { reason: 'TooManyFailures', message: `${failed} of ${ended} messages have failed: more than ${stopAfterFailurePercent} %.` };
}
