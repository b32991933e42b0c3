import { z } from 'zod';
import { mapInTurns } from '../../../core/in-turns.ts';
import { type ReplayRun, skippedCount } from '../../../data/replays/replay-run.ts';
import { kinds, type PosthornObject } from '../../../resources/kinds.ts';
import type { Condition } from '../../../resources/metadata.ts';
import type { Call } from '../../http/operation.ts';
import { idOf } from '../../records/lookup.ts';
import { identityOf, isoTime, isoTimeOrNull, recordIdentity, recordTimes, timesOf, timestamp } from '../../records/record-fields.ts';
import { shownField, textOf } from '../../records/spec-field.ts';
import { shownSpec } from './replay-body.ts';
import { replayFilter } from './replay-filter.ts';

/** Records of replays: the spec, and what is known of the run at this moment. */

export type Replay = PosthornObject<'Replay'>;

const spec = kinds.Replay.spec.shape;
const status = kinds.Replay.status.shape;
export const replayPhase = shownField(status.phase);
type Phase = z.output<typeof replayPhase>;
const count = z.int().min(0);

const plan = z
  .object({
    candidates: count.describe('Originals that were found.'),
    isEstimate: z.boolean().describe('There may be more: the plan ended at 100,000.'),
    bytes: count.describe('Bytes of their payloads, each counted as often as it is sent.'),
    targets: count.describe('Their targets; at most 100 are counted.'),
    oldest: timestamp.nullable().describe('When the oldest was created; null without any.'),
    estimatedSeconds: count.describe('How long it takes at its rate.'),
  })
  .meta({ id: 'ReplayPlan', description: 'What the filter selects.' });

const waiting = z
  .object({
    reason: z.string().describe('One word for it, for programs.'),
    message: z.string().describe('The same as a sentence.'),
    since: timestamp.describe('When it began.'),
  })
  .meta({ id: 'ReplayWait', description: 'Why nothing can be queued, or sent once all is queued.' });

const failure = z
  .object({ reason: z.string().describe('One word for it, for programs.'), message: z.string().describe('The same as a sentence.') })
  .meta({ id: 'ReplayFailure', description: 'Why it failed.' });

export const replayRecord = z
  .object({
    ...recordIdentity,
    what: spec.what,
    filter: replayFilter,
    ratePerSecond: shownField(spec.ratePerSecond),
    toDestinationId: z.string().nullable().describe('Where all of them are sent to instead; null: each to its own.'),
    stopAfterFailurePercent: z.int().nullable().describe(textOf(spec.stopAfterFailurePercent)),
    ttlSecondsAfterFinished: z.int().nullable().describe('Seconds after which the finished replay is deleted; null: never.'),
    dryRun: shownField(spec.dryRun),
    suspend: shownField(spec.suspend),
    cancel: shownField(spec.cancel),
    phase: replayPhase,
    plan: plan.nullable().describe('What the plan has found so far; null before it.'),
    queued: count.describe('Messages that were queued.'),
    skipped: count.describe('Originals that were not replayed.'),
    skippedByReason: z.record(z.string(), count).describe('The same by reason.'),
    delivered: count.describe('Queued messages that were delivered.'),
    failed: count.describe('Queued messages that have failed for good.'),
    endedOtherwise: count.describe(textOf(status.endedOtherwise)),
    waiting: waiting.nullable().describe('null when it does not wait.'),
    failure: failure.nullable().describe('null unless it failed.'),
    alreadyRan: z.boolean().describe('An equal replay of this name ran before: this one shows its outcome, and does not run.'),
    ...recordTimes,
    startedAt: timestamp.nullable().describe('When the plan began.'),
    completedAt: timestamp.nullable().describe('When it ended.'),
    estimatedCompletionAt: timestamp.nullable().describe('When all is queued at its rate, if nothing waits; null unless it runs.'),
  })
  .meta({ id: 'Replay' });

/** A replay with its progress. */
export interface Progress {
  phase: Phase;
  plan: z.input<typeof plan> | null;
  queued: number;
  skipped: number;
  skippedByReason: Record<string, number>;
  delivered: number;
  failed: number;
  endedOtherwise: number;
  waiting: z.input<typeof waiting> | null;
  failure: z.input<typeof failure> | null;
  alreadyRan: boolean;
  startedAt: string | null;
  completedAt: string | null;
  estimatedCompletionAt: string | null;
}

/** As Redis has it at this moment, else as the controller saw it last. Of several replays all runs of the organization are read at once. */
export async function progressOf(replays: readonly Replay[], call: Call): Promise<Progress[]> {
  const { registry, replayRuns } = call.services;
  const org = call.caller.organization.id;
  const identities = await mapInTurns(
    call.turn,
    replays,
    async (replay) => (await registry.getOf(org, 'replay', idOf(replay)))?.identity ?? null,
  );
  const [only = null] = identities;
  const runs =
    identities.length > 1
      ? await replayRuns.runs(org)
      : [only === null ? null : await replayRuns.find(org, only)].filter((run) => run !== null);
  const byIdentity = new Map(runs.map((run) => [run.identity, run]));
  return replays.map((replay, i) => {
    const run = byIdentity.get(identities[i] ?? '');
    return run === undefined ? fromStatus(replay) : fromRun(replay, run, call.services.clock.now());
  });
}

function fromRun(replay: Replay, run: ReplayRun, nowMs: number): Progress {
  const { plan, queued, delivered, failed, endedOtherwise, waiting, failure } = run;
  const { ratePerSecond } = replay.spec;
  const skipped = skippedCount(run.skipped);
  const phase = phaseOf(replay, run);
  const left =
    phase === 'Running' && waiting === null && !plan.isEstimate && run.queuedAtMs === null ? plan.candidates - queued - skipped : 0;
  return {
    phase,
    plan: {
      candidates: plan.candidates,
      isEstimate: plan.isEstimate,
      bytes: plan.bytes,
      targets: plan.targets,
      oldest: isoTimeOrNull(plan.oldestMs),
      estimatedSeconds: Math.ceil(plan.candidates / ratePerSecond),
    },
    queued,
    skipped,
    skippedByReason: run.skipped,
    delivered,
    failed,
    endedOtherwise,
    waiting:
      waiting === null || !isGoingOn(phase) ? null : { reason: waiting.reason, message: waiting.message, since: isoTime(waiting.sinceMs) },
    failure,
    alreadyRan: run.uid !== replay.metadata.uid,
    startedAt: isoTime(run.beganAtMs),
    completedAt: isoTimeOrNull(run.endedAtMs),
    estimatedCompletionAt: left > 0 ? isoTime(nowMs + Math.ceil((left / ratePerSecond) * 1000)) : null,
  };
}

const isGoingOn = (phase: Phase): boolean => phase === 'Planning' || phase === 'Running';
const endPhases: readonly Phase[] = ['Succeeded', 'Failed', 'Cancelled'];

/** For a run of its own, the current spec takes precedence over what the worker has seen of it. */
function phaseOf(
  { metadata, spec: { cancel, suspend } }: Replay,
  { uid, phase, endedAtMs }: Pick<ReplayRun, 'uid' | 'phase' | 'endedAtMs'>,
): Phase {
  if (uid !== metadata.uid || endedAtMs !== null || endPhases.includes(phase)) return phase;
  if (cancel) return 'Cancelled';
  return suspend ? 'Suspended' : phase;
}

function fromStatus(replay: Replay): Progress {
  const { spec: shown, status: seen } = replay;
  const { plan: found, phase: last = 'Planning', conditions = [] } = seen ?? {};
  const holding = (type: string): Condition | undefined => conditions.find((each) => each.type === type && each.status === 'True');
  const [waits, failed] = [holding('Waiting'), holding('Failed')];
  const unended = shown.cancel ? 'Cancelled' : shown.suspend ? 'Suspended' : last === 'Suspended' ? 'Running' : last;
  const phase = endPhases.includes(last) ? last : unended;
  return {
    phase,
    plan: found === undefined ? null : { ...found, oldest: found.oldest ?? null },
    queued: seen?.queued ?? 0,
    skipped: seen?.skipped ?? 0,
    skippedByReason: Object.fromEntries((seen?.skippedBy ?? []).map(({ reason, count: many }) => [reason, many])),
    delivered: seen?.delivered ?? 0,
    failed: seen?.failed ?? 0,
    endedOtherwise: seen?.endedOtherwise ?? 0,
    waiting:
      waits === undefined || !isGoingOn(phase) ? null : { reason: waits.reason, message: waits.message, since: waits.lastTransitionTime },
    failure: failed === undefined || phase !== 'Failed' ? null : { reason: failed.reason, message: failed.message },
    alreadyRan: conditions.some(({ reason }) => reason === 'AlreadyRan'),
    startedAt: seen?.startTime ?? null,
    completedAt: seen?.completionTime ?? null,
    estimatedCompletionAt: isGoingOn(phase) ? (seen?.estimatedCompletionTime ?? null) : null,
  };
}

export async function toRecords(replays: readonly Replay[], call: Call): Promise<z.input<typeof replayRecord>[]> {
  const progress = await progressOf(replays, call);
  return replays.flatMap((replay, i) => {
    const own = progress[i];
    return own === undefined ? [] : [{ ...identityOf(replay, call), ...shownSpec(replay, call), ...own, ...timesOf(replay) }];
  });
}

export async function toRecord(replay: Replay, call: Call): Promise<z.input<typeof replayRecord>> {
  const [record] = await toRecords([replay], call);
  if (record === undefined) throw new Error('a replay has no record');
  return record;
}
