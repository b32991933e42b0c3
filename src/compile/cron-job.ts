import { parseCronExpression } from '../core/cron-expression.ts';
import { isPosthornError } from '../core/errors.ts';
import { resourceId } from '../core/ids.ts';
import { type CronJobRecord, recordLayoutVersion } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { isTimeZone } from '../core/time-zone.ts';
import { urlProblem } from '../core/url-problem.ts';
import { httpCronJob as definition } from '../resources/http-cron-job.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { cronJobBeyondPlan } from '../resources/plan-gates.ts';
import { type CompiledByPlan, refuse, suspendable } from './compiled.ts';
import { compileHeaders, type HeaderInput } from './headers.ts';
import type { OrganizationFacts } from './organization.ts';
import { sealValue } from './sealed-value.ts';

export interface CronJobInputs {
  organization: OrganizationFacts;
  /** `spec.headers` with their values. */
  headers: readonly HeaderInput[];
  keyring: Keyring;
  /** The published record. The compiler reuses an envelope of it that holds the same value. */
  published: CronJobRecord | null;
}

/** Refuses a schedule that never runs, an unknown zone, and headers that cannot be sent. A job that the plan lacks is suspended: it does not run. */
export function compileCronJob(
  { metadata, spec }: PosthornObject<'HttpCronJob'>,
  { organization, headers, keyring, published }: CronJobInputs,
): CompiledByPlan<CronJobRecord> {
  try {
    parseCronExpression(spec.schedule);
  } catch (error) {
    if (isPosthornError(error, 'VALIDATION_FAILED')) return refuse('InvalidSchedule', `spec.schedule: ${error.message}`);
    throw error;
  }
  if (!isTimeZone(spec.timeZone)) return refuse('InvalidTimeZone', 'spec.timeZone is not a time zone of the IANA database');
  const problem = urlProblem(spec.url);
  if (problem !== null) return refuse('InvalidURL', `spec.url ${problem}`);
  const { schedule, timeZone, url, method, payload = '', timeoutMs, useStaticIp, enabled } = spec;
  const id = resourceId(definition.idPrefix, metadata);
  const context = recordSealingContext(organization.id, 'cronJob', id, 'headerValue');
  const compiled = compileHeaders(headers, 'spec.headers', published?.http.headers, (plain, envelopes) =>
    sealValue(plain, context, envelopes, keyring),
  );
  if (compiled.refusal !== undefined) return compiled;
  const record: CronJobRecord = {
    v: recordLayoutVersion,
    id,
    org: organization.id,
    slug: metadata.name,
    name: spec.name ?? metadata.name,
    enabled,
    schedule,
    timeZone,
    http: { url, method, headers: compiled.record, payload, timeoutMs, useStaticIp },
    generation: metadata.generation,
  };
  return suspendable(record, cronJobBeyondPlan(spec, organization.plan));
}
