import { expect, test } from '@jest/globals';
import { conditionOf, eachWithWebhookControllers, signingSecret, type WebhookControllers } from '../../test/support/webhook-controllers.ts';
import type { RedisRegistryPublisher } from '../data/registry/registry-publisher.ts';
import type { Kind } from '../resources/kinds.ts';

/** Most of it needs nothing of webhooks but the organization. */
let world: WebhookControllers;
let registry: RedisRegistryPublisher;

eachWithWebhookControllers((made) => {
  ({ world, registry } = made);
});

const recordKinds = { Source: 'source', Destination: 'destination', NotificationChannel: 'notificationChannel', Route: 'route' } as const;
const signed = { signingSecretRef: { name: 'signing', key: 'secret' } };
const url = 'https://shop.example';
const connection = { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] };

test.each<[kind: keyof typeof recordKinds, missing: [kind: Kind, name: string], spec: object]>([
  ['Source', ['Secret', 'signing'], { provider: 'standard-webhooks', ...signed }],
  ['Destination', ['Secret', 'signing'], { http: { url, ...signed } }],
  ['NotificationChannel', ['Secret', 'signing'], { type: 'webhook', webhook: { url, ...signed } }],
  ['Route', ['Source', 'orders'], connection],
  ['Route', ['Filter', 'paid'], { ...connection, filterRef: { name: 'paid' } }],
  ['Route', ['Transform', 'short'], { ...connection, transformRef: { name: 'short' } }],
  ['Route', ['PayloadSchema', 'order'], { ...connection, schemaRef: { name: 'order' } }],
])('a %s without its %j is disabled when its spec is, and all else that is in force stays', async (kind, [missing, name], spec) => {
  await world.apply('Filter', 'paid', { conditions: [{ field: 'payload.paid', operator: 'exists' }] });
  await world.apply('Transform', 'short', { code: 'payload.id' });
  await world.apply('PayloadSchema', 'order', { jsonSchema: { type: 'object' } });
  await world.apply('Source', 'orders', {});
  await world.apply('Destination', 'shop', { http: { url } });
  await world.apply(kind, 'subject', spec);
  const id = (await world.seen(kind, 'subject')).status?.id ?? '';
  const inForce = await registry.get(recordKinds[kind], id);
  expect(inForce).toMatchObject({ enabled: true, generation: 1 });
  await world.store.delete(missing, { namespace: 'acme', name });
  const reason = `${missing}NotFound`;
  await world.seen(kind, 'subject', reason);
  expect(await registry.get(recordKinds[kind], id)).toEqual(inForce);
  await world.apply(kind, 'subject', { ...spec, enabled: false });
  const object = await world.seen(kind, 'subject', reason);
  expect(await registry.get(recordKinds[kind], id)).toEqual({ ...inForce, enabled: false });
  expect(conditionOf(object, 'ResolvedRefs')).toMatchObject({ status: 'False', reason });
  expect(conditionOf(object, 'Programmed')).toMatchObject({
    status: 'False',
    reason: 'EarlierInForce',
    message: 'generation 1 remains programmed, disabled',
  });
});

test('what is not accepted is disabled when its spec is, and enabled only once it is accepted', async () => {
  const spec = { http: { url, ...signed } };
  await world.apply('Destination', 'subject', spec);
  const id = (await world.seen('Destination', 'subject')).status?.id ?? '';
  await world.secret('no signing secret');
  await world.seen('Destination', 'subject', 'InvalidSigningSecret');
  for (const enabled of [false, true]) {
    await world.apply('Destination', 'subject', { ...spec, enabled });
    await world.seen('Destination', 'subject', 'InvalidSigningSecret');
    expect(await registry.get('destination', id)).toMatchObject({ enabled: false, generation: 1 });
  }
  await world.secret(signingSecret(2));
  await world.seen('Destination', 'subject');
  expect(await registry.get('destination', id)).toMatchObject({ enabled: true, generation: 3 });
});
