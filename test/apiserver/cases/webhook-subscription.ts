import { many, ref, specCases, text, type ValidationCase } from './case.ts';

const { valid, invalid, validChange, invalidChange } = specCases('WebhookSubscription', {
  endpointRef: ref('shop'),
  eventTypeRef: ref('order.line-item'),
});
const label = (key: string, ...values: string[]) => ({ key, values });

export const webhookSubscriptionCases: ValidationCase[] = [
  valid('the smallest one', {}),
  valid('everything', {
    filterExpression: 'event.data.total > 10.0',
    labelFilters: [label('country', 'at', 'de'), label('tier', 'x')],
    labelFilterMode: 'any',
    transformRef: ref('short'),
    enabled: false,
  }),
  valid('an expression that is none, which the controller refuses', { filterExpression: 'event.' }),
  valid('20 label filters', { labelFilters: many(20, (index) => label(`k${index}`, ...many(100, (value) => `v${value}`))) }),
  invalid('no endpoint', { endpointRef: undefined }, 'spec.endpointRef'),
  invalid('no event type', { eventTypeRef: undefined }, 'spec.eventTypeRef'),
  invalid('an event type by a name that objects cannot have', { eventTypeRef: ref('order.line_item') }, 'spec.eventTypeRef.name'),
  invalid('an empty expression', { filterExpression: '' }, 'spec.filterExpression'),
  invalid('an expression too long', { filterExpression: text(1001) }, 'spec.filterExpression'),
  invalid('a label filter twice', { labelFilters: [label('a', 'x'), label('a', 'y')] }, 'spec.labelFilters[1]'),
  invalid('a label filter without values', { labelFilters: [label('a')] }, 'spec.labelFilters[0].values'),
  invalid('the same value twice', { labelFilters: [label('a', 'x', 'x')] }, 'spec.labelFilters[0].values[1]'),
  invalid('an empty value', { labelFilters: [label('a', '')] }, 'spec.labelFilters[0].values[0]'),
  invalid('101 values', { labelFilters: [label('a', ...many(101, (value) => `v${value}`))] }, 'spec.labelFilters[0].values'),
  invalid('21 label filters', { labelFilters: many(21, (index) => label(`k${index}`, 'v')) }, 'spec.labelFilters'),
  invalid('an unknown mode', { labelFilterMode: 'some' }, 'spec.labelFilterMode'),
  invalid('an unknown field', { isEnabled: true }, 'spec.isEnabled'),
  validChange('another filter', { filterExpression: 'true' }, {}),
  invalidChange('another endpoint', {}, { endpointRef: ref('other') }, 'spec.endpointRef.name'),
  invalidChange('another event type', {}, { eventTypeRef: ref('order.paid') }, 'spec.eventTypeRef.name'),
];
