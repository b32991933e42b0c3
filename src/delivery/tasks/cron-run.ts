import { PosthornError } from '../../core/errors.ts';
import { newExecutionId } from '../../data/cron/cron-executions.ts';
import { cronRunTask } from '../../data/cron/cron-run-task.ts';
import { attemptCronRun, type CronAttemptOptions } from '../cron/cron-attempt.ts';
import { awaitedRecord } from './awaited-record.ts';
import { type TaskHandler, taskHandler } from './task-handler.ts';

/** Runs a cron job now, whatever its schedule, and also while it is disabled. */
export function cronRunHandler(options: CronAttemptOptions): TaskHandler {
  const { runs, clock } = options;
  return taskHandler(cronRunTask, async ({ jobId, generation }, context) => {
    const { org, signal } = context;
    const job = await awaitedRecord(options, 'cronJob', jobId, generation, context);
    if (job === null) throw new PosthornError('CONFLICT', 'The cron job is not programmed: its conditions say why.');
    const nowMs = clock.now();
    const run = { id: newExecutionId(nowMs), jobId, org, slotMs: nowMs, timeoutMs: job.http.timeoutMs };
    await runs.hold(run);
    const { id, status, responseStatus, latencyMs, errorMessage } = await attemptCronRun(options, run, job, signal);
    return { id, status, responseStatus, latencyMs, ...(errorMessage !== null && { error: errorMessage }) };
  });
}
