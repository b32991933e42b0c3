import type { Clock } from '../../core/clock.ts';
import { egressRules } from '../../core/egress-policy.ts';
import { withoutByteOrderMark } from '../../core/payload-text.ts';
import { isJson } from '../../core/plain-json.ts';
import type { CronJobRecord } from '../../core/records.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';
import type { CronExecution, CronExecutions } from '../../data/cron/cron-executions.ts';
import type { CronRun, CronRuns } from '../../data/cron/cron-runs.ts';
import { attemptRecord } from '../attempts/attempt-outcome.ts';
import type { PlanSources } from '../plans/delivery-plan.ts';
import { exchange, type HttpResult } from '../targets/http/http-exchange.ts';
import { httpTarget } from '../targets/http/http-target.ts';
import { withLookupShare } from '../targets/http/name-lookups.ts';
import { destinationHeaders, openedHeaders } from '../targets/http/request-headers.ts';
import { SentSecrets } from '../targets/http/sent-secrets.ts';

const maxWrites = 6;
const writeAgainMs = 1000;

export interface CronAttemptOptions extends PlanSources {
  runs: CronRuns;
  executions: CronExecutions;
}

/** The execution of a run that has ended. */
export type EndedExecution = CronExecution & { status: 'success' | 'failed'; latencyMs: number };

/** Makes the request of a run once, and records it. Throws UNAVAILABLE when the record cannot be written; an aborted signal fails the run. */
export async function attemptCronRun(
  options: CronAttemptOptions,
  run: CronRun,
  job: CronJobRecord,
  signal: AbortSignal,
): Promise<EndedExecution> {
  const { executions, runs, clock, attemptDetail: mode } = options;
  const startedAtMs = clock.now();
  const execution = { id: run.id, jobId: job.id, org: job.org, startedAtMs, responseStatus: null, responseBody: null, errorMessage: null };
  await executions.write({ ...execution, status: 'running', latencyMs: null, completedAtMs: null });
  const result = await withLookupShare(job.org, () => request(options, run, job, signal));
  const attempt = attemptRecord(result, { expectedResponse: null }, { startedAtMs, endedAtMs: clock.now() }, { mode, number: 1 });
  const ended: EndedExecution = {
    ...execution,
    status: attempt.errorType === null ? 'success' : 'failed',
    responseStatus: attempt.responseStatus,
    responseBody: attempt.responseBody,
    errorMessage: attempt.errorType === null ? null : (attempt.errorMessage ?? attempt.errorType),
    latencyMs: attempt.durationMs,
    completedAtMs: startedAtMs + attempt.durationMs,
    ...(attempt.detail !== undefined && { detail: attempt.detail }),
  };
  await recorded(clock, async () => {
    await executions.write(ended);
    await runs.release(run.id);
  });
  return ended;
}

/** Redis may be down for a moment; what is not recorded by then ends as lost. */
async function recorded(clock: Clock, write: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (tries === maxWrites) throw error;
      await clock.sleep(writeAgainMs);
    }
  }
}

async function request(options: CronAttemptOptions, run: CronRun, job: CronJobRecord, signal: AbortSignal): Promise<HttpResult> {
  const { registry, dispatchers, allowed, clock, userAgent } = options;
  const opened = headersOf(job, options);
  if (opened === null) return { type: 'error', error: new Error('a credential among the headers cannot be opened') };
  const { url, method, payload, timeoutMs, useStaticIp } = job.http;
  const { origin, path } = httpTarget(url);
  const egress = egressRules(allowed, await registry.get('organization', job.org));
  const dispatcher = dispatchers.forRules({ egress, tls: null, usesProxy: useStaticIp })();
  const body = payload === '' ? null : Buffer.from(payload);
  return await exchange(
    dispatcher,
    {
      origin,
      path,
      method,
      headers: requestHeaders(opened.headers, payload, { run, job, userAgent }),
      body,
      secrets: new SentSecrets(opened.secrets, opened.secretNames),
    },
    // The time after which it counts as lost was set when the run was queued; a longer timeout holds from the next one on.
    { timeoutMs: Math.min(timeoutMs, run.timeoutMs), clock, signal },
  );
}

/** Null when one of them does not open. */
function headersOf({ org, id, http }: CronJobRecord, { keyring }: CronAttemptOptions): ReturnType<typeof openedHeaders> | null {
  try {
    return openedHeaders(http.headers, (sealed) => keyring.open(sealed, recordSealingContext(org, 'cronJob', id, 'headerValue')));
  } catch {
    return null;
  }
}

/** Alternating names and values. */
function requestHeaders(
  headers: readonly { name: string; value: string }[],
  payload: string,
  { run, job, userAgent }: { run: CronRun; job: CronJobRecord; userAgent: string },
): string[] {
  const { own, names } = destinationHeaders(headers, { type: 'none' }, []);
  const contentType =
    payload === '' || names.has('content-type')
      ? []
      : ['content-type', !isJson(withoutByteOrderMark(payload)) ? 'text/plain' : 'application/json'];
  const agent = names.has('user-agent') ? [] : ['user-agent', userAgent];
  const ours = ['accept-encoding', 'identity', 'x-posthorn-cron-job', job.id, 'x-posthorn-execution', run.id];
  return [...own.flat(), ...contentType, ...agent, ...ours];
}
