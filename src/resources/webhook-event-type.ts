import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, description, expiresAfterSeconds } from './fields.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';
import { dateTime, line, paragraph, text } from './text.ts';
import { httpUrl } from './url.ts';

const maxCharacters = 65_536;

const eventTypeName = text(1, 100).regex(
  /^[a-z0-9]([a-z0-9_]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_]*[a-z0-9])?)*$/,
  'must be lower-case words of letters, digits and _, separated by dots; a word begins and ends with a letter or digit',
);

export const webhookEventType = defineKind({
  kind: 'WebhookEventType',
  plural: 'webhookeventtypes',
  singular: 'webhookeventtype',
  shortName: 'whevt',
  scope: 'Namespaced',
  description: 'A kind of event that is sent to the webhook endpoints of customers who subscribe to it.',
  idPrefix: 'etp_',
  noun: 'event type',
  recordKind: 'eventType',
  world: 'both',
  isServed: true,
  workers: 4,
  isIntake: true,
  spec: z.strictObject({
    name: eventTypeName.describe('Name by which events are sent, such as order.paid. metadata.name is the same with - for each _.'),
    displayName: line(1, 200).optional().describe('Name shown to people.'),
    description: description.optional(),
    category: line(1, 100).optional().describe('Group that it is listed under.'),
    schema: text(1, maxCharacters)
      .optional()
      .describe(
        'JSON Schema of the payload, as JSON text: draft 2020-12 or, by its $schema, draft 07. An event that breaks it is refused. The controller checks it.',
      ),
    examplePayload: text(1, maxCharacters).optional().describe('A payload as an example, as JSON text. The controller checks it.'),
    documentationUrl: httpUrl.optional().describe('Where subscribers read more.'),
    enabled: z.boolean().default(true).describe('Whether events of this type are taken.'),
    deprecated: z.boolean().default(false).describe('Whether subscribers should move to something else. Events are still taken.'),
    deprecatedMessage: paragraph(1, 500).optional().describe('What subscribers should do about it.'),
    expiresAfterSeconds: expiresAfterSeconds('of an event of this type'),
  }),
  status: z.strictObject({
    ...commonStatus,
    schemaVersion: z.int().min(1).optional().describe('Grows with each change of schema.'),
    deprecatedAt: dateTime.optional().describe('When it was deprecated.'),
  }),
  rules: [],
  printerColumns: [
    ...readyColumns,
    { name: 'Type', type: 'string', jsonPath: '.spec.name' },
    enabledColumn,
    { name: 'Category', type: 'string', jsonPath: '.spec.category', priority: 1 },
    ageColumn,
  ],
});
