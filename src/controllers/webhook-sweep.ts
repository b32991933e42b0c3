import { isPosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { kinds } from '../resources/kinds.ts';
import { allObjects } from '../store/all-objects.ts';
import type { ResourceStore } from '../store/store.ts';
import { type ControllerCaches, indexes } from './controller-caches.ts';
import type { FencedPublisher } from './fenced-publisher.ts';
import { idOf, isLive, isOf } from './held-ids.ts';

type WebhookKind = 'WebhookApplication' | 'WebhookEndpoint' | 'WebhookSubscription';

export interface WebhookSweepOptions {
  caches: Pick<ControllerCaches, WebhookKind | 'WebhookEventType' | 'Organization' | 'owners' | 'retained'>;
  publisher: Pick<FencedPublisher, 'ids' | 'write'>;
  webhooks: RedisWebhookStore;
  store: Pick<ResourceStore, 'list'>;
  logger: Logger;
}

/** Removes from the webhook store what custom resources declared that are gone. */
export async function sweepWebhooks({ caches, publisher, webhooks, logger }: WebhookSweepOptions, signal: AbortSignal): Promise<void> {
  const declared = [
    { cache: caches.WebhookApplication, remove: webhooks.deleteApplication.bind(webhooks) },
    { cache: caches.WebhookEndpoint, remove: webhooks.deleteEndpoint.bind(webhooks) },
    { cache: caches.WebhookSubscription, remove: webhooks.deleteSubscription.bind(webhooks) },
  ];
  let removed = 0;
  for (const org of await publisher.ids('organization')) {
    for (const id of await publisher.write(() => webhooks.customResourceIds(org))) {
      signal.throwIfAborted();
      const kind = declared.find(({ cache }) => id.startsWith(kinds[cache.kind].idPrefix));
      // Read one by one, as objects come while this runs.
      if (kind === undefined || kind.cache.byIndex(indexes.id, id).some((object) => isOf(caches, object, org))) continue;
      try {
        await publisher.write(() => kind.remove(org, id));
        removed++;
      } catch (error) {
        // Gone with what it was below.
        if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
      }
    }
  }
  if (removed > 0) logger.info({ records: removed }, 'webhook records of deleted objects were removed');
}

/**
 * Deletes the subscriptions of event types that are gone: those that were made while theirs was being deleted, or that were left because it
 * was deleted before it was published and without a leader.
 */
export async function sweepEventTypes(
  { caches, publisher, webhooks, store, logger }: WebhookSweepOptions,
  signal: AbortSignal,
): Promise<void> {
  for (const org of await publisher.ids('organization')) {
    signal.throwIfAborted();
    const namespace = caches.Organization.byIndex(indexes.id, org).find(isLive)?.spec.namespace;
    if (namespace === undefined) continue;
    const isCached = (id: string): boolean =>
      caches.WebhookEventType.byIndex(indexes.id, id).some(({ metadata }) => metadata.namespace === namespace);
    const unknown = (await publisher.write(() => webhooks.eventTypeIds(org))).filter((id) => !isCached(id));
    if (unknown.length === 0) continue;
    // A subscribe has read the event type in the store, which the cache may follow late.
    const stored = await storedEventTypeIds(store, namespace);
    for (const id of unknown.filter((each) => !stored.has(each))) {
      signal.throwIfAborted();
      await publisher.write(() => webhooks.deleteEventType(org, id));
      logger.info({ organization: org, eventType: id }, 'subscriptions of a deleted event type were deleted');
    }
  }
}

async function storedEventTypeIds(store: Pick<ResourceStore, 'list'>, namespace: string): Promise<Set<string>> {
  const ids = new Set<string>();
  for await (const object of allObjects(store, 'WebhookEventType', namespace))
    if (isLive(object)) ids.add(idOf('WebhookEventType', object));
  return ids;
}
