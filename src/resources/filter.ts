import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName } from './fields.ts';
import { filterConditionRules, filterConditions, filterLogic } from './filter-conditions.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';
import { sharingFields, sharingRules } from './sharing-fields.ts';

export const filter = defineKind({
  kind: 'Filter',
  plural: 'filters',
  singular: 'filter',
  shortName: 'pflt',
  scope: 'Namespaced',
  description: 'Conditions on an event that routes refer to: an event that does not meet them is not delivered.',
  idPrefix: 'flt_',
  noun: 'filter',
  recordKind: null,
  world: 'both',
  isServed: true,
  workers: 4,
  referrersReadSpec: true,
  spec: z.strictObject({
    name: displayName.optional(),
    description: description.optional(),
    logic: filterLogic,
    conditions: filterConditions.optional().describe('What an event must meet.'),
    ...sharingFields,
  }),
  status: z.strictObject({ ...commonStatus }),
  rules: [...filterConditionRules('conditions'), ...sharingRules('conditions')],
  printerColumns: [...readyColumns, { name: 'Logic', type: 'string', jsonPath: '.spec.logic' }, ageColumn],
});
