import { isPosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { WebhookStore } from '../data/webhooks/webhooks.ts';
import { kinds } from '../resources/kinds.ts';
import type { ObjectMeta } from '../resources/metadata.ts';
import { type ControllerCaches, indexes } from './controller-caches.ts';
import type { FencedPublisher } from './fenced-publisher.ts';
import { idOf, organizationOf } from './references.ts';

export interface WebhookSweepOptions {
  caches: ControllerCaches;
  publisher: Pick<FencedPublisher, 'ids' | 'write'>;
  webhooks: WebhookStore;
  logger: Logger;
}

/** Removes from the webhook store what custom resources declared that are gone. */
export async function sweepWebhooks({ caches, publisher, webhooks, logger }: WebhookSweepOptions, signal: AbortSignal): Promise<void> {
  const declared = [{ cache: caches.WebhookApplication, remove: webhooks.deleteApplication.bind(webhooks) }];
  const isOf = (org: string, { namespace = '' }: ObjectMeta): boolean => {
    const organization = organizationOf(caches.Organization, namespace);
    return organization !== undefined && idOf('Organization', organization) === org;
  };
  let removed = 0;
  for (const org of await publisher.ids('organization')) {
    for (const id of await publisher.write(() => webhooks.customResourceIds(org))) {
      signal.throwIfAborted();
      const kind = declared.find(({ cache }) => id.startsWith(kinds[cache.kind].idPrefix));
      // Looked up one by one, as objects come while this runs.
      if (kind === undefined || kind.cache.byIndex(indexes.id, id).some(({ metadata }) => isOf(org, metadata))) continue;
      try {
        await publisher.write(() => kind.remove(org, id));
        removed++;
      } catch (error) {
        // Gone with what it was below.
        if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
      }
    }
  }
  if (removed > 0) logger.info({ records: removed }, 'webhook records whose objects are gone were removed');
}
