import type { Clock } from '../../core/clock.ts';
import { keptNextCronSlot } from '../../core/cron-slots.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { CronRuns } from '../../data/cron/cron-runs.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ResourceStore } from '../../store/store.ts';
import { timestamp } from '../conditions.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { holdsItsId, idOf, isLive } from '../held-ids.ts';
import { suspended } from '../programmed-condition.ts';

export interface ScheduleStatusOptions {
  caches: Pick<ControllerCaches, 'HttpCronJob' | 'Organization' | 'owners'>;
  cronRuns: Pick<CronRuns, 'lastSlots'>;
  store: Pick<ResourceStore, 'applyStatus'>;
  clock: Clock;
  logger: Logger;
}

const passEveryMs = 30_000;
/** One write per job in this time, unless the job itself has changed or has run for the first time. */
const writeEveryMs = 300_000;
/** Ten writes a second at most. */
const spreadMs = 100;
/** Most need no write, and then nothing is awaited. */
const jobsPerTurn = 100;

interface ScheduleTimes {
  lastScheduleTime?: string;
  nextScheduleTime?: string;
}

/**
 * Writes `lastScheduleTime` and `nextScheduleTime` of cron jobs, of the manager `posthorn-cron`, until the signal aborts. Runs are many and
 * writes few: what changes in between is written together.
 */
export async function runScheduleStatus(options: ScheduleStatusOptions, signal: AbortSignal): Promise<void> {
  const { caches, clock, logger } = options;
  const written = new Map<string, { atMs: number; generation: number }>();
  while (!signal.aborted) {
    try {
      if (caches.HttpCronJob.size > 0) await writeAll(options, written, signal);
    } catch (error) {
      if (!signal.aborted) logger.debug({ err: error }, 'the schedule status of cron jobs could not be written; retrying');
    }
    await clock.sleep(passEveryMs * (0.8 + 0.4 * Math.random()), signal);
  }
}

async function writeAll(
  { caches, cronRuns, store, clock, logger }: ScheduleStatusOptions,
  written: Map<string, { atMs: number; generation: number }>,
  signal: AbortSignal,
): Promise<void> {
  const lastSlots = await cronRuns.lastSlots();
  const jobs = caches.HttpCronJob.list().filter((job) => isLive(job) && holdsItsId(caches, caches.HttpCronJob, job));
  const uids = new Set(jobs.map(({ metadata }) => metadata.uid));
  for (const uid of written.keys()) if (!uids.has(uid)) written.delete(uid);
  for (const [i, job] of jobs.entries()) {
    if (i % jobsPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
    if (signal.aborted) return;
    const { uid, name, namespace = '', generation } = job.metadata;
    const times = timesOf(job, lastSlots.get(idOf('HttpCronJob', job)), clock.now());
    const { lastScheduleTime, nextScheduleTime } = job.status ?? {};
    if (times.lastScheduleTime === lastScheduleTime && times.nextScheduleTime === nextScheduleTime) continue;
    const before = written.get(uid);
    const isFirstRun = lastScheduleTime === undefined && times.lastScheduleTime !== undefined;
    if (!isFirstRun && before !== undefined && before.generation === generation && clock.now() - before.atMs < writeEveryMs) continue;
    written.set(uid, { atMs: clock.now(), generation });
    try {
      await store.applyStatus('HttpCronJob', { namespace, name }, { ...times }, { manager: 'posthorn-cron', force: true, ifUid: uid });
    } catch (error) {
      if (!isPosthornError(error, 'RESOURCE_NOT_FOUND', 'CONFLICT')) throw error;
      logger.debug({ err: error, job: name }, 'the schedule status of a cron job was not written because the job changed');
    }
    await clock.sleep(spreadMs, signal);
  }
}

function timesOf({ spec, status }: PosthornObject<'HttpCronJob'>, lastMs: number | undefined, nowMs: number): ScheduleTimes {
  const isSuspended = status?.conditions?.some(({ type, reason }) => type === 'Programmed' && reason === suspended) === true;
  const nextMs = spec.enabled && !isSuspended ? keptNextCronSlot(spec, nowMs) : null;
  return {
    ...(lastMs !== undefined && { lastScheduleTime: timestamp(lastMs) }),
    ...(nextMs !== null && { nextScheduleTime: timestamp(nextMs) }),
  };
}
