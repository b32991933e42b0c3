import { z } from 'zod';
import { keptNextCronSlot } from '../../../core/cron-slots.ts';
import type { CronExecution } from '../../../data/cron/cron-executions.ts';
import { detailField, shownAttemptDetail } from '../../../data/shard/shown-attempt-detail.ts';
import { kinds, type PosthornObject } from '../../../resources/kinds.ts';
import { cronJobBeyondPlan } from '../../../resources/plan-gates.ts';
import type { Call } from '../../http/operation.ts';
import { idOf } from '../../records/lookup.ts';
import {
  identityOf,
  isoTime,
  isoTimeOrNull,
  nameOf,
  recordIdentity,
  recordTimes,
  shownDescription,
  timesOf,
  timestamp,
} from '../../records/record-fields.ts';
import { shownField } from '../../records/spec-field.ts';
import { headerObject, shownHeaders } from '../shared/static-headers.ts';

const spec = kinds.HttpCronJob.spec.shape;

const runStatus = z.enum(['running', 'success', 'failed']);

/** Fields of all records of a cron job. */
export const cronJobSettings = z
  .object({
    cronExpression: z.string().describe('When it runs: five fields of cron.'),
    url: z.string().describe('What is requested.'),
    method: shownField(spec.method),
    description: shownDescription,
    timezone: shownField(spec.timeZone),
    timeoutMs: shownField(spec.timeoutMs),
    useStaticIp: shownField(spec.useStaticIp),
    isActive: shownField(spec.enabled),
    lastRunAt: timestamp.nullable().describe('When it last ran; null before the first run.'),
  })
  .meta({ id: 'CronJobSettings', description: 'Request and schedule of a cron job.' });

export const cronJobItem = z
  .object({
    ...recordIdentity,
    ...cronJobSettings.shape,
    ...recordTimes,
    lastRunStatus: runStatus.nullable().describe('What became of the last run, or of the one that is under way; null while none is kept.'),
    nextRunAt: timestamp.nullable().describe('null while it is not active, or suspended by the plan.'),
  })
  .meta({ id: 'CronJobItem' });

export const cronJobRecord = cronJobItem
  .extend({
    headers: z.string().describe('The headers as the JSON text of an object; credentials among them are masked.'),
    payload: z.string().nullable().describe('Body of the request; null without one.'),
  })
  .meta({ id: 'CronJob' });

export const cronExecutionRecord = z
  .object({
    id: z.string().describe('Id of the execution.'),
    cron_job_id: z.string().describe('Id of the job.'),
    status: runStatus.describe('What became of it.'),
    response_status: z.int().nullable().describe('Status of the answer; null without one.'),
    response_body: z.string().nullable().describe('At most 10 KiB; kept of the newest executions, 256 KiB of a job.'),
    error_message: z.string().nullable().describe('What went wrong, in words; null when nothing did.'),
    latency_ms: z.int().nullable().describe('Milliseconds that it took; null while it runs.'),
    started_at: timestamp.describe('When it began.'),
    completed_at: timestamp.nullable().describe('When it ended; null while it runs.'),
    detail: shownAttemptDetail.optional(),
  })
  .meta({ id: 'CronExecution' });

type CronJob = PosthornObject<'HttpCronJob'>;

/**
 * Returns the programmed ids of the jobs; null for jobs that are not programmed. Runs are kept by id, so a job whose annotation requests the
 * id of another organization's has none.
 */
export async function idsInForce(jobs: readonly CronJob[], { services, caller }: Call): Promise<(string | null)[]> {
  const records = await Promise.all(jobs.map((job) => services.registry.getOf(caller.organization.id, 'cronJob', idOf(job))));
  return records.map((record) => record?.id ?? null);
}

/** Items of a list, yielding. */
export async function toItems(jobs: readonly CronJob[], call: Call): Promise<z.input<typeof cronJobItem>[]> {
  const { services, caller } = call;
  const ids = await idsInForce(jobs, call);
  const known = ids.filter((id) => id !== null);
  const [times, statuses] = await Promise.all([
    services.cronRuns.lastRunsMs(known),
    services.cronExecutions.lastStatuses(caller.organization.id, known),
  ]);
  const lastRuns = new Map(known.map((id, i) => [id, { atMs: times[i] ?? null, status: statuses[i] ?? null }]));
  const nowMs = services.clock.now();
  const items: z.input<typeof cronJobItem>[] = [];
  for (const job of jobs) {
    await call.turn.rest();
    items.push(itemOf(job, call, { lastRun: lastRuns.get(idOf(job)) ?? neverRun, nowMs }));
  }
  return items;
}

interface LastRun {
  atMs: number | null;
  status: CronExecution['status'] | null;
}

const neverRun: LastRun = { atMs: null, status: null };

function itemOf(job: CronJob, call: Call, { lastRun, nowMs }: { lastRun: LastRun; nowMs: number }): z.input<typeof cronJobItem> {
  return {
    ...identityOf(job, call),
    cronExpression: job.spec.schedule,
    url: job.spec.url,
    method: job.spec.method,
    description: job.spec.description ?? null,
    timezone: job.spec.timeZone,
    timeoutMs: job.spec.timeoutMs,
    useStaticIp: job.spec.useStaticIp,
    ...timesOf(job),
    isActive: job.spec.enabled,
    lastRunAt: isoTimeOrNull(lastRun.atMs),
    lastRunStatus: lastRun.status,
    nextRunAt: isoTimeOrNull(runsBySchedule(job, call) ? keptNextCronSlot(job.spec, nowMs) : null),
  };
}

/** By name, then by slug. */
export function byName(jobs: readonly CronJob[]): CronJob[] {
  return jobs.toSorted((one, other) => compared(nameOf(one), nameOf(other)) || compared(one.metadata.name, other.metadata.name));
}

function compared(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** Whether the job is active, and not suspended by the plan. */
export function runsBySchedule({ spec }: CronJob, { caller }: Call): boolean {
  return spec.enabled && cronJobBeyondPlan(spec, caller.organization.plan) === null;
}

export async function toRecord(job: CronJob, call: Call): Promise<z.input<typeof cronJobRecord>> {
  const [item] = await toItems([job], call);
  if (item === undefined) throw new Error('a cron job has no item');
  const { headers, payload = null } = job.spec;
  return { ...item, headers: JSON.stringify(headerObject(await shownHeaders(call, job, headers))), payload };
}

/** An execution in the form of the history. */
export function executionToRecord(execution: CronExecution): z.input<typeof cronExecutionRecord> {
  const { id, jobId, status, responseStatus, responseBody, errorMessage, latencyMs, startedAtMs, completedAtMs } = execution;
  return {
    id,
    cron_job_id: jobId,
    status,
    response_status: responseStatus,
    response_body: responseBody,
    error_message: errorMessage,
    latency_ms: latencyMs,
    started_at: isoTime(startedAtMs),
    completed_at: isoTimeOrNull(completedAtMs),
    ...detailField(execution.detail),
  };
}
