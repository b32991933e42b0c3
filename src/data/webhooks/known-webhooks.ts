import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import type { RegistryReader } from '../registry/registry.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { WebhookMessages } from './webhook-messages.ts';

/** Reads which event types, applications and endpoints an organization has or had. */
export type KnownWebhooks = Pick<RedisWebhookStore, 'applicationsById' | 'endpointsById' | 'deletedNames' | 'deletedEventTypeIds'> &
  Pick<WebhookMessages, 'mayHaveEvents'> &
  Pick<RedisMessageReader, 'hasHistory'> &
  Pick<RegistryReader, 'eventTypeIdByName'>;

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
  const reader = new RedisMessageReader(options);
  const eventTypes = registryKeys(options.prefix).index('event-type');
  return {
    applicationsById: (org, ids) => store.applicationsById(org, ids),
    endpointsById: (org, ids) => store.endpointsById(org, ids),
    deletedNames: (org, ids) => store.deletedNames(org, ids),
    deletedEventTypeIds: (org, name) => store.deletedEventTypeIds(org, name),
    mayHaveEvents: (org, name) => messages.mayHaveEvents(org, name),
    hasHistory: (org, id, of) => reader.hasHistory(org, id, of),
    eventTypeIdByName: (org, name) => options.redis.hget(eventTypes, `${org}/${name}`).catch(throwUnavailable),
  };
}
