import { z } from 'zod';
import { parseCronExpression } from '../../../core/cron-expression.ts';
import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { parsedStrictJson } from '../../../core/json-text.ts';
import { withoutByteOrderMark } from '../../../core/payload-text.ts';
import { isJson } from '../../../core/plain-json.ts';
import { isTimeZone } from '../../../core/time-zone.ts';
import { isUsableUrl } from '../../../core/url-problem.ts';
import { description } from '../../../resources/fields.ts';
import { kinds, type SpecInputOf } from '../../../resources/kinds.ts';
import { isPaidPlan } from '../../../resources/plan-gates.ts';
import { httpUrl } from '../../../resources/url.ts';
import { settingNotHad } from '../../http/setting-not-had.ts';
import { clearableToSpec, nameToSpec, sentName, sentSlug } from '../../records/record-fields.ts';
import type { SpecInput } from '../../records/resource-family-definition.ts';
import { specField } from '../../records/spec-field.ts';
import { headerMap, headerValueOrMask } from '../shared/header-map.ts';
import { headerList, headersToSpec, refuseHeadersElsewhere } from '../shared/static-headers.ts';

const spec = kinds.HttpCronJob.spec.shape;

const headers = headerMap(headerValueOrMask, 50);
/** As a single read shows them. */
const headerText = z
  .string()
  .max(500_000)
  .meta({ format: 'header-map' })
  .transform((text, context) => {
    if (!isJson(withoutByteOrderMark(text))) {
      context.addIssue({ code: 'custom', message: 'must be an object, or such an object as JSON text' });
      return z.NEVER;
    }
    const { value, problem } = parsedStrictJson(text);
    if (problem === undefined) return value;
    context.addIssue({ code: 'custom', message: `is ${problem}` });
    return z.NEVER;
  })
  .pipe(headers);

const noAlerts = 'Nothing but false: alerts are about routes, not about cron jobs.';

/** Body of create and change. */
export const cronJobBody = z.strictObject({
  name: sentName.optional(),
  slug: sentSlug.optional(),
  description: description.nullable().optional(),
  cronExpression: z
    .string()
    .max(256)
    .optional()
    .describe(
      'Minute (0-59), hour (0-23), day of month (1-31), month (1-12), day of week (0-6): each `*`, `*/n`, or numbers and ranges with commas.',
    ),
  timezone: z
    .string()
    .max(64)
    .optional()
    .meta({ description: 'IANA time zone, such as Europe/Berlin.', default: spec.timeZone.parse(undefined) }),
  url: z.string().max(2048).meta({ format: 'uri' }).optional().describe('Absolute http or https URL without user and password.'),
  method: specField(spec.method),
  headers: z
    .union([headers, headerText])
    .nullable()
    .optional()
    .describe(
      'Names and values; on change they replace the whole map. Credentials are masked on read; a mask sent back keeps what is stored.',
    ),
  payload: z.string().max(262_144).nullable().optional().describe('Body of the request, as text.'),
  timeoutMs: specField(spec.timeoutMs),
  isActive: specField(spec.enabled),
  useStaticIp: specField(spec.useStaticIp),
  notifyOnFailure: settingNotHad(z.literal(false), noAlerts),
  notifyOnSuccess: settingNotHad(z.literal(false), noAlerts),
  notifyEmails: settingNotHad(z.null(), 'Nothing but null: alerts are about routes, not about cron jobs.'),
  groupId: settingNotHad(z.null(), 'Nothing but null: cron jobs have no groups.'),
});

/** The spec that a body makes of `current`. VALIDATION_FAILED and INVALID_URL name the field, FORBIDDEN the plan; CREDENTIALS_REQUIRED as in `refuseHeadersElsewhere`. */
export async function cronJobToSpec({
  call,
  body: sent,
  current,
  secrets,
}: SpecInput<'HttpCronJob', typeof cronJobBody>): Promise<SpecInputOf<'HttpCronJob'>> {
  const before = current?.spec;
  if (sent.useStaticIp === true && before?.useStaticIp !== true && !isPaidPlan(call.caller.organization.plan)) {
    throw new PosthornError('FORBIDDEN', 'useStaticIp needs a paid plan.');
  }
  const url = checkedUrl(sent.url ?? before?.url ?? '');
  const sentHeaders = sent.headers === undefined ? undefined : headerList(sent.headers);
  refuseHeadersElsewhere(call, before, { url, headers: sentHeaders });
  const headers = await headersToSpec(sentHeaders, { current, stored: before?.headers, path: ['headers'], secrets });
  return {
    ...before,
    name: nameToSpec(sent.name, current),
    description: clearableToSpec(sent.description, before?.description),
    enabled: sent.isActive ?? before?.enabled,
    schedule: checkedSchedule(sent.cronExpression ?? before?.schedule ?? ''),
    timeZone: checkedTimeZone(sent.timezone) ?? before?.timeZone,
    url,
    method: sent.method ?? before?.method,
    headers,
    payload: clearableToSpec(sent.payload, before?.payload),
    timeoutMs: sent.timeoutMs ?? before?.timeoutMs,
    useStaticIp: sent.useStaticIp ?? before?.useStaticIp,
  };
}

function checkedSchedule(text: string): string {
  try {
    parseCronExpression(text);
    return text;
  } catch (error) {
    if (isPosthornError(error, 'VALIDATION_FAILED')) throw new PosthornError('VALIDATION_FAILED', `cronExpression ${error.message}.`);
    throw error;
  }
}

function checkedTimeZone(zone: string | undefined): string | undefined {
  if (zone !== undefined && !isTimeZone(zone))
    throw new PosthornError('VALIDATION_FAILED', 'timezone must be a time zone of the IANA database, such as Europe/Berlin.');
  return zone;
}

function checkedUrl(url: string): string {
  const checked = httpUrl.safeParse(url);
  if (checked.success && isUsableUrl(url)) return url;
  throw new PosthornError('INVALID_URL', `url ${checked.error?.issues[0]?.message ?? 'must be an absolute http or https URL'}.`);
}
