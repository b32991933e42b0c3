import { z } from 'zod';
import { keptNextCronSlot, nextSlotOf } from '../../../core/cron-slots.ts';
import { invalidParameter } from '../../../core/errors.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import { operation } from '../../http/operation.ts';
import { queryInteger, queryTime, timeRange } from '../../http/query.ts';
import { cachedObjects, idOf } from '../../records/lookup.ts';
import { isoTime, nameOf, timestamp } from '../../records/record-fields.ts';
import { byName, runsBySchedule } from './cron-job-records.ts';

type CronJob = PosthornObject<'HttpCronJob'>;
type Query = Partial<Record<'cronJobId' | 'from' | 'to', string | undefined>>;

const dayMs = 86_400_000;
const defaultDays = 7;
/** A job of a leap day has its next run within eight years. */
const maxDays = 3000;
const maxPerJob = 50;
const defaultPerJob = 10;
/** Each costs 0.1 to 3 ms of CPU. */
const maxRuns = 500;

const scheduledJob = z
  .object({
    id: z.string().describe('Id of the job.'),
    name: z.string().describe('Name of the job.'),
    cronExpression: z.string().describe('When it runs: five fields of cron.'),
    timezone: z.string().describe('Time zone of the schedule.'),
    runs: z.array(timestamp).describe('Its runs, the earliest first: at most `perJob`.'),
    hasMore: z.boolean().describe('It has more than `perJob` runs before `to`.'),
  })
  .meta({ id: 'ScheduledCronJob' });

export const listCronSchedule = operation({
  method: 'GET',
  path: '/cron-schedule',
  operationId: 'listCronSchedule',
  summary: 'List the next runs of cron jobs',
  description: 'By their schedules, time zones and changes of clocks. Jobs that are not active, or suspended by the plan, have none.',
  scope: 'read',
  query: z.object({
    cronJobId: z.string().max(253).optional().describe('Only the job with this id.'),
    from: queryTime.optional().describe('The first run is later: ISO 8601. Default, and no earlier than: now.'),
    to: queryTime
      .optional()
      .describe(
        `The last run is not later: ISO 8601. Default: ${defaultDays} days after \`from\`, of one job ${maxDays}, which is the most.`,
      ),
    perJob: queryInteger({ min: 1, max: maxPerJob }).default(defaultPerJob).describe('Most runs of each job.'),
  }),
  answer: {
    status: 200,
    description: `Jobs that run in that time, by name, with ${maxRuns} runs in all, and those at the time of the last one.`,
    schema: z.object({
      from: timestamp.describe('Every run is later.'),
      to: timestamp.describe(`No run is later. Earlier than requested where there are more than ${maxRuns} runs.`),
      jobs: z.array(scheduledJob).describe('The jobs.'),
    }),
  },
  handle: async (call) => {
    const { cronJobId, perJob } = call.query;
    const span = spanOf(call.query, call.services.clock.now());
    const jobs = cachedObjects(call, 'HttpCronJob').filter((job) => cronJobId === undefined || idOf(job) === cronJobId);
    const active = jobs.filter((job) => runsBySchedule(job, call));
    const walk = await call.turn.run(walkRuns(active, { ...span, perJob }), call.signal);
    return {
      from: isoTime(span.fromMs),
      to: isoTime(walk.toMs),
      jobs: walk.jobs
        .filter(({ runsMs }) => runsMs.length > 0)
        .map(({ job, runsMs, nextMs }) => ({
          id: idOf(job),
          name: nameOf(job),
          cronExpression: job.spec.schedule,
          timezone: job.spec.timeZone,
          runs: runsMs.map(isoTime),
          hasMore: nextMs !== null && nextMs <= walk.toMs,
        })),
    };
  },
});

interface Span {
  nowMs: number;
  fromMs: number;
  toMs: number;
}

/** The requested span, in milliseconds since the epoch. INVALID_QUERY when it ends before it begins or is too long. */
function spanOf({ from, to, cronJobId }: Query, nowMs: number): Span {
  const asked = timeRange(from, to);
  const fromMs = Math.max(nowMs, asked.fromMs ?? nowMs);
  const toMs = asked.toMs ?? fromMs + (cronJobId === undefined ? defaultDays : maxDays) * dayMs;
  if (toMs < fromMs) throw invalidParameter('to', 'is in the past');
  if (toMs - fromMs > maxDays * dayMs) throw invalidParameter('to', `is more than ${maxDays} days after from`);
  return { nowMs, fromMs, toMs };
}

interface JobRuns {
  job: CronJob;
  runsMs: number[];
  /** The run after those; null where the span has none. */
  nextMs: number | null;
}

/**
 * The runs of all jobs, by the name of the job. They are found in the order of time. From `maxRuns` on only those of the same time follow: `toMs` is
 * before the first that is left out.
 */
function* walkRuns(
  jobs: readonly CronJob[],
  { nowMs, fromMs, toMs, perJob }: Span & { perJob: number },
): Generator<undefined, { jobs: JobRuns[]; toMs: number }> {
  const within = (slotMs: number | null): number | null => (slotMs === null || slotMs > toMs ? null : slotMs);
  const found: JobRuns[] = [];
  for (const job of byName(jobs)) {
    yield;
    const soonMs = within(keptNextCronSlot(job.spec, nowMs));
    const isBefore = soonMs !== null && soonMs <= fromMs;
    found.push({ job, runsMs: [], nextMs: isBefore ? within(nextSlotOf(job.spec, fromMs)) : soonMs });
  }
  for (let runs = 0, lastMs = fromMs; ; runs++) {
    yield;
    const first = earliest(found, perJob);
    if (first === null) return { jobs: found, toMs };
    const { of, atMs } = first;
    if (runs >= maxRuns && atMs > lastMs) return { jobs: found, toMs: atMs - 1 };
    of.runsMs.push(atMs);
    of.nextMs = within(nextSlotOf(of.job.spec, atMs));
    lastMs = atMs;
  }
}

/** The first run that is not found yet, of the jobs that have fewer than `perJob`. */
function earliest(all: readonly JobRuns[], perJob: number): { of: JobRuns; atMs: number } | null {
  let first: { of: JobRuns; atMs: number } | null = null;
  for (const of of all) {
    if (of.nextMs !== null && of.runsMs.length < perJob && (first === null || of.nextMs < first.atMs)) first = { of, atMs: of.nextMs };
  }
  return first;
}
