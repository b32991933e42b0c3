import { expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import type { RedisServer } from '../../../test/support/redis.ts';
import { conditionOf, eachWithWebhookControllers, type WebhookControllers } from '../../../test/support/webhook-controllers.ts';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import { systemClock } from '../../runtime/system-clock.ts';

let redis: RedisServer;
let prefix: string;
let world: WebhookControllers;

eachWithWebhookControllers(async (made) => {
  ({ redis, prefix, world } = made);
  await endpoint();
});

const endpoint = () =>
  world.apply('WebhookEndpoint', 'hooks', {
    applicationRef: { name: 'shop' },
    url: 'https://shop.example/hooks',
    signingSecretRef: { name: 'signing', key: 'secret' },
  });
const apply = (spec: object = {}, name = 'paid', annotations: Record<string, string> = {}) =>
  world.apply('WebhookSubscription', name, { endpointRef: { name: 'hooks' }, eventTypeRef: { name: 'order.paid' }, ...spec }, annotations);
const seen = (reason?: string, name = 'paid') => world.seen('WebhookSubscription', name, reason);
async function ready(): Promise<string> {
  return (await seen()).status?.id ?? '';
}
const stored = (id: string) => world.webhooks.subscription(world.org, id);

/** Waits of 3.5 s and more never end, such as that for a retry after a conflict. */
const impatientClock: Clock = {
  ...systemClock,
  after: (ms, callback) => (ms < 3500 ? systemClock.after(ms, callback) : () => {}),
  sleep: (ms, signal) => systemClock.sleep(ms < 3500 ? ms : Number.MAX_SAFE_INTEGER, signal),
};

test('a subscription is in the webhook store as it is declared, with the ids of what it refers to', async () => {
  await world.apply('Transform', 'short', { code: 'payload.id' });
  await apply({
    filterExpression: 'event.data.total > 10.0',
    labelFilters: [
      { key: 'country', values: ['at', 'de'] },
      { key: 'tier', values: ['gold'] },
    ],
    labelFilterMode: 'any',
    transformRef: { name: 'short' },
  });
  const id = await ready();
  expect(id).toMatch(/^sub_/);
  expect(await stored(id)).toMatchObject({
    applicationId: await world.idOf('WebhookApplication', 'shop'),
    endpointId: await world.idOf('WebhookEndpoint', 'hooks'),
    eventTypeId: await world.idOf('WebhookEventType', 'order.paid'),
    filterExpression: 'event.data.total > 10.0',
    labelFilters: { country: ['at', 'de'], tier: 'gold' },
    labelFilterMode: 'any',
    transformId: await world.idOf('Transform', 'short'),
    isEnabled: true,
    managedBy: 'acme/paid',
  });
  await apply({ enabled: false });
  await ready();
  expect(await stored(id)).toMatchObject({
    filterExpression: null,
    labelFilters: {},
    labelFilterMode: 'all',
    transformId: null,
    isEnabled: false,
  });
});

test('a filter expression that does not compile is not accepted, and what was in force before stays', async () => {
  await apply({ filterExpression: 'true' });
  const id = await ready();
  await apply({ filterExpression: 'event.' });
  const object = await seen('InvalidFilterExpression');
  expect(conditionOf(object, 'Accepted')?.message).toMatch(/^filterExpression: .*column/);
  expect(conditionOf(object, 'Programmed')).toMatchObject({ reason: 'EarlierInForce' });
  expect((await stored(id))?.filterExpression).toBe('true');
});

test('a subscription without its transform keeps what was in force before', async () => {
  await apply({ filterExpression: 'true' });
  const id = await ready();
  await apply({ filterExpression: 'false', transformRef: { name: 'short' } });
  await seen('TransformNotFound');
  expect((await stored(id))?.filterExpression).toBe('true');
  await world.apply('Transform', 'short', { code: 'payload.id' });
  await ready();
  expect((await stored(id))?.filterExpression).toBe('false');
});

test('a subscription without its transform is disabled when its spec is, and all else that was in force stays', async () => {
  await apply({ filterExpression: 'true' });
  const id = await ready();
  await apply({ filterExpression: 'false', transformRef: { name: 'short' }, enabled: false });
  await seen('TransformNotFound');
  expect(await stored(id)).toMatchObject({ filterExpression: 'true', isEnabled: false });
});

test('a second one of an endpoint to an event type is not accepted until the first is gone', async () => {
  await apply();
  await ready();
  await apply({}, 'second');
  const object = await seen('DuplicateSubscription', 'second');
  expect(conditionOf(object, 'Accepted')?.message).toContain('acme/paid');
  await world.delete('WebhookSubscription', 'paid');
  await seen('Ready', 'second');
});

test('a subscription that the API made before is named', async () => {
  await world.seen('WebhookEndpoint', 'hooks');
  await world.seen('WebhookEventType', 'order.paid');
  const made = await world.webhooks.createSubscription({
    org: world.org,
    endpointId: await world.idOf('WebhookEndpoint', 'hooks'),
    eventTypeId: await world.idOf('WebhookEventType', 'order.paid'),
  });
  await apply();
  expect(conditionOf(await seen('DuplicateSubscription'), 'Accepted')?.message).toContain(made.id);
});

test('a subscription ends with its endpoint and comes back with it', async () => {
  await apply();
  const id = await ready();
  await world.delete('WebhookEndpoint', 'hooks');
  await eventually(async () =>
    expect(conditionOf(await seen('EndpointNotFound'), 'Programmed')).toMatchObject({ reason: 'NothingInForce' }),
  );
  await eventually(async () => expect(await stored(id)).toBeNull());
  await endpoint();
  await ready();
  expect((await stored(id))?.endpointId).toBe(await world.idOf('WebhookEndpoint', 'hooks'));
});

test('a subscription ends with the application of its endpoint, reports it, and comes back with it', async () => {
  await world.stop();
  world.start({ clock: impatientClock });
  await apply();
  const id = await ready();
  await world.delete('WebhookApplication', 'shop');
  await seen('EndpointNotProgrammed');
  await eventually(async () => expect(await stored(id)).toBeNull());
  await world.apply('WebhookApplication', 'shop', {});
  await ready();
  expect((await stored(id))?.applicationId).toBe(await world.idOf('WebhookApplication', 'shop'));
});

test('an application that was recreated while nobody led takes it over with its endpoint', async () => {
  await apply();
  const id = await ready();
  await world.stop();
  await world.delete('WebhookApplication', 'shop');
  await world.apply('WebhookApplication', 'shop', {});
  world.start();
  const application = await world.idOf('WebhookApplication', 'shop');
  await eventually(async () => expect((await stored(id))?.applicationId).toBe(application));
});

test('a subscription ends with its event type, as those that the API made do, and comes back with another of that name', async () => {
  await world.apply('WebhookEventType', 'order.sent', { name: 'order.sent' });
  await world.seen('WebhookEventType', 'order.sent');
  await world.seen('WebhookEndpoint', 'hooks');
  const made = await world.webhooks.createSubscription({
    org: world.org,
    endpointId: await world.idOf('WebhookEndpoint', 'hooks'),
    eventTypeId: await world.idOf('WebhookEventType', 'order.sent'),
  });
  await apply();
  const id = await ready();
  await world.delete('WebhookEventType', 'order.paid');
  await world.delete('WebhookEventType', 'order.sent');
  await seen('EventTypeNotFound');
  await eventually(async () => expect(await stored(id)).toBeNull());
  await eventually(async () => expect(await stored(made.id)).toBeNull());
  await world.apply('WebhookEventType', 'order.paid', { name: 'order.paid' });
  await ready();
  expect((await stored(id))?.eventTypeId).toBe(await world.idOf('WebhookEventType', 'order.paid'));
});

test('an event type that was deleted while nobody led takes its subscriptions along', async () => {
  await apply();
  const id = await ready();
  await world.stop();
  await world.delete('WebhookEventType', 'order.paid');
  world.start();
  await eventually(async () => expect(await stored(id)).toBeNull());
});

test('a deleted subscription is gone, also when no process led', async () => {
  await apply();
  const id = await ready();
  await world.delete('WebhookSubscription', 'paid');
  await eventually(async () => expect(await stored(id)).toBeNull());
  await apply();
  const second = await ready();
  await world.stop();
  await world.delete('WebhookSubscription', 'paid');
  world.start();
  await eventually(async () => expect(await stored(second)).toBeNull());
});

/** Controllers without periodic checks, whose first creation of an endpoint gets no reply; before it comes `meanwhile`. */
function startWithoutAnswer(meanwhile: () => Promise<unknown>): void {
  const webhooks = (epoch: number): RedisWebhookStore => {
    const store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger, epoch });
    let isFirst = true;
    const createEndpoint: RedisWebhookStore['createEndpoint'] = async (endpoint) => {
      if (!isFirst) return RedisWebhookStore.prototype.createEndpoint.call(store, endpoint);
      isFirst = false;
      await meanwhile();
      await RedisWebhookStore.prototype.createEndpoint.call(store, endpoint);
      throw new PosthornError('UNAVAILABLE', 'the answer did not come back');
    };
    return Object.assign(store, { createEndpoint });
  };
  world.start({ clock: impatientClock, webhooks });
}

test('a subscription whose endpoint came into force without an answer that confirms it comes into force with it', async () => {
  await world.stop();
  await world.delete('WebhookEndpoint', 'hooks');
  await endpoint();
  await apply();
  startWithoutAnswer(() => seen('EndpointNotProgrammed'));
  await ready();
});

test('a subscription whose endpoint moved to a recreated application without an answer that confirms it goes with it', async () => {
  await apply();
  const id = await ready();
  await world.stop();
  await world.delete('WebhookApplication', 'shop');
  await world.apply('WebhookApplication', 'shop', {});
  startWithoutAnswer(async () => {
    await apply({ enabled: false });
    await seen('EndpointNotProgrammed');
  });
  const application = await world.idOf('WebhookApplication', 'shop');
  await eventually(async () => expect((await stored(id))?.applicationId).toBe(application));
});

test('everything applied at once is in force at once, in whatever order', async () => {
  await world.stop();
  world.start({ clock: impatientClock });
  await Promise.all(
    ['WebhookSubscription', 'WebhookEndpoint', 'WebhookApplication'].map(async (kind) => {
      for (let i = 0; i < 20; i++) {
        if (kind === 'WebhookSubscription') await apply({ endpointRef: { name: `e${i}` } }, `s${i}`);
        else if (kind === 'WebhookApplication') await world.apply('WebhookApplication', `a${i}`, {});
        else
          await world.apply('WebhookEndpoint', `e${i}`, {
            applicationRef: { name: `a${i}` },
            url: 'https://shop.example/hooks',
            signingSecretRef: { name: 'signing', key: 'secret' },
          });
      }
    }),
  );
  for (let i = 0; i < 20; i++) await seen('Ready', `s${i}`);
});
