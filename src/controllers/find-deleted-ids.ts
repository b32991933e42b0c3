import { behindAlertTarget } from '../core/alert.ts';
import type { FindDeletedIds } from '../data/shard/messages.ts';
import type { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { kinds } from '../resources/kinds.ts';
import { type ControllerCaches, indexes } from './controller-caches.ts';
import { isOf } from './held-ids.ts';

interface World {
  caches: ControllerCaches;
  webhooks: Pick<RedisWebhookStore, 'applicationsById' | 'endpointsById'>;
}

/** Returns which ids of counters and targets the organization no longer has. Ids of unknown kinds are not gone. */
export function findDeletedIds({ caches, webhooks }: World, org: string): FindDeletedIds {
  const cached = [caches.Source, caches.Route, caches.Destination, caches.NotificationChannel, caches.WebhookEventType];
  return async (given) => {
    const ids = [...new Set(given)];
    const withPrefix = (prefix: string): string[] => ids.filter((id) => id.startsWith(prefix));
    const [applications, endpoints] = await Promise.all([
      webhooks.applicationsById(org, withPrefix(kinds.WebhookApplication.idPrefix)),
      webhooks.endpointsById(org, withPrefix(kinds.WebhookEndpoint.idPrefix)),
    ]);
    const isGone = (id: string): boolean => {
      if (id.startsWith(kinds.WebhookApplication.idPrefix)) return !applications.has(id);
      if (id.startsWith(kinds.WebhookEndpoint.idPrefix)) return !endpoints.has(id);
      const resource = behindAlertTarget(id);
      const cache = cached.find(({ kind }) => resource.startsWith(kinds[kind].idPrefix));
      return cache !== undefined && !cache.byIndex(indexes.id, resource).some((object) => isOf(caches, object, org));
    };
    return new Set(ids.filter(isGone));
  };
}
