import type { Refusal } from '../../compile/compiled.ts';
import type { ManagedSubscription } from '../../compile/webhook-subscription.ts';
import type { WebhookSubscription } from '../../data/webhooks/webhooks.ts';
import type { RecordSink } from '../record-sink.ts';
import { type WebhookSinkOptions, webhookRecordSink } from '../webhook-record-sink.ts';

/** The refusal of a subscription to what `other` is one to. */
export function duplicateSubscription({ id, managedBy }: Pick<WebhookSubscription, 'id' | 'managedBy'>): Refusal {
  const whose = managedBy === null ? `${id}, created through the API,` : `of the WebhookSubscription ${managedBy}`;
  return { reason: 'DuplicateSubscription', message: `the subscription ${whose} has the same endpoint and event type` };
}

export function webhookSubscriptionSink(options: WebhookSinkOptions): RecordSink<ManagedSubscription, WebhookSubscription> {
  const { webhooks } = options;
  return webhookRecordSink(
    {
      get: (org, id) => webhooks.subscription(org, id),
      create: (record) => webhooks.createSubscription(record),
      update: async (stored, record) => {
        const { id, org, endpointId, eventTypeId, ...change } = record;
        if (stored.endpointId === endpointId && stored.eventTypeId === eventTypeId)
          return await webhooks.updateSubscription(org, id, change);
        // Its event type was recreated.
        await webhooks.deleteSubscription(org, id);
        return await webhooks.createSubscription(record);
      },
      delete: (org, id) => webhooks.deleteSubscription(org, id),
      disable: async ({ org, id, isEnabled }) => {
        if (isEnabled) await webhooks.updateSubscription(org, id, { isEnabled: false });
      },
      obstacleTo: async ({ org, id, endpointId, eventTypeId }, error) => {
        if (error.code === 'RESOURCE_NOT_FOUND')
          return (await webhooks.endpoint(org, endpointId)) === null
            ? { unresolved: { reason: 'EndpointNotProgrammed', message: 'the endpoint of spec.endpointRef is not programmed' } }
            : { unresolved: { reason: 'EventTypeNotProgrammed', message: 'the event type of spec.eventTypeRef is not programmed yet' } };
        const [other] = (await webhooks.subscriptions(org, { endpointId, eventTypeId }, { limit: 1 })).items;
        if (other === undefined || other.id === id) return null;
        return { refusal: duplicateSubscription(other) };
      },
    },
    options,
  );
}
