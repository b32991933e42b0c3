import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName, reference, referenceList } from './fields.ts';
import { filterConditions, filterLogic } from './filter.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';

export const route = defineKind({
  kind: 'Route',
  plural: 'routes',
  singular: 'route',
  shortName: 'prt',
  scope: 'Namespaced',
  description: 'Connects one source to destinations, with a filter, failover, a circuit breaker and response validation.',
  idPrefix: 'rte_',
  spec: z.object({
    name: displayName.optional(),
    description: description.optional(),
    sourceRef: reference.describe('The source whose events are routed. Cannot be changed.'),
    destinationRefs: referenceList(100).describe('Each event goes to every one of these.'),
    filterRef: reference.optional().describe('A Filter; an alternative to filter.'),
    filter: z.object({ logic: filterLogic, conditions: filterConditions }).optional().describe('Inline filter; an alternative to filterRef.'),
    priority: z.int().min(-1000).max(1000).default(0).describe('Higher values run first.'),
    enabled: z.boolean().default(true),
    expectedResponse: z
      .object({
        statusCodes: z.array(z.int().min(100).max(599)).max(50).meta({ 'x-kubernetes-list-type': 'set' }).optional(),
        bodyContains: z.string().min(1).max(1024).optional(),
      })
      .optional()
      .describe('A delivery counts as successful only with such a response. Default: any 2xx.'),
    failover: z
      .object({
        destinationRefs: referenceList(3).describe('Tried in this order.'),
        afterAttempts: z.int().min(1).max(10).default(3),
      })
      .optional(),
    circuit: z
      .object({
        failureThreshold: z.int().min(1).max(1000).default(5),
        cooldownSeconds: z.int().min(1).max(86_400).default(300),
        probeSuccessThreshold: z.int().min(1).max(100).default(2),
      })
      .optional(),
  }),
  status: z.object({
    ...commonStatus,
    circuit: z
      .object({
        state: z.enum(['closed', 'open', 'half_open']),
        since: z.string().max(64).meta({ format: 'date-time' }).optional(),
      })
      .optional(),
  }),
  rules: [
    {
      at: 'sourceRef',
      transition: true,
      cel: 'self.name == oldSelf.name',
      message: 'sourceRef cannot be changed',
      check: (self, oldSelf) => self.name === oldSelf.name,
    },
    {
      at: '',
      cel: '!(has(self.filterRef) && has(self.filter))',
      message: 'give filterRef or filter, not both',
      check: (self) => !(self.filterRef !== undefined && self.filter !== undefined),
    },
  ],
  printerColumns: [
    ...readyColumns,
    { name: 'Source', type: 'string', jsonPath: '.spec.sourceRef.name' },
    { name: 'Circuit', type: 'string', jsonPath: '.status.circuit.state' },
    ageColumn,
  ],
});
