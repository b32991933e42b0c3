import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { WebhookMessages } from './webhook-messages.ts';

/** What tells which event types, applications and endpoints an organization has or had. */
export type KnownWebhooks = Pick<RedisWebhookStore, 'applicationsById' | 'endpointsById' | 'past' | 'pastEventTypeIds'> &
  Pick<WebhookMessages, 'mayHaveEvents' | 'mayHaveMessages'>;

interface KnownWebhooksOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  logger: Logger;
  shards: () => number;
}

/** Reads alone, of no epoch: scripts that only read cannot take one over. */
export function knownWebhooks(options: KnownWebhooksOptions): KnownWebhooks {
  const store = new RedisWebhookStore(options);
  const messages = new WebhookMessages(options);
  return {
    applicationsById: (org, ids) => store.applicationsById(org, ids),
    endpointsById: (org, ids) => store.endpointsById(org, ids),
    past: (org, ids) => store.past(org, ids),
    pastEventTypeIds: (org, name) => store.pastEventTypeIds(org, name),
    mayHaveEvents: (org, name) => messages.mayHaveEvents(org, name),
    mayHaveMessages: (org, filter) => messages.mayHaveMessages(org, filter),
  };
}
