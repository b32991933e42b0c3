import { isDeepStrictEqual } from 'node:util';
import { type ReplayRun, skippedCount } from '../../data/replays/replay-run.ts';
import type { PosthornObject, StatusOf } from '../../resources/kinds.ts';
import type { Condition } from '../../resources/metadata.ts';
import { replayStatusFields } from '../../resources/replay.ts';
import { type Finding, timestamp } from '../conditions.ts';

type Replay = PosthornObject<'Replay'>;

/** The run of a replay as its status has it. */
export type ReplayProgress = Omit<StatusOf<'Replay'>, 'observedGeneration' | 'id' | 'conditions'> & { conditions: Condition[] };

/** Reason of the conditions Complete and Failed: a replay with this name and spec ran for an earlier object. */
const alreadyRan = 'AlreadyRan';

const conditionTypes: ReadonlySet<string> = new Set(['Queued', 'Complete', 'Failed', 'Waiting']);

/** The new status of the object; null: it stays, because the run that it describes is no longer known. */
export function progressOf(object: Replay, run: ReplayRun | null, nowMs: number): ReplayProgress | null {
  const { spec, status } = object;
  if (run === null) {
    if (status?.startTime !== undefined) return null;
    return { ...(spec.suspend && { phase: 'Suspended' }), conditions: [] };
  }
  const phase = run.endedAtMs === null && isOwn(object, run) && spec.suspend ? 'Suspended' : run.phase;
  const skippedBy = Object.entries(run.skipped).map(([reason, count]) => ({ reason, count }));
  const skipped = skippedCount(run.skipped);
  const { candidates, isEstimate, bytes, targets, oldestMs } = run.plan;
  const isQueueing = phase === 'Running' && run.queuedAtMs === null && run.waiting === null && !isEstimate;
  const leftMs = (Math.max(0, candidates - run.queued - skipped) / spec.ratePerSecond) * 1000;
  return {
    phase,
    plan: {
      candidates,
      isEstimate,
      bytes,
      targets,
      ...(oldestMs !== null && { oldest: timestamp(oldestMs) }),
      estimatedSeconds: Math.ceil(candidates / spec.ratePerSecond),
    },
    queued: run.queued,
    skipped,
    skippedBy: skippedBy.sort((one, other) => (one.reason < other.reason ? -1 : 1)),
    delivered: run.delivered,
    failed: run.failed,
    endedOtherwise: run.endedOtherwise,
    startTime: timestamp(run.beganAtMs),
    ...(run.endedAtMs !== null && { completionTime: timestamp(run.endedAtMs) }),
    ...(isQueueing && { estimatedCompletionTime: timestamp(nowMs + leftMs) }),
    conditions: conditionsOf(object, findingsOf(object, run, { phase, skipped }), nowMs),
  };
}

/** Whether the status of the object differs. An estimate alone is no difference: it changes at every look. */
export function differsFromStatus({ status = {} }: Replay, progress: ReplayProgress): boolean {
  const fields = Object.entries(status).filter(([name, value]) => replayStatusFields.has(name) && value !== undefined);
  const conditions = (status.conditions ?? []).filter(({ type }) => conditionTypes.has(type)).sort(byType);
  return !isDeepStrictEqual(
    comparable({ ...Object.fromEntries(fields), conditions }),
    comparable({ ...progress, conditions: progress.conditions.toSorted(byType) }),
  );
}

function comparable({ estimatedCompletionTime, ...rest }: Partial<ReplayProgress>): object {
  return { ...rest, isEstimated: estimatedCompletionTime !== undefined };
}

/** Conditions with news about the replay, apart from Queued. */
export function changedConditions({ status }: Replay, { conditions }: ReplayProgress): Condition[] {
  return conditions.filter(
    ({ type, reason }) => type !== 'Queued' && status?.conditions?.some((each) => each.type === type && each.reason === reason) !== true,
  );
}

/** When the finished replay is to be deleted, in milliseconds since the epoch; null: it stays. Of what had run before, the object itself lives that long. */
export function expiresAtMs({ metadata, spec, status }: Replay): number | null {
  if (spec.ttlSecondsAfterFinished === undefined || status?.completionTime === undefined) return null;
  const sinceMs = Math.max(Date.parse(status.completionTime), Date.parse(metadata.creationTimestamp));
  return sinceMs + spec.ttlSecondsAfterFinished * 1000;
}

function isOwn({ metadata }: Replay, { uid }: ReplayRun): boolean {
  return metadata.uid === uid;
}

interface Sums {
  phase: ReplayProgress['phase'];
  skipped: number;
}

/** By the type of their condition; one that is not there does not hold. */
function findingsOf(object: Replay, run: ReplayRun, sums: Sums): [type: string, Finding][] {
  const findings: [string, Finding][] = [['Queued', queuedOf(object, run, sums)]];
  const end = endOf(object, run, sums);
  if (end !== null) findings.push(end);
  else if (run.waiting !== null && sums.phase !== 'Suspended')
    findings.push(['Waiting', { status: 'True', reason: run.waiting.reason, message: run.waiting.message }]);
  return findings;
}

function queuedOf({ spec }: Replay, run: ReplayRun, { phase }: Sums): Finding {
  if (run.queuedAtMs !== null) return { status: 'True', reason: 'AllQueued', message: 'all that was to be replayed is queued' };
  const not = (reason: string, message: string): Finding => ({ status: 'False', reason, message });
  if (run.endedAtMs !== null)
    return spec.dryRun ? not('DryRun', 'only the plan was made') : not('Ended', 'the replay ended before all was queued');
  if (phase === 'Suspended') return not('Suspended', 'spec.suspend is true');
  return run.phase === 'Planning' ? not('Planning', 'the plan is being made') : not('Queueing', 'messages are being queued');
}

/** The condition of its end; null: it has not ended. */
function endOf(object: Replay, run: ReplayRun, { skipped }: Sums): [type: string, Finding] | null {
  const { endedAtMs } = run;
  if (endedAtMs === null) return null;
  const what = object.spec.dryRun
    ? `${run.plan.candidates} messages are to be replayed`
    : `${run.queued} messages queued, ${run.delivered} delivered, ${run.failed} failed, ${run.endedOtherwise} ended otherwise; ${skipped} originals skipped`;
  const finding = (type: string, reason: string, text: string): [string, Finding] => {
    if (isOwn(object, run)) return [type, { status: 'True', reason, message: text }];
    const earlier = `a replay with this name and spec ran from ${timestamp(run.beganAtMs)} to ${timestamp(endedAtMs)}; give it another name to run it again`;
    return [type, { status: 'True', reason: alreadyRan, message: `${earlier}; ${text}` }];
  };
  if (run.phase === 'Succeeded') return finding('Complete', object.spec.dryRun ? 'Planned' : 'AllEnded', what);
  if (run.failure !== null) return finding('Failed', run.failure.reason, `${run.failure.message} ${what}`);
  return finding('Failed', 'Cancelled', `the replay was cancelled; ${what}`);
}

function conditionsOf({ metadata, status }: Replay, findings: readonly [string, Finding][], nowMs: number): Condition[] {
  return findings.map(([type, finding]) => {
    const before = status?.conditions?.find((condition) => condition.type === type);
    const lastTransitionTime = before?.status === finding.status ? before.lastTransitionTime : timestamp(nowMs);
    return { type, ...finding, lastTransitionTime, observedGeneration: metadata.generation };
  });
}

function byType(one: Condition, other: Condition): number {
  return one.type < other.type ? -1 : 1;
}
