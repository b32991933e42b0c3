import { replayIdentity } from '../../compile/replay.ts';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisReplayRuns } from '../../data/replays/redis-replay-runs.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ResourceStore } from '../../store/store.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import type { EventRecorder } from '../event-recorder.ts';
import { WritePace } from '../health/write-pace.ts';
import { mayHaveItsId, organizationIdOf } from '../held-ids.ts';
import { changedConditions, differsFromStatus, expiresAtMs, progressOf } from './replay-progress.ts';

export interface ReplayStatusOptions {
  caches: Pick<ControllerCaches, 'Replay' | 'Organization' | 'owners'>;
  replayRuns: Pick<RedisReplayRuns, 'find'>;
  store: Pick<ResourceStore, 'applyStatus' | 'delete'>;
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
}

/** One write per replay in this time. */
const lookEveryMs = 5000;

type Replay = PosthornObject<'Replay'>;

interface UpdateContext extends ReplayStatusOptions {
  /** Replays that have ended, with a status that has it, by `finalKey`: nothing is read of them any more. */
  final: Set<string>;
  turn(): Promise<void>;
}

/**
 * Brings what is known of the runs of replays into their status, of the manager `posthorn-replay`, and deletes those whose time after their end is over,
 * until the signal aborts. Workers write their progress to Redis alone.
 */
export async function runReplayStatus(options: ReplayStatusOptions, signal: AbortSignal): Promise<void> {
  const { caches, clock, logger } = options;
  const pace = new WritePace(clock);
  const context: UpdateContext = { ...options, final: new Set(), turn: () => pace.turn(0, signal) };
  while (!signal.aborted) {
    try {
      if (caches.Replay.size > 0) await updateAll(context, signal);
    } catch (error) {
      if (!signal.aborted) logger.debug({ err: error }, 'the runs of replays could not be read; retrying');
    }
    await clock.sleep(lookEveryMs * (1 + 0.2 * Math.random()), signal);
  }
}

async function updateAll(context: UpdateContext, signal: AbortSignal): Promise<void> {
  const { caches, logger } = context;
  const replays = caches.Replay.list().filter((object) => mayHaveItsId(caches, caches.Replay, object));
  const known = new Set(replays.map(finalKey));
  for (const key of context.final) if (!known.has(key)) context.final.delete(key);
  for (const object of replays) {
    if (signal.aborted) return;
    const org = organizationIdOf(caches, object);
    if (org === undefined) continue;
    // It may be gone. The following ones are written all the same.
    await bringUpToDate(object, org, context).catch((error: unknown) => {
      const { namespace, name } = object.metadata;
      const level = isPosthornError(error) ? 'debug' : 'error';
      logger[level]({ err: error, namespace, name }, 'the status of a replay could not be written; retrying');
    });
  }
}

async function bringUpToDate(object: Replay, org: string, context: UpdateContext): Promise<void> {
  const { store, clock, recorder, final, replayRuns } = context;
  const { uid, name, namespace = '' } = object.metadata;
  if (!final.has(finalKey(object))) {
    const run = await replayRuns.find(org, replayIdentity(object, { id: org }));
    const progress = progressOf(object, run, clock.now());
    if (progress !== null && differsFromStatus(object, progress)) {
      await context.turn();
      await store.applyStatus('Replay', { namespace, name }, { ...progress }, { manager: 'posthorn-replay', force: true, ifUid: uid });
      for (const { type, reason, message } of changedConditions(object, progress))
        recorder.record({ object, type: type === 'Complete' ? 'Normal' : 'Warning', reason, message });
      return;
    }
    if (run !== null && run.endedAtMs !== null) final.add(finalKey(object));
  }
  const atMs = expiresAtMs(object);
  if (atMs !== null && atMs <= clock.now()) await store.delete('Replay', { namespace, name }, { uid });
}

function finalKey({ metadata }: Replay): string {
  return `${metadata.uid} ${metadata.generation}`;
}
