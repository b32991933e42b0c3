import { parseCronExpression } from '../core/cron-expression.ts';
import { isPosthornError } from '../core/errors.ts';
import { resourceId } from '../core/ids.ts';
import { type CronJobRecord, recordLayoutVersion } from '../core/records.ts';
import { isTimeZone } from '../core/time-zone.ts';
import { httpCronJob as definition } from '../resources/http-cron-job.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { cronJobBeyondPlan } from '../resources/plan-gates.ts';
import { type CompiledByPlan, refuse, suspendable } from './compiled.ts';
import type { OrganizationFacts } from './organization.ts';

/** Refuses a schedule that never runs and a zone that nobody knows. What the plan does not have is suspended: it does not run. */
export function compileCronJob(
  { metadata, spec }: PosthornObject<'HttpCronJob'>,
  organization: OrganizationFacts,
): CompiledByPlan<CronJobRecord> {
  try {
    parseCronExpression(spec.schedule);
  } catch (error) {
    if (isPosthornError(error, 'VALIDATION_FAILED')) return refuse('InvalidSchedule', `spec.schedule: ${error.message}`);
    throw error;
  }
  if (!isTimeZone(spec.timeZone)) return refuse('InvalidTimeZone', 'spec.timeZone is not a time zone of the IANA database');
  if (!URL.canParse(spec.url)) return refuse('InvalidURL', 'spec.url is not an absolute http or https URL');
  const { schedule, timeZone, url, method, headers = [], payload = '', timeoutMs, useStaticIp, enabled } = spec;
  const record: CronJobRecord = {
    v: recordLayoutVersion,
    id: resourceId(definition.idPrefix, metadata),
    org: organization.id,
    slug: metadata.name,
    name: spec.name ?? metadata.name,
    enabled,
    schedule,
    timeZone,
    http: { url, method, headers: headers.map(({ name, value }) => ({ name, value })), payload, timeoutMs, useStaticIp },
    generation: metadata.generation,
  };
  return suspendable(record, cronJobBeyondPlan(spec, organization.plan));
}
