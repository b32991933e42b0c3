import { newWebhookEndpoint } from '../support/webhooks.ts';
import type { FacadeWorld } from './facade-world.ts';

/** Makes a new event type of `acme`, and for each filter an endpoint of one application with a subscription to it; null: without a filter. */
export async function subscribe(world: FacadeWorld, eventType: string, filters: readonly (string | null)[]): Promise<void> {
  const org = await world.organizationId('acme');
  await world.request('POST', '/api/event-types', { body: { name: eventType } });
  const { body: types } = await world.request('GET', '/api/event-types?limit=100');
  const eventTypeId = types.data.find(({ name }: { name: string }) => name === eventType).id;
  const { id: applicationId } = await world.webhooks.createApplication({ org, name: eventType, shard: 0 });
  for (const filterExpression of filters) {
    const { id: endpointId } = await world.webhooks.createEndpoint(newWebhookEndpoint(applicationId, { org }));
    await world.webhooks.createSubscription({ org, endpointId, eventTypeId, filterExpression });
  }
}

/** A filter at the bound of what a filter may do; `i` makes each another one. */
export const costlyFilter = (i: number): string => `event.data.a.exists(x, event.data.b.contains("y${i}"))`;
