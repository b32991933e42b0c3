import { z } from 'zod';
import type { WebhookSubscription } from '../../../../data/webhooks/webhooks.ts';
import type { Call } from '../../../http/operation.ts';
import { isoTime, organizationId, recordTimes } from '../../../records/record-fields.ts';
import { subscriptionFields } from './subscription-fields.ts';

export const subscriptionRecord = z
  .object({
    id: z.string().describe('Made by Posthorn; stays the same.'),
    organizationId,
    endpointId: z.string().describe('Id of the endpoint.'),
    eventTypeId: z.string().describe('Id of the event type.'),
    filterExpression: z.string().nullable().describe('Which events are sent, in CEL; null: all.'),
    labelFilters: z.record(z.string(), z.union([z.string(), z.array(z.string())])).describe('Labels that an event must have.'),
    labelFilterMode: subscriptionFields.labelFilterMode,
    transformId: z.string().nullable().describe('Id of the transform; null without one.'),
    isEnabled: subscriptionFields.isEnabled,
    lastFilterError: z.string().nullable().describe('What the last evaluation of filterExpression failed with; null: it did not.'),
    endpointUrl: z.string().nullable().describe('URL of the endpoint.'),
    eventTypeName: z.string().nullable().describe('Name of the event type.'),
    eventTypeDisplayName: z.string().nullable().describe('Name of the event type that is shown to people.'),
    applicationId: z.string().describe('Id of the application.'),
    applicationName: z.string().nullable().describe('Name of the application.'),
    ...recordTimes,
  })
  .meta({ id: 'WebhookSubscription' });

export type SubscriptionRecord = z.input<typeof subscriptionRecord>;

/** The records of subscriptions, in their order, with what they refer to. */
export async function subscriptionRecords(
  subscriptions: readonly WebhookSubscription[],
  { services, caller }: Call,
): Promise<SubscriptionRecord[]> {
  const { id: org, namespace } = caller.organization;
  const [endpoints, applications] = await Promise.all([
    services.webhooks.endpointsById(
      org,
      subscriptions.map(({ endpointId }) => endpointId),
    ),
    services.webhooks.applicationsById(
      org,
      subscriptions.map(({ applicationId }) => applicationId),
    ),
  ]);
  return subscriptions.map((subscription) => {
    const { org: _, managedBy: __, revision: ___, createdAtMs, updatedAtMs, ...rest } = subscription;
    const eventType = services.caches.WebhookEventType.getById(subscription.eventTypeId, namespace);
    return {
      ...rest,
      organizationId: org,
      endpointUrl: endpoints.get(subscription.endpointId)?.url ?? null,
      eventTypeName: eventType?.spec.name ?? null,
      eventTypeDisplayName: eventType?.spec.displayName ?? null,
      applicationName: applications.get(subscription.applicationId)?.name ?? null,
      createdAt: isoTime(createdAtMs),
      updatedAt: isoTime(updatedAtMs),
    };
  });
}

export async function toSubscription(subscription: WebhookSubscription, call: Call): Promise<{ data: SubscriptionRecord }> {
  const [data] = await subscriptionRecords([subscription], call);
  if (data === undefined) throw new Error('a record was lost');
  return { data };
}
