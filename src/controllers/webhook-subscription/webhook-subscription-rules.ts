import { compileWebhookSubscription, type ManagedSubscription } from '../../compile/webhook-subscription.ts';
import type { WebhookSubscription } from '../../data/webhooks/webhooks.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, referenced } from '../held-ids.ts';
import type { RecordRules } from '../resource-reconciler.ts';
import type { RouteCode } from '../route/route-code.ts';

/** A subscription ends with its endpoint and with its event type, as one that the API made does. Without its transform, what was in force stays. */
export function webhookSubscriptionRules(
  caches: Pick<ControllerCaches, 'Organization' | 'owners' | 'WebhookEndpoint' | 'WebhookEventType'>,
  code: Pick<RouteCode, 'transform'>,
): RecordRules<'WebhookSubscription', ManagedSubscription, WebhookSubscription> {
  return {
    kind: 'WebhookSubscription',
    evaluate: async (object, organization) => {
      const { endpointRef, eventTypeRef } = object.spec;
      const { namespace } = organization;
      const endpoint = referenced(caches, caches.WebhookEndpoint, { namespace, name: endpointRef.name });
      if (endpoint === undefined) return gone('EndpointNotFound', `WebhookEndpoint ${endpointRef.name}`);
      const eventType = referenced(caches, caches.WebhookEventType, { namespace, name: eventTypeRef.name });
      if (eventType === undefined) return gone('EventTypeNotFound', `WebhookEventType ${eventTypeRef.name}`);
      const transform = await code.transform(object, organization);
      if (transform.unresolved !== undefined) return { unresolved: transform.unresolved };
      return compileWebhookSubscription(object, {
        organization,
        endpointId: idOf('WebhookEndpoint', endpoint),
        eventTypeId: idOf('WebhookEventType', eventType),
        transformId: transform.id,
      });
    },
  };
}

function gone(reason: string, what: string) {
  return { isWithdrawn: true, unresolved: { reason, message: `${what} does not exist` } };
}
