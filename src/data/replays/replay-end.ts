import type { ReplayRecord } from '../../core/replay-record.ts';
import type { OwnEventNotes } from '../queue/own-event-notes.ts';
import type { RedisReplayRuns, ReplayChange } from './redis-replay-runs.ts';
import type { ReplayState } from './replay-state.ts';

/** Of its messages that ended, before their failures are judged. */
const minJudged = 100;

export interface ReplayEndOptions {
  runs: Pick<RedisReplayRuns, 'save'>;
  notes: Pick<OwnEventNotes, 'noteOfOrganization'>;
  /** Whether the organization has an enabled source for Posthorn's own events. */
  hasOwnSource: (org: string) => Promise<boolean>;
  shards: number;
}

type Ended = Pick<ReplayRecord, 'org' | 'identity'>;

/**
 * Writes the end of a replay, and tells it where somebody wants to know. What is to be told keeps its place among the running ones until it is noted: whoever
 * comes across it tells it then. Returns whether there is nothing more to do; false: somebody else has written meanwhile.
 */
export async function endReplay(options: ReplayEndOptions, ended: Ended, change: ReplayChange): Promise<boolean> {
  const { runs, hasOwnSource } = options;
  const isToTell = await hasOwnSource(ended.org);
  const state = { ...change.state, isToTell };
  const reply = await runs.save(ended.org, ended.identity, { ...change, state, ...(!isToTell && { place: 'end' }) });
  if (reply !== 'saved') return false;
  return !isToTell || (await tellEnd(options, ended, { version: change.version + 1, state }));
}

/** Notes the end of a replay for Posthorn's own events, as the same event however often, and gives its place back. Returns as `endReplay`. */
export async function tellEnd(
  { runs, notes, shards }: ReplayEndOptions,
  { org, identity }: Ended,
  { version, state }: Pick<ReplayChange, 'version' | 'state'>,
): Promise<boolean> {
  await notes.noteOfOrganization({ org, kind: 'replayFinished', about: identity, data: dataOf(state) }, shards);
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
    skipped: Object.values(skipped).reduce((sum, each) => sum + each, 0),
    skippedByReason: skipped,
    delivered,
    failed,
    endedOtherwise,
    failure,
    startedAt: new Date(beganAtMs).toISOString(),
    completedAt: new Date(endedAtMs ?? beganAtMs).toISOString(),
  };
}

/** Null: it may go on. */
export function tooManyFailed({ stopAfterFailurePercent }: ReplayRecord, { delivered, failed }: ReplayState): ReplayState['failure'] {
  const judged = delivered + failed;
  if (stopAfterFailurePercent === undefined || judged < minJudged) return null;
  if (failed * 100 <= stopAfterFailurePercent * judged) return null;
  return { reason: 'TooManyFailures', message: `${failed} of ${judged} messages have failed: more than ${stopAfterFailurePercent} %.` };
}
