import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { ArchiveTrouble, ArchiveTroubles } from '../../data/archive-troubles.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { Condition } from '../../resources/metadata.ts';
import type { ResourceStore } from '../../store/store.ts';
import { type Finding, timestamp } from '../conditions.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import type { EventRecorder } from '../event-recorder.ts';
import { idOf, isLive } from '../references.ts';

const archiving = 'Archiving';
const intervalMs = 30_000;
/** For so long a loss is told of. */
const toldMs = 3_600_000;

export interface ArchiveHealthOptions {
  caches: Pick<ControllerCaches, 'Organization'>;
  archiveTroubles: Pick<ArchiveTroubles, 'all'>;
  store: Pick<ResourceStore, 'applyStatus'>;
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
}

/** Keeps the condition `Archiving` of organizations that have an archive, of the manager `posthorn-health`, until the signal aborts. */
export async function runArchiveHealth(options: ArchiveHealthOptions, signal: AbortSignal): Promise<void> {
  const { clock, logger } = options;
  while (!signal.aborted) {
    try {
      await look(options);
    } catch (error) {
      logger.debug({ err: error }, 'the state of the archives could not be written; trying again');
    }
    await clock.sleep(intervalMs * (0.9 + Math.random() * 0.2), signal);
  }
}

async function look(options: ArchiveHealthOptions): Promise<void> {
  const { caches, archiveTroubles, clock } = options;
  const concerned = caches.Organization.list().filter(
    (object) => isLive(object) && (object.spec.archive !== undefined || conditionOf(object) !== undefined),
  );
  if (concerned.length === 0) return;
  const troubles = await archiveTroubles.all();
  for (const object of concerned) {
    const finding = object.spec.archive === undefined ? null : findingOf(troubles.get(idOf('Organization', object)), clock.now());
    await write(object, finding, options);
  }
}

async function write(
  object: PosthornObject<'Organization'>,
  finding: Finding | null,
  { store, clock, recorder }: ArchiveHealthOptions,
): Promise<void> {
  const { name, generation, uid } = object.metadata;
  const before = conditionOf(object);
  if (finding === null ? before === undefined : isSame(before, finding)) return;
  const conditions: Condition[] = [];
  if (finding !== null) {
    const lastTransitionTime = before?.status === finding.status ? before.lastTransitionTime : timestamp(clock.now());
    conditions.push({ type: archiving, ...finding, lastTransitionTime, observedGeneration: generation });
  }
  await store.applyStatus('Organization', { name }, { conditions }, { manager: 'posthorn-health', force: true, ifUid: uid });
  if (finding !== null) recorder.record({ object, type: finding.status === 'True' ? 'Normal' : 'Warning', ...finding });
}

function conditionOf({ status }: PosthornObject<'Organization'>): Condition | undefined {
  return status?.conditions?.find(({ type }) => type === archiving);
}

function isSame(before: Condition | undefined, { status, reason, message }: Finding): boolean {
  return before?.status === status && before.reason === reason && before.message === message;
}

function findingOf(trouble: ArchiveTrouble | undefined, nowMs: number): Finding {
  const { failing = null, lost = null } = trouble ?? {};
  const why = failing === null ? '' : `since ${timestamp(failing.sinceMs)} nothing can be written: ${failing.message}`;
  if (lost !== null && nowMs - lost.lastMs < toldMs) {
    const what = `${lost.messages} messages were removed before the archive had them, the last at ${timestamp(lost.lastMs)}`;
    return { status: 'False', reason: 'HistoryLost', message: why === '' ? what : `${what}; ${why}` };
  }
  if (failing !== null) return { status: 'False', reason: 'CannotBeWritten', message: `${why}; what has ended waits in Redis` };
  return { status: 'True', reason: 'Archiving', message: 'what has ended is written' };
}
