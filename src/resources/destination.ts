import { z } from 'zod';
import { defineKind } from './definition.ts';
import { destinationRules } from './destination-constraints.ts';
import { destinationSpec } from './destination-spec.ts';
import { circuitStatus, commonStatus } from './fields.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';

export const destination = defineKind({
  kind: 'Destination',
  plural: 'destinations',
  singular: 'destination',
  shortName: 'dest',
  scope: 'Namespaced',
  description: 'Where events are delivered to: an HTTP endpoint, or files in object storage.',
  idPrefix: 'dst_',
  noun: 'destination',
  recordKind: 'destination',
  world: 'both',
  isServed: true,
  workers: 12,
  hasSharedStatus: true,
  spec: destinationSpec,
  status: z.strictObject({
    ...commonStatus,
    circuit: circuitStatus.optional().describe('The worst circuit of the routes that deliver here.'),
  }),
  rules: destinationRules,
  printerColumns: [
    ...readyColumns,
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    enabledColumn,
    { name: 'Circuit', type: 'string', jsonPath: '.status.circuit.state' },
    { name: 'URL', type: 'string', jsonPath: '.spec.http.url', priority: 1 },
    ageColumn,
  ],
});
