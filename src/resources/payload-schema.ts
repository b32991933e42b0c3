import { z } from 'zod';
import { defineKind } from './definition.ts';
import { isRecord } from './field-tree.ts';
import { commonStatus, description, displayName } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { sharingFields, sharingRules } from './sharing-fields.ts';

/** Any JSON object: what it may hold, and its size, the controller and the API check. Applied as a whole. */
const jsonSchema = z
  .unknown()
  .refine(isRecord, { error: 'must be an object' })
  .meta({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-map-type': 'atomic' })
  .describe('JSON Schema, draft 2020-12 or, by its $schema, draft 07; at most 65,536 bytes as JSON.');

export const payloadSchema = defineKind({
  kind: 'PayloadSchema',
  plural: 'payloadschemas',
  singular: 'payloadschema',
  shortName: 'psch',
  scope: 'Namespaced',
  description: 'A JSON Schema that routes refer to: an event whose payload breaks it is not delivered.',
  idPrefix: 'sch_',
  noun: 'schema',
  recordKind: 'payloadSchema',
  world: 'both',
  isServed: true,
  workers: 4,
  referrersReadSpec: true,
  spec: z.strictObject({
    name: displayName.optional(),
    description: description.optional(),
    jsonSchema: jsonSchema.optional(),
    ...sharingFields,
  }),
  status: z.strictObject({
    ...commonStatus,
    version: z.int().min(1).optional().describe('Grows with each change of jsonSchema.'),
  }),
  rules: sharingRules('jsonSchema'),
  printerColumns: [...readyColumns, { name: 'Version', type: 'integer', jsonPath: '.status.version' }, ageColumn],
});
