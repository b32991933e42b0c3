import { z } from 'zod';
import { defineKind, type Rule } from './definition.ts';
import { circuitStatus, commonStatus, description, displayName, reference, referenceList } from './fields.ts';
import { filterConditionRules, filterConditions, filterLogic } from './filter-conditions.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';
import { routeNotifications } from './route-notifications.ts';
import { text } from './text.ts';

const inlineFilter = z.strictObject({ logic: filterLogic, conditions: filterConditions.describe('What an event must meet.') });

const expectedResponse = z.strictObject({
  statusCodes: z
    .array(z.int().min(100).max(599))
    .min(1)
    .max(50)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .optional()
    .describe('Statuses that count as success.'),
  bodyContains: text(1, 1024).optional().describe('Text that the body must contain within what is read of it.'),
});

const failover = z.strictObject({
  destinationRefs: referenceList('Destination', 3).default([]).describe('Tried in this order.'),
  afterAttempts: z.int().min(1).max(10).default(3).describe('Failed attempts after which the first failover destination is tried.'),
});

const circuit = z.strictObject({
  failureThreshold: z.int().min(1).max(1000).default(5).describe('Consecutive failed attempts that open the circuit.'),
  cooldownSeconds: z.int().min(1).max(86_400).default(300).describe('Seconds that an open circuit waits before it is probed.'),
  probeSuccessThreshold: z.int().min(1).max(100).default(2).describe('Successful probes that close the circuit.'),
});

const spec = z.strictObject({
  name: displayName.optional(),
  description: description.optional(),
  sourceRef: reference('Source').describe('The source whose events are routed. Cannot be changed.'),
  destinationRefs: referenceList('Destination', 100).default([]).describe('Each event goes to every one of these.'),
  filterRef: reference('Filter').optional().describe('A Filter; an alternative to filter.'),
  filter: inlineFilter.optional().describe('Inline filter; an alternative to filterRef.'),
  transformRef: reference('Transform').optional().describe('A Transform that creates the delivered payload from the event.'),
  schemaRef: reference('PayloadSchema').optional().describe('A PayloadSchema; an event whose payload breaks it is not delivered.'),
  priority: z.int().min(-1000).max(1000).default(0).describe('Higher values run first.'),
  enabled: z.boolean().default(true).describe('While false, deliveries are accepted and wait.'),
  expectedResponse: expectedResponse.optional().describe('A delivery counts as successful only with such a response. Default: any 2xx.'),
  failover: failover.optional().describe('Where deliveries go when the destination fails.'),
  circuit: circuit.optional().describe('When deliveries to a failing destination pause.'),
  notifications: routeNotifications.optional().describe('When there are alerts, and who gets them.'),
});
type Spec = z.output<typeof spec>;

const rules: readonly Rule[] = [
  {
    at: 'sourceRef.name',
    transition: true,
    cel: 'self == oldSelf',
    message: 'cannot be changed; make another route',
    check: (self: string, oldSelf: string) => self === oldSelf,
  },
  {
    at: '',
    cel: '!(has(self.filterRef) && has(self.filter))',
    message: 'give filterRef or filter, not both',
    fieldPath: '.filter',
    check: (self: Spec) => !(self.filterRef !== undefined && self.filter !== undefined),
  },
  {
    at: '',
    cel: '!has(self.failover) || self.failover.destinationRefs.all(spare, !self.destinationRefs.exists(first, first.name == spare.name))',
    message: 'must be other destinations than those in destinationRefs',
    fieldPath: '.failover.destinationRefs',
    check: (self: Spec) => {
      const first = new Set(self.destinationRefs.map(({ name }) => name));
      return !self.failover?.destinationRefs.some(({ name }) => first.has(name));
    },
  },
  {
    at: 'expectedResponse',
    cel: 'has(self.statusCodes) || has(self.bodyContains)',
    message: 'needs statusCodes or bodyContains; leave it out to accept any 2xx',
    check: (self: NonNullable<Spec['expectedResponse']>) => self.statusCodes !== undefined || self.bodyContains !== undefined,
  },
  ...filterConditionRules('filter.conditions'),
];

export const route = defineKind({
  kind: 'Route',
  plural: 'routes',
  singular: 'route',
  shortName: 'prt',
  scope: 'Namespaced',
  description:
    'Connects one source to destinations, with a schema, a filter, a transform, failover, a circuit breaker and response validation.',
  idPrefix: 'rte_',
  noun: 'route',
  recordKind: 'route',
  world: 'both',
  isServed: true,
  workers: 12,
  hasSharedStatus: true,
  spec,
  status: z.strictObject({
    ...commonStatus,
    circuit: circuitStatus.optional().describe('The worst circuit of the destinations of this route.'),
  }),
  rules,
  printerColumns: [
    ...readyColumns,
    { name: 'Source', type: 'string', jsonPath: '.spec.sourceRef.name' },
    enabledColumn,
    { name: 'Circuit', type: 'string', jsonPath: '.status.circuit.state' },
    ageColumn,
  ],
});
