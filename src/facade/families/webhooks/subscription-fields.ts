import { z } from 'zod';
import { celLimits } from '../../../core/cel-filter.ts';

const mostLabels = 20;
const mostValues = 100;

const labelValue = z.string().min(1).max(256);

/** Fields of a subscription that can be set. */
export const subscriptionFields = {
  filterExpression: z
    .string()
    .min(1)
    .max(celLimits.sourceLength)
    .describe('CEL over event.type, event.data, labels and metadata; an event for which it is not true is not sent.'),
  labelFilters: z
    .record(z.string().min(1).max(128), z.union([labelValue, z.array(labelValue).min(1).max(mostValues)]))
    .refine((filters) => Object.keys(filters).length <= mostLabels, { error: `must have at most ${mostLabels} labels` })
    .meta({ maxProperties: mostLabels })
    .describe('The label that an event must have, or the list of those of which it must have one.'),
  labelFilterMode: z.enum(['all', 'any']).describe('Whether an event must meet all label filters, the default, or any.'),
  transformId: z.string().min(1).max(128).describe('Id or slug of the transform that makes what is sent.'),
  isEnabled: z.boolean(),
};

const settings = {
  filterExpression: subscriptionFields.filterExpression.nullable().optional(),
  labelFilters: subscriptionFields.labelFilters.optional(),
  labelFilterMode: subscriptionFields.labelFilterMode.optional(),
  transformId: subscriptionFields.transformId.nullable().optional(),
  isEnabled: subscriptionFields.isEnabled.optional(),
};

const id = z.string().min(1).max(128);

export const newSubscriptionBody = z.strictObject({ endpointId: id, eventTypeId: id.describe('Id or name.'), ...settings });

export const subscriptionChangeBody = z.strictObject({
  endpointId: id.optional().describe('Cannot be changed.'),
  eventTypeId: id.optional().describe('Cannot be changed.'),
  ...settings,
});

export const bulkSubscriptionBody = z.strictObject({
  endpointId: id,
  eventTypeIds: z.array(id).min(1).max(100).describe('Ids or names.'),
  labelFilters: settings.labelFilters.describe('Applied to all.'),
  labelFilterMode: settings.labelFilterMode.describe('Applied to all.'),
});
