import { expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { eachWithWebhookControllers, type WebhookControllers } from '../../../test/support/webhook-controllers.ts';
import type { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import type { SpecInputOf } from '../../resources/kinds.ts';

let world: WebhookControllers;
let registry: RedisRegistryPublisher;
const http = { url: 'https://shop.example' };
const route = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'a' }] };
const failover = { destinationRefs: [{ name: 'b' }] };

eachWithWebhookControllers(async (made) => {
  ({ world, registry } = made);
  await world.apply('Source', 'orders', {});
  for (const name of ['a', 'b']) await world.apply('Destination', name, { http });
});

const apply = (spec: SpecInputOf<'Route'>) => world.apply('Route', 'subject', spec);
async function accepted(expected: { status: string; reason: string; message?: unknown }): Promise<void> {
  await eventually(async () => {
    const { metadata, status } = await world.store.get('Route', { namespace: 'acme', name: 'subject' });
    expect(status?.observedGeneration).toBe(metadata.generation);
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Accepted', ...expected }));
  });
}

test.each(['a', 'b'])('a route with failover is refused while its destination %s is ordered, and what was in force stays', async (name) => {
  await apply({ ...route, failover });
  await accepted({ status: 'True', reason: 'Accepted' });
  const id = await world.idOf('Route', 'subject');
  const before = await registry.get('route', id);
  await world.apply('Destination', name, { http, ordered: true });
  const message = `Destination ${name} is ordered: a route with it has no spec.failover.destinationRefs`;
  await accepted({ status: 'False', reason: 'OrderedDestination', message });
  expect(await registry.get('route', id)).toEqual(before);
  await world.apply('Destination', name, { http });
  await accepted({ status: 'True', reason: 'Accepted' });
});

test('a route without failover takes an ordered destination, whose record has the setting', async () => {
  await world.apply('Destination', 'a', { http, ordered: true });
  await apply(route);
  await accepted({ status: 'True', reason: 'Accepted' });
  const id = await world.idOf('Destination', 'a');
  await eventually(async () => expect(await registry.get('destination', id)).toMatchObject({ ordered: true }));
});
