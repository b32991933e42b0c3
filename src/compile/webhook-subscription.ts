import { compileCelFilter } from '../core/cel-filter.ts';
import { isPosthornError } from '../core/errors.ts';
import { resourceId } from '../core/ids.ts';
import type { LabelFilterMode } from '../core/label-filters.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { webhookSubscription as definition } from '../resources/webhook-subscription.ts';
import { type Compiled, type Refusal, refuse } from './compiled.ts';
import { managedBy } from './managed-by.ts';
import type { OrganizationFacts } from './organization.ts';

/** A subscription as the webhook store keeps it. */
export interface ManagedSubscription {
  id: string;
  org: string;
  endpointId: string;
  eventTypeId: string;
  filterExpression: string | null;
  labelFilters: Record<string, string | string[]>;
  labelFilterMode: LabelFilterMode;
  transformId: string | null;
  isEnabled: boolean;
  managedBy: string;
}

export interface WebhookSubscriptionInputs {
  organization: OrganizationFacts;
  endpointId: string;
  eventTypeId: string;
  transformId: string | null;
}

/** Refuses filter expressions that do not compile. */
export function compileWebhookSubscription(
  { metadata, spec }: PosthornObject<'WebhookSubscription'>,
  { organization, endpointId, eventTypeId, transformId }: WebhookSubscriptionInputs,
): Compiled<ManagedSubscription> {
  const refusal = filterRefusal(spec.filterExpression);
  if (refusal !== null) return { refusal };
  return {
    record: {
      id: resourceId(definition.idPrefix, metadata),
      org: organization.id,
      endpointId,
      eventTypeId,
      filterExpression: spec.filterExpression ?? null,
      labelFilters: Object.fromEntries(
        (spec.labelFilters ?? []).map(({ key, values: [first = '', ...rest] }) => [key, rest.length === 0 ? first : [first, ...rest]]),
      ),
      labelFilterMode: spec.labelFilterMode,
      transformId,
      isEnabled: spec.enabled,
      managedBy: managedBy(metadata),
    },
  };
}

function filterRefusal(expression: string | undefined): Refusal | null {
  if (expression === undefined) return null;
  try {
    compileCelFilter(expression);
    return null;
  } catch (error) {
    if (isPosthornError(error, 'VALIDATION_FAILED')) return refuse('InvalidFilterExpression', `filterExpression: ${error.message}`).refusal;
    throw error;
  }
}
