import { z } from 'zod';
import type { Rule } from './definition.ts';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName } from './fields.ts';
import { staticHeaderRules, staticHeaders } from './http-header.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';
import { dateTime, text } from './text.ts';
import { httpUrl } from './url.ts';

/** `*`, a step from a star, or numbers and ranges with commas. */
function cronField(value: string, step: string): string {
  const member = `(${value})(-(${value}))?`;
  return `(\\*(/(${step}))?|${member}(,${member})*)`;
}

const upTo59 = '[0-5]?[0-9]';
const stepTo59 = '0?[1-9]|[1-5][0-9]';
const upTo31 = '0?[1-9]|[12][0-9]|3[01]';
const upTo12 = '0?[1-9]|1[0-2]';
const cronPattern = [
  cronField(upTo59, stepTo59),
  cronField('[01]?[0-9]|2[0-3]', '0?[1-9]|1[0-9]|2[0-3]'),
  cronField(upTo31, upTo31),
  cronField(upTo12, upTo12),
  cronField('0?[0-6]', '0?[1-6]'),
].join(' +');

const scheduleComplaint =
  'must be minute (0-59), hour (0-23), day of month (1-31), month (1-12) and day of week (0-6), each *, */n, or numbers and ranges such as 1-5 with commas';
const schedule = text(9, 256)
  .regex(new RegExp(`^${cronPattern}$`), scheduleComplaint)
  .describe('When it runs: five fields of cron. Day of month and day of week unite unless one of them is *.');

const cronJobRules: readonly Rule[] = [
  ...staticHeaderRules('headers'),
  {
    at: 'schedule',
    cel: "self.replace(' ', ',').split(',').all(m, !m.matches('^[0-9]+-[0-9]+$') || int(m.split('-')[0]) <= int(m.split('-')[1]))",
    message: 'has a range that ends before it begins',
    check: (self: string) =>
      self.split(/[ ,]/).every((member) => {
        const [, from, to] = /^([0-9]+)-([0-9]+)$/.exec(member) ?? [];
        return Number(from ?? 0) <= Number(to ?? 0);
      }),
  },
];

const cronMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export const httpCronJob = defineKind({
  kind: 'HttpCronJob',
  plural: 'httpcronjobs',
  singular: 'httpcronjob',
  shortName: 'hcj',
  scope: 'Namespaced',
  description: 'An HTTP request that is sent repeatedly, on a cron schedule.',
  idPrefix: 'cron_',
  noun: 'cron job',
  recordKind: 'cronJob',
  world: 'both',
  isServed: true,
  workers: 4,
  hasSharedStatus: true,
  spec: z.strictObject({
    name: displayName.optional(),
    description: description.optional(),
    enabled: z.boolean().default(true).describe('While false, it runs only when it is triggered.'),
    schedule,
    timeZone: text(1, 64)
      .regex(/^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/, 'must be the name of a time zone, such as Europe/Berlin')
      .default('UTC')
      .describe('IANA time zone whose clocks the schedule follows.'),
    url: httpUrl.describe('Absolute http or https URL without user and password.'),
    method: z.enum(cronMethods).default('POST').describe('Method of the request.'),
    headers: staticHeaders(50).optional().describe('Sent with every request.'),
    payload: text(0, 262_144).optional().describe('Body of the request, as text.'),
    timeoutMs: z.int().min(100).max(60_000).default(30_000).describe('One deadline over connect, headers and body, in milliseconds.'),
    useStaticIp: z
      .boolean()
      .default(false)
      .describe('Requests go through the egress proxy of the installation, which has a fixed address. Needs a paid plan.'),
  }),
  status: z.strictObject({
    ...commonStatus,
    lastScheduleTime: dateTime.optional().describe('The slot that was run last, at most some minutes behind.'),
    nextScheduleTime: dateTime.optional().describe('The slot after that, when this was written.'),
  }),
  rules: cronJobRules,
  printerColumns: [
    ...readyColumns,
    { name: 'Schedule', type: 'string', jsonPath: '.spec.schedule' },
    enabledColumn,
    { name: 'Last', type: 'date', jsonPath: '.status.lastScheduleTime' },
    { name: 'Time Zone', type: 'string', jsonPath: '.spec.timeZone', priority: 1 },
    { name: 'URL', type: 'string', jsonPath: '.spec.url', priority: 1 },
    ageColumn,
  ],
});
