import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { sharingFields, sharingRules } from './sharing-fields.ts';
import { text } from './text.ts';

export const transformType = z
  .enum(['jsonata', 'javascript', 'liquid'])
  .describe('Language of the code: a JSONata expression, JavaScript (ECMAScript 2023), or a Liquid template.');
export const transformCode = text(1, 65_536).describe(
  'What makes the payload that is delivered from the event: {id, source, receivedAt, method, contentType, headers, payload}.',
);

export const transform = defineKind({
  kind: 'Transform',
  plural: 'transforms',
  singular: 'transform',
  shortName: 'ptrf',
  scope: 'Namespaced',
  description: 'Code that routes refer to: it creates the payload that is delivered from the event. It runs once per event and route.',
  idPrefix: 'trf_',
  noun: 'transform',
  recordKind: 'transform',
  world: 'both',
  isServed: true,
  workers: 4,
  referrersReadSpec: true,
  spec: z.strictObject({
    name: displayName.optional(),
    description: description.optional(),
    type: transformType.default('jsonata'),
    code: transformCode.optional(),
    ...sharingFields,
  }),
  status: z.strictObject({ ...commonStatus }),
  rules: sharingRules('code'),
  printerColumns: [...readyColumns, { name: 'Type', type: 'string', jsonPath: '.spec.type' }, ageColumn],
});
