import type { Outcome } from '../../../src/data/queue/delivery-queue.ts';
import { RedisDeliveryQueue } from '../../../src/data/queue/redis-delivery-queue.ts';
import { RedisWebhookStore } from '../../../src/data/webhooks/redis-webhook-store.ts';
import type { WebhookEndpoint } from '../../../src/data/webhooks/webhooks.ts';
import { systemClock } from '../../../src/runtime/system-clock.ts';
import { silentLogger } from '../../support/logger.ts';
import { failure, settleAll, takeFrom } from '../../support/queue-worker.ts';
import { newWebhookEvent } from '../../support/webhook-messages.ts';
import { newWebhookEndpoint } from '../../support/webhooks.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

/** Messages to webhook endpoints of the organization `acme`, which a test takes and ends by hand. */
export interface MessagesWorld {
  readonly facade: FacadeWorld;
  readonly store: RedisWebhookStore;
  readonly org: string;
  readonly queue: RedisDeliveryQueue;
  /** Makes an endpoint, of an application of its own unless one is given. */
  endpoint(applicationId?: string): Promise<WebhookEndpoint>;
  /** Sends an event to the endpoints; returns the ids of its messages. */
  send(endpoints: readonly WebhookEndpoint[], more?: Parameters<typeof newWebhookEvent>[2]): Promise<string[]>;
  /** Removes what has ended; dead letters stay that are no older than so many ms. */
  prune(deadLettersMs: number): Promise<void>;
  /** Takes all that is queued and ends it so; returns the ids. */
  end(outcome: Outcome): Promise<string[]>;
  /** Removes all messages. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

const prefix = 'test:';

export async function startMessagesWorld(): Promise<MessagesWorld> {
  const facade = await startFacadeWorld();
  const { redis } = facade;
  const org = (await facade.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  const types = new Set<string>();
  let made = 0;
  return {
    facade,
    store,
    org,
    queue,
    endpoint: async (applicationId) => {
      const owner = applicationId ?? (await store.createApplication({ org, name: `Customer ${++made}`, shard: 0 })).id;
      return store.createEndpoint(newWebhookEndpoint(owner, { org, url: `https://c${++made}.example/hooks` }));
    },
    send: async (endpoints, more) => {
      const event = newWebhookEvent(org, endpoints, more);
      // No resource has made the event type: it is one that was deleted since.
      if (!types.has(event.sourceSlug)) await store.deleteEventType(org, event.sourceId, event.sourceSlug);
      types.add(event.sourceSlug);
      await facade.acceptor.accept(event);
      return event.targets.map(({ messageId }) => messageId);
    },
    prune: async (deadLettersMs) => {
      while ((await queue.prune({ finishedMs: -1, deadLettersMs })).hasMore);
    },
    end: async (outcome) => {
      const ended: string[] = [];
      for (;;) {
        const jobs = await takeFrom(queue, 'w1', 64);
        await settleAll(queue, 'w1', jobs, outcome);
        ended.push(...jobs.map(({ messageId }) => messageId));
        if (jobs.length === 0) return ended;
      }
    },
    clear: async () => {
      const keys = await redis.client.keys('test:{s0}:*');
      if (keys.length > 0) await redis.client.del(keys);
      await queue.refreshShard('w1', 1000);
    },
    stop: () => facade.stop(),
  };
}

/** Fails, to be tried again in an hour. */
export const later: Outcome = { type: 'retry', attempt: failure, delayMs: 3_600_000 };

/** Fails, to be tried again at the next `promote`. */
export const soon: Outcome = { ...later, delayMs: 0 };

/** Ends without an attempt. */
export function dropped(status: 'filtered' | 'transform_failed'): Outcome {
  return { type: 'unsent', status, reason: 'why', tookMs: 1 };
}

export function idsOf(messages: { id: string }[]): string[] {
  return messages.map(({ id }) => id);
}
