import { randomBytes } from 'node:crypto';
import { Keyring } from '../../../src/core/sealing.ts';
import { webhookSecretSealingContext } from '../../../src/core/sealing-contexts.ts';
import type { RedisWebhookStore } from '../../../src/data/webhooks/redis-webhook-store.ts';
import type { WebhookRateLimits } from '../../../src/data/webhooks/webhooks.ts';

export const endpointsPerApplication = 10;
const subscriptionsPerEndpoint = 3;
const applicationsAtOnce = 100;
/** Ids: the endpoints of the application at `i` begin at `10 * i`. */
export interface Customers {
  applications: string[];
  endpoints: string[];
}

/** Applications of 10 endpoints each, which are subscribed as in `subscribedTypes`. */
export async function fillCustomers(
  store: RedisWebhookStore,
  {
    org,
    endpoints,
    eventTypes,
    shards,
    encryptionKey,
    url,
    rateLimits,
  }: {
    org: string;
    endpoints: number;
    eventTypes: readonly string[];
    shards: number;
    encryptionKey: Buffer;
    url: (application: number, endpoint: number) => string;
    rateLimits?: WebhookRateLimits;
  },
): Promise<Customers> {
  const keyring = new Keyring([{ id: 'k1', key: encryptionKey }]);
  const made: Customers = { applications: [], endpoints: [] };
  const count = Math.ceil(endpoints / endpointsPerApplication);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let i = next++; i < count; i = next++) {
      const name = `Customer number ${i} of the shop`;
      const application = { org, name, externalId: `customer-${eventTypes[0]}-${i}`, shard: i % shards, ...(rateLimits && { rateLimits }) };
      const { id: applicationId } = await store.createApplication(application);
      made.applications[i] = applicationId;
      for (let k = 0; k < endpointsPerApplication; k++) {
        const { id: endpointId } = await store.createEndpoint({
          org,
          applicationId,
          url: url(i, k),
          sealSecret: (id) => {
            const secret = `whsec_${randomBytes(32).toString('base64')}`;
            const sealed = keyring.seal(secret, webhookSecretSealingContext(org, id));
            return { sealed, prefix: secret.slice(0, 10), version: 1, previous: [] };
          },
        });
        made.endpoints[i * endpointsPerApplication + k] = endpointId;
        await store.createSubscriptions({ org, endpointId }, subscribedTypes(eventTypes, i * endpointsPerApplication + k));
      }
      if (i % 10_000 === 9999) console.log(`${i + 1} applications of ${count}`);
    }
  };
  await Promise.all(Array.from({ length: applicationsAtOnce }, work));
  return made;
}

/**
 * Event types of the endpoint at that index: 3 of them, 7 apart; all of them where there are fewer than 3. Endpoints that are side by side
 * begin far from each other.
 */
export function subscribedTypes(eventTypes: readonly string[], endpoint: number): string[] {
  if (eventTypes.length < subscriptionsPerEndpoint) return [...eventTypes];
  const first = (endpoint * 7919) % eventTypes.length;
  return Array.from({ length: subscriptionsPerEndpoint }, (_, n) => eventTypes[(first + n * 7) % eventTypes.length] ?? '');
}
