import { keptNextCronSlot } from '../../../core/cron-slots.ts';
import type { CronExecution } from '../../../data/cron/cron-executions.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import { cronJobBeyondPlan } from '../../../resources/plan-gates.ts';
import type { Call } from '../../http/operation.ts';
import { cachedObjects } from '../../records/lookup.ts';
import { isoTimeOrNull } from '../../records/record-fields.ts';
import { idsInForce } from '../cron-jobs/cron-job-records.ts';
import {
  type Advice,
  advise,
  atTime,
  type Explanation,
  explained,
  happened,
  holds,
  type More,
  type Next,
  type Step,
} from './explanation.ts';

/** Cron jobs and their executions. */

const shownExecutions = 5;
const maxJobs = 1000;

const outcomes = { running: 'is under way', success: 'succeeded', failed: 'failed' };

export async function explainCronJob(call: Call, job: PosthornObject<'HttpCronJob'>, id: string): Promise<More> {
  const [inForce = null] = await idsInForce([job], call);
  const org = call.caller.organization.id;
  const executions = inForce === null ? [] : await call.services.cronExecutions.newest(org, inForce, shownExecutions);
  const beyondPlan = cronJobBeyondPlan(job.spec, call.caller.organization.plan);
  const [last] = executions;
  const runs = executions.map((each) => ({ ...executionStep(each), data: { executionId: each.id, status: each.status } }));
  return {
    steps: [
      ...(executions.length === 0 ? [holds('never_ran', 'It has no execution that is stored.')] : runs),
      ...(beyondPlan === null ? [] : [holds('suspended', `The cron job is suspended: ${beyondPlan}.`)]),
    ],
    next:
      inForce !== null && job.spec.enabled && beyondPlan === null ? nextRun(keptNextCronSlot(job.spec, call.services.clock.now())) : null,
    advice: last?.status === 'failed' ? runAgain(id) : [],
  };
}

/** Searches the first 1,000 cron jobs of the organization. Null: none of them has such an execution. */
export async function explainExecution(call: Call, id: string): Promise<Explanation | null> {
  const jobs = cachedObjects(call, 'HttpCronJob').slice(0, maxJobs);
  const inForce = (await idsInForce(jobs, call)).filter((each) => each !== null);
  const execution = await call.services.cronExecutions.find(call.caller.organization.id, inForce, id);
  if (execution === null) return null;
  const { jobId, status, startedAtMs, completedAtMs, errorMessage, responseStatus } = execution;
  const why = status === 'failed' && errorMessage !== null ? ` ${errorMessage}` : '';
  return explained({
    id,
    kind: 'cron execution',
    state: status,
    summary: `The execution of the cron job ${jobId} ${outcomes[status]}.${why}`,
    story: [
      happened(startedAtMs, 'started', 'A worker sent the request of the cron job.', { jobId }),
      ...(completedAtMs === null
        ? []
        : [{ ...executionStep(execution), at: isoTimeOrNull(completedAtMs), data: { responseStatus, errorMessage } }]),
    ],
    advice:
      status === 'failed' ? [...runAgain(jobId), advise('Read the cron job: is it one failure or many?', 'GET', `/explain/${jobId}`)] : [],
  });
}

function executionStep({ startedAtMs, status, latencyMs, responseStatus, errorMessage }: CronExecution): Step {
  const took = latencyMs === null ? '' : ` after ${latencyMs} ms`;
  const answer = responseStatus === null ? '' : `: the receiver returned ${responseStatus}`;
  const error = errorMessage === null ? '' : ` ${errorMessage}`;
  return happened(startedAtMs, 'execution', `The execution ${outcomes[status]}${took}${answer}.${error}`);
}

function nextRun(atMs: number | null): Next | null {
  return atMs === null ? null : { what: 'run', at: isoTimeOrNull(atMs), text: `The cron job runs next${atTime(atMs)}.` };
}

function runAgain(jobId: string): Advice[] {
  return [advise('Run the cron job now, once the receiver is repaired.', 'POST', `/cron/${jobId}/trigger`, {})];
}
