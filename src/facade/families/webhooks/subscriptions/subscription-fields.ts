import { z } from 'zod';
import { celLimits } from '../../../../core/cel-filter.ts';
import { text } from '../../../../resources/text.ts';
import { labelFilterLimits, webhookSubscription } from '../../../../resources/webhook-subscription.ts';
import { settingNotHad } from '../../../http/setting-not-had.ts';
import { shownField, specField } from '../../../records/spec-field.ts';

const spec = webhookSubscription.spec.shape;
const { labels, keyLength, values, valueLength } = labelFilterLimits;
const labelValue = text(1, valueLength);

/** Fields of a subscription that can be set. */
export const subscriptionFields = {
  filterExpression: text(1, celLimits.sourceLength).describe(
    'CEL over event.type, event.data, labels and metadata; an event for which it is not true is not sent.',
  ),
  labelFilters: z
    .record(text(1, keyLength), z.union([labelValue, z.array(labelValue).min(1).max(values)]))
    .refine((filters) => Object.keys(filters).length <= labels, { error: `must have at most ${labels} labels` })
    .meta({ maxProperties: labels })
    .describe('The label that an event must have, or the list of those of which it must have one.'),
  labelFilterMode: shownField(spec.labelFilterMode),
  transformId: text(1, 128).describe('Id or slug of the transform that creates the sent payload.'),
  isEnabled: shownField(spec.enabled),
};

const settings = {
  filterExpression: subscriptionFields.filterExpression.nullable().optional(),
  labelFilters: subscriptionFields.labelFilters.optional(),
  labelFilterMode: specField(spec.labelFilterMode),
  transformId: subscriptionFields.transformId.nullable().optional(),
  isEnabled: specField(spec.enabled),
  priorityOverride: settingNotHad(z.null(), 'Nothing but null: events have no priorities.'),
};

const id = text(1, 128);
const endpointId = id.describe('Id of the endpoint.');

export const newSubscriptionBody = z.strictObject({ endpointId, eventTypeId: id.describe('Id or name of the event type.'), ...settings });

export const subscriptionChangeBody = z.strictObject({
  endpointId: id.optional().describe('Cannot be changed.'),
  eventTypeId: id.optional().describe('Cannot be changed.'),
  ...settings,
});

export const bulkSubscriptionBody = z.strictObject({
  endpointId,
  eventTypeIds: z.array(id).min(1).max(100).describe('Ids or names.'),
  labelFilters: settings.labelFilters.describe('Applied to all.'),
  labelFilterMode: settings.labelFilterMode.meta({ description: 'Applied to all.', default: spec.labelFilterMode.parse(undefined) }),
});
