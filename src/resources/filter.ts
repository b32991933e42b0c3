import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';

/** Inline conditions (DESIGN section 7); `field` is payload.x.y, headers.X, or a plain path into the payload. */
export const filterCondition = z.object({
  field: z.string().min(1).max(256).describe('payload.x.y, headers.X, or a plain path into the payload.'),
  operator: z.enum([
    'equals', 'not_equals', 'contains', 'not_contains', 'starts_with', 'ends_with', 'matches', 'exists', 'not_exists',
    'gt', 'gte', 'lt', 'lte', 'in', 'not_in',
  ]),
  value: z.unknown().optional().meta({ 'x-kubernetes-preserve-unknown-fields': true }).describe('What the field is compared with; a list for in and not_in, none for exists and not_exists.'),
});

export const filterLogic = z.enum(['AND', 'OR']).default('AND');
export const filterConditions = z.array(filterCondition).min(1).max(50).meta({ 'x-kubernetes-list-type': 'atomic' });

export const filter = defineKind({
  kind: 'Filter',
  plural: 'filters',
  singular: 'filter',
  shortName: 'pflt',
  scope: 'Namespaced',
  description: 'Conditions on an event that routes refer to: an event that does not meet them is not delivered.',
  idPrefix: 'flt_',
  spec: z.object({
    name: displayName.optional(),
    description: description.optional(),
    logic: filterLogic,
    conditions: filterConditions,
  }),
  status: z.object({ ...commonStatus }),
  rules: [
    {
      at: 'conditions[]',
      cel: "(self.operator in ['exists', 'not_exists']) != has(self.value)",
      message: 'value is required, except for exists and not_exists, which take none',
      check: (self) => ['exists', 'not_exists'].includes(self.operator) !== (self.value !== undefined),
    },
  ],
  printerColumns: [...readyColumns, { name: 'Logic', type: 'string', jsonPath: '.spec.logic' }, ageColumn],
});
