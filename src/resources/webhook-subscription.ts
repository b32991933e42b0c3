import { z } from 'zod';
import { defineKind, type Rule } from './definition.ts';
import { commonStatus, reference, refersTo } from './fields.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';
import { text } from './text.ts';

/** Schema of label filters, here and in the REST API. */
export const labelFilterLimits = { labels: 20, keyLength: 128, values: 100, valueLength: 256 };
const { labels, keyLength, values, valueLength } = labelFilterLimits;

const eventTypeReference = refersTo(
  'WebhookEventType',
  z.strictObject({
    name: text(1, 100)
      .regex(
        /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
        'must be lower-case letters, digits, - and ., and begin and end with a letter or digit',
      )
      .describe('metadata.name of the WebhookEventType, in the same namespace: its name with - for each _.'),
  }),
);

const spec = z.strictObject({
  endpointRef: reference('WebhookEndpoint').describe('The WebhookEndpoint that gets the events. Cannot be changed.'),
  eventTypeRef: eventTypeReference.describe(
    'The WebhookEventType that it gets; an endpoint has one subscription to each. Cannot be changed.',
  ),
  filterExpression: text(1, 1000)
    .optional()
    .describe('CEL over event.type, event.data, labels and metadata: only events for which it is true. The controller checks it.'),
  labelFilters: z
    .array(
      z.strictObject({
        key: text(1, keyLength).describe('Key of the label.'),
        values: z
          .array(text(1, valueLength))
          .min(1)
          .max(values)
          .meta({ 'x-kubernetes-list-type': 'set' })
          .describe('The label of an event must be one of these.'),
      }),
    )
    .max(labels)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['key'] })
    .optional()
    .describe('Labels that an event must have.'),
  labelFilterMode: z.enum(['all', 'any']).default('all').describe('Whether all label filters must be met, or any.'),
  transformRef: reference('Transform').optional().describe('A Transform that creates the delivered payload from the event.'),
  enabled: z.boolean().default(true).describe('While false, events skip it.'),
});

const immutable = (at: string): Rule => ({
  at,
  transition: true,
  cel: 'self == oldSelf',
  message: 'cannot be changed; make another subscription',
  check: (self: string, oldSelf: string) => self === oldSelf,
});

export const webhookSubscription = defineKind({
  kind: 'WebhookSubscription',
  plural: 'webhooksubscriptions',
  singular: 'webhooksubscription',
  shortName: 'whsub',
  scope: 'Namespaced',
  description: 'Which events of a type a webhook endpoint gets.',
  idPrefix: 'sub_',
  noun: 'subscription',
  recordKind: null,
  webhookKind: 'subscription',
  world: 'both',
  isServed: false,
  workers: 8,
  spec,
  status: z.strictObject({ ...commonStatus }),
  rules: [immutable('endpointRef.name'), immutable('eventTypeRef.name')],
  printerColumns: [
    ...readyColumns,
    { name: 'Endpoint', type: 'string', jsonPath: '.spec.endpointRef.name' },
    { name: 'Event Type', type: 'string', jsonPath: '.spec.eventTypeRef.name' },
    enabledColumn,
    ageColumn,
  ],
});
