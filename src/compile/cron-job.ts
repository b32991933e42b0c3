import { parseCronExpression } from '../core/cron-expression.ts';
import { isPosthornError } from '../core/errors.ts';
import { resourceId } from '../core/ids.ts';
import { type CronJobRecord, recordLayoutVersion } from '../core/records.ts';
import { isTimeZone } from '../core/time-zone.ts';
import { httpCronJob as definition } from '../resources/http-cron-job.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { type Compiled, refuse } from './compiled.ts';
import type { OrganizationFacts } from './organization.ts';

/** Refuses a schedule that never runs, a zone that nobody knows, and what the plan does not have. */
export function compileCronJob(
  { metadata, spec }: PosthornObject<'HttpCronJob'>,
  organization: OrganizationFacts,
): Compiled<CronJobRecord> {
  try {
    parseCronExpression(spec.schedule);
  } catch (error) {
    if (isPosthornError(error, 'VALIDATION_FAILED')) return refuse('InvalidSchedule', `spec.schedule: ${error.message}`);
    throw error;
  }
  if (!isTimeZone(spec.timeZone)) return refuse('InvalidTimeZone', 'spec.timeZone is not a time zone of the IANA database');
  if (!URL.canParse(spec.url)) return refuse('InvalidURL', 'spec.url is not an absolute http or https URL');
  if (spec.useStaticIp && organization.plan === 'free') return refuse('PlanTooLow', 'spec.useStaticIp needs a paid plan');
  const { schedule, timeZone, url, method, headers = [], payload = '', timeoutMs, useStaticIp, enabled } = spec;
  return {
    record: {
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
    },
  };
}
