import { describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { eachWithWebhookControllers, type WebhookControllers } from '../../test/support/webhook-controllers.ts';
import type { RedisRegistryPublisher } from '../data/registry/registry-publisher.ts';

/** Nothing of webhooks is needed but the organization. */
let world: WebhookControllers;
let registry: RedisRegistryPublisher;

const http = { url: 'https://shop.example' };
const throttle = { mode: 'rate', rateLimit: 5, rateUnit: 'second' };
const route = {
  sourceRef: { name: 'orders' },
  destinationRefs: [{ name: 'a' }],
  failover: { destinationRefs: [{ name: 'b' }, { name: 'c' }] },
};

eachWithWebhookControllers(async (made) => {
  ({ world, registry } = made);
  await plan('pro');
  await world.apply('Source', 'orders', {});
  for (const name of ['a', 'b', 'c']) await world.apply('Destination', name, { http });
});

async function plan(of: string): Promise<void> {
  await world.store.apply(
    { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', plan: of } },
    { manager: 'test', force: true },
  );
}

/** Waits until the published route has these failover destinations. */
async function hasFailover(names: readonly string[]): Promise<void> {
  const id = await world.idOf('Route', 'subject');
  await eventually(async () => {
    const record = await registry.get('route', id);
    // A status may still be on its way.
    const { items } = await world.store.list('Destination');
    const nameOf = (wanted: string): string | undefined => items.find(({ status }) => status?.id === wanted)?.metadata.name;
    expect(record?.failover.destinations.map((each) => nameOf(each.id))).toEqual(names);
  });
}

describe('a failover destination', () => {
  test.each<[how: string, stop: (name: string) => Promise<unknown>, start: (name: string) => Promise<unknown>]>([
    [
      'is disabled',
      (name) => world.apply('Destination', name, { http, enabled: false }),
      (name) => world.apply('Destination', name, { http, enabled: true }),
    ],
    [
      'is beyond the plan',
      async (name) => {
        await world.apply('Destination', name, { http, throttle });
        await plan('free');
      },
      async (name) => {
        await plan('pro');
        await world.apply('Destination', name, { http });
      },
    ],
    [
      'is brought beyond the plan by a change of its own',
      async (name) => {
        await plan('free');
        await world.apply('Destination', name, { http, throttle });
      },
      (name) => world.apply('Destination', name, { http }),
    ],
    ['is deleted', (name) => world.delete('Destination', name), (name) => world.apply('Destination', name, { http })],
  ])('a failover destination that %s leaves the list of its route, and is back when it serves again', async (_, stop, start) => {
    await world.apply('Route', 'subject', route);
    await world.seen('Route', 'subject');
    await hasFailover(['b', 'c']);
    for (const name of ['b', 'c']) {
      await stop(name);
      await hasFailover(['b', 'c'].filter((each) => each !== name));
      await start(name);
      await eventually(async () => expect((await world.store.get('Destination', { namespace: 'acme', name })).status?.id).toBeDefined());
      await hasFailover(['b', 'c']);
    }
  });
});

test('a first destination that is disabled stays in the list of its route: it holds its messages', async () => {
  await world.apply('Route', 'subject', route);
  const id = await world.idOf('Route', 'subject');
  await eventually(async () => expect((await registry.get('route', id))?.destinations).toHaveLength(1));
  await world.apply('Destination', 'a', { http, enabled: false });
  const destination = await world.idOf('Destination', 'a');
  await eventually(async () => expect(await registry.get('destination', destination)).toMatchObject({ enabled: false }));
  expect((await registry.get('route', id))?.destinations).toMatchObject([{ id: destination }]);
});
