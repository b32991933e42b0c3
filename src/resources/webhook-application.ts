import { z } from 'zod';
import { defineKind, type Rule } from './definition.ts';
import { isRecord } from './field-tree.ts';
import { commonStatus, disableAfterHours, displayName } from './fields.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';
import { line, paragraph } from './text.ts';

const maxPerSecond = 1_000_000;
/** In a window of so many seconds, so that a longer window need never be the one that bounds. */
const limit = (messages: number, seconds: number) =>
  z
    .int()
    .min(1)
    .max(maxPerSecond * seconds)
    .default(messages);

const spec = z.strictObject({
  name: displayName.optional(),
  externalId: line(1, 255).optional().describe("The sender's own id of the customer; no other application of the organization has it."),
  metadata: z
    .unknown()
    .refine(isRecord, { error: 'must be an object' })
    .meta({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-map-type': 'atomic' })
    .describe('Anything, at most 8192 bytes as JSON.')
    .optional(),
  rateLimits: z
    .strictObject({
      perSecond: limit(100, 1).describe('Messages in a second.'),
      perMinute: limit(1000, 60).describe('Messages in a minute.'),
      perHour: limit(10_000, 3600).describe('Messages in an hour.'),
    })
    .optional()
    .describe('Messages to all its endpoints together.'),
  enabled: z.boolean().default(true).describe('While false, events skip it and queued messages wait.'),
  disableAfterHours,
  disabledReason: paragraph(1, 500).optional().describe('Why it is not enabled.'),
});
type Spec = z.output<typeof spec>;

/** A reason belongs to what is not enabled. */
export const disabledReasonRule: Rule = {
  at: '',
  cel: '!(self.enabled && has(self.disabledReason))',
  message: 'must be left out while enabled is true',
  fieldPath: '.disabledReason',
  check: ({ enabled, disabledReason }: Pick<Spec, 'enabled' | 'disabledReason'>) => !(enabled && disabledReason !== undefined),
};

export const webhookApplication = defineKind({
  kind: 'WebhookApplication',
  plural: 'webhookapplications',
  singular: 'webhookapplication',
  shortName: 'whapp',
  scope: 'Namespaced',
  description: 'A customer whose webhook endpoints get events. Those that are not declared here are created through the API.',
  idPrefix: 'app_',
  noun: 'application',
  recordKind: null,
  webhookKind: 'application',
  world: 'both',
  isServed: false,
  workers: 4,
  spec,
  status: z.strictObject({ ...commonStatus }),
  rules: [disabledReasonRule],
  printerColumns: [...readyColumns, { name: 'External Id', type: 'string', jsonPath: '.spec.externalId' }, enabledColumn, ageColumn],
});
