import type { Logger } from '../../core/logger.ts';
import type { ArchiveFailure, ArchiveFailures } from '../../data/history/archive-failures.ts';
import { type Finding, timestamp } from '../conditions.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, isLive } from '../held-ids.ts';
import { checkPeriodically, conditionOf, type HealthConditionsOptions, isStale, writeHealthConditions } from './health-conditions.ts';

const archiving = 'Archiving';
/** For so long a loss is reported. */
const reportedMs = 3_600_000;

export interface ArchiveHealthOptions extends HealthConditionsOptions {
  caches: Pick<ControllerCaches, 'Organization'>;
  archiveFailures: Pick<ArchiveFailures, 'all'>;
  logger: Logger;
}

/** Keeps the condition `Archiving` of organizations that have an archive, of the manager `posthorn-health`, until the signal aborts. */
export async function runArchiveHealth(options: ArchiveHealthOptions, signal: AbortSignal): Promise<void> {
  const failure = 'the archive conditions could not be written';
  await checkPeriodically(() => check(options), { ...options, failure }, signal);
}

async function check(options: ArchiveHealthOptions): Promise<void> {
  const { caches, archiveFailures, clock } = options;
  const concerned = caches.Organization.list().filter(
    (object) => isLive(object) && (object.spec.archive !== undefined || conditionOf(object, archiving) !== undefined),
  );
  if (concerned.length === 0) return;
  const failures = await archiveFailures.all();
  for (const object of concerned) {
    const finding = object.spec.archive === undefined ? null : findingOf(failures.get(idOf('Organization', object)), clock.now());
    const findings = { [archiving]: finding };
    if (isStale(object, findings))
      await writeHealthConditions('Organization', object, findings, { ...options, manager: 'posthorn-health' });
  }
}

function findingOf(failure: ArchiveFailure | undefined, nowMs: number): Finding {
  const { failing = null, lost = null } = failure ?? {};
  const why = failing === null ? '' : `writes have failed since ${timestamp(failing.sinceMs)}: ${failing.message}`;
  if (lost !== null && nowMs - lost.lastMs < reportedMs) {
    const what = `${lost.messages} messages were removed before they were archived, the last at ${timestamp(lost.lastMs)}`;
    return { status: 'False', reason: 'HistoryLost', message: why === '' ? what : `${what}; ${why}` };
  }
  if (failing !== null) return { status: 'False', reason: 'CannotBeWritten', message: `${why}; finished messages wait in Redis` };
  return { status: 'True', reason: 'Archiving', message: 'finished messages are archived' };
}
