import { z } from 'zod';
import { compileCelFilter } from '../../../../core/cel-filter.ts';
import { unmetLabels } from '../../../../core/label-filters.ts';
import { readLargePayload } from '../../../../core/large-json.ts';
import { SubscriptionMatcher } from '../../../../data/webhooks/subscription-matcher.ts';
import { text } from '../../../../resources/text.ts';
import { operation } from '../../../http/operation.ts';
import { sampleEvent, samplePayloadText } from '../../shared/sample-event.ts';
import { labelTexts, sentLabels, sentMetadata } from '../shared/sent-labels.ts';
import { subscriptionFields } from './subscription-fields.ts';

const { filterExpression, labelFilters, labelFilterMode } = subscriptionFields;

const unmetLabel = z.object({
  label: z.string().describe('Key of the label.'),
  expected: z.union([z.string(), z.array(z.string())]).describe('Value that the filter expects, or several of which one is enough.'),
  actual: z.string().nullable().describe('Value of the label of the event; null: the event does not have the label.'),
});

/** Evaluates the filters of a subscription on an event, within the bounds of an event that is sent. */
export const testSubscription = operation({
  method: 'POST',
  path: '/webhook-subscriptions/test',
  operationId: 'testWebhookSubscription',
  summary: 'Try the filters of a subscription on a sample event',
  description: 'Nothing is stored or sent. An expression that does not compile is 400.',
  scope: 'read',
  body: z.strictObject({
    filterExpression: filterExpression.nullable().optional(),
    labelFilters: labelFilters.optional(),
    labelFilterMode: labelFilterMode.optional(),
    eventType: text(1, 100).default('posthorn.test').describe('Name of the event type. It does not have to exist.'),
    payload: sampleEvent.payload,
    labels: sentLabels.optional(),
    metadata: sentMetadata.optional().describe('Metadata of the event.'),
  }),
  freeField: 'payload',
  requestExample: { filterExpression: 'event.data.total > 100.0', eventType: 'order.paid', payload: { id: 'o-17', total: 12.5 } },
  answer: {
    status: 200,
    description: 'Whether an endpoint with the subscription would get the event.',
    schema: z.object({
      success: z.literal(true).describe('The filters were tried.'),
      matches: z.boolean().describe('Whether the event meets them.'),
      error: z.string().nullable().describe('Error of the expression; null: there was none, or the label filters decided first.'),
      labels: z.array(unmetLabel).describe('Label filters that are not met: the first one with the mode `all`, all of them with `any`.'),
    }),
    example: { success: true, matches: false, error: null, labels: [] },
  },
  handle: async (call) => {
    const { eventType: type, metadata = {}, ...sent } = call.body;
    const criteria = {
      filterExpression: sent.filterExpression ?? null,
      labelFilters: sent.labelFilters ?? {},
      labelFilterMode: sent.labelFilterMode ?? 'all',
    };
    await call.turn.rest();
    if (criteria.filterExpression !== null) compileCelFilter(criteria.filterExpression);
    const labels = labelTexts(sent.labels);
    const data = await call.turn.run(readLargePayload(await samplePayloadText(call)), call.signal);
    const matcher = new SubscriptionMatcher().of({ type, data, labels, metadata }, call.turn, call.signal);
    await matcher.before(criteria);
    const { isMatch, error } = matcher.match(criteria);
    return { success: true, matches: isMatch, error, labels: unmetLabels(criteria.labelFilters, criteria.labelFilterMode, labels) };
  },
});
