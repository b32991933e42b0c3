import { beforeEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const suite = controllerSuite();
let webhooks: RedisWebhookStore;
let org: string;

beforeEach(async () => {
  const { redis, prefix, store } = suite;
  webhooks = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: pino({ level: 'silent' }) });
  suite.start();
  await store.apply(
    { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', deletionPolicy: 'Delete' } },
    { manager: 'test' },
  );
  org = await eventually(async () => {
    await store.get('Namespace', { name: 'acme' });
    const { status } = await store.get('Organization', { name: 'acme' });
    return status?.id ?? Promise.reject(new Error('the organization has no id yet'));
  });
});

const apply = (spec: object, name = 'shop', annotations: Record<string, string> = {}) =>
  suite.store.apply(
    { kind: 'WebhookApplication', metadata: { namespace: 'acme', name, annotations }, spec },
    { manager: 'test', force: true },
  );

/** The application once the controllers have seen what was written last. */
function seen(name = 'shop', ready?: string): Promise<ObjectOf<'WebhookApplication'>> {
  return eventually(async () => {
    const object = await suite.store.get('WebhookApplication', { namespace: 'acme', name });
    expect(object.status?.observedGeneration).toBe(object.metadata.generation);
    if (ready !== undefined) expect(condition(object, 'Ready')).toMatchObject({ reason: ready });
    return object;
  });
}
const condition = ({ status }: ObjectOf<'WebhookApplication'>, type: string) => status?.conditions?.find((each) => each.type === type);

test('an application is in the webhook store as it is declared, with what it comes from', async () => {
  await apply({ externalId: 'customer-17', metadata: { tier: 'gold' }, rateLimits: { perHour: 7 } });
  const { status } = await seen('shop', 'Ready');
  expect(status?.id).toMatch(/^app_/);
  expect(await webhooks.applicationByExternalId(org, 'customer-17')).toMatchObject({
    id: status?.id,
    name: 'shop',
    metadata: { tier: 'gold' },
    rateLimits: { perSecond: 100, perMinute: 1000, perHour: 7 },
    isDisabled: false,
    managedBy: 'acme/shop',
    revision: 1,
  });
});

test('a change is there when it is Programmed, and what is equal is not written', async () => {
  await apply({ name: 'Shop', externalId: 'one' });
  const id = (await seen('shop', 'Ready')).status?.id ?? '';
  await apply({ name: 'Shop 17', enabled: false, disabledReason: 'Unpaid.' });
  expect(condition(await seen(), 'Programmed')).toMatchObject({ status: 'True', observedGeneration: 2 });
  const changed = await webhooks.application(org, id);
  expect(changed).toMatchObject({ name: 'Shop 17', externalId: null, isDisabled: true, disabledReason: 'Unpaid.', revision: 2 });
  await suite.controllers.stop();
  suite.start();
  await apply({ enabled: true });
  await seen('shop', 'Ready');
  expect(await webhooks.application(org, id)).toMatchObject({ isDisabled: false, disabledReason: null, revision: 3 });
});

test('a deleted application is gone, with the endpoints below it', async () => {
  await apply({});
  const id = (await seen('shop', 'Ready')).status?.id ?? '';
  const endpoint = await webhooks.createEndpoint({
    org,
    applicationId: id,
    url: 'https://shop.example/',
    sealSecret: () => ({ sealed: 's', prefix: 'whsec_abcd', version: 1, previous: [] }),
  });
  await suite.store.delete('WebhookApplication', { namespace: 'acme', name: 'shop' });
  await eventually(async () => expect(await webhooks.application(org, id)).toBeNull());
  expect(await webhooks.endpoint(org, endpoint.id)).toBeNull();
});

test('metadata that is too large is not accepted, and what was in force before stays', async () => {
  await apply({ metadata: { tier: 'gold' } });
  const id = (await seen('shop', 'Ready')).status?.id ?? '';
  await apply({ metadata: { tier: 'x'.repeat(8200) } });
  const object = await seen('shop', 'MetadataTooLarge');
  expect(condition(object, 'Stalled')).toMatchObject({ status: 'True' });
  expect(condition(object, 'Programmed')).toMatchObject({ status: 'False', reason: 'EarlierInForce' });
  expect((await webhooks.application(org, id))?.metadata).toEqual({ tier: 'gold' });
});

test('an external id that another application has is not accepted until that gives it back', async () => {
  const other = await webhooks.createApplication({ org, name: 'Made', externalId: 'customer-17', shard: 0 });
  await apply({ externalId: 'customer-17' });
  const object = await seen('shop', 'ExternalIdTaken');
  expect(condition(object, 'Accepted')).toMatchObject({ status: 'False', message: expect.stringContaining(other.id) });
  expect(condition(object, 'Programmed')).toMatchObject({ reason: 'NothingInForce' });
  await apply({ externalId: 'customer-17' }, 'second');
  await seen('second', 'ExternalIdTaken');
  await suite.store.delete('WebhookApplication', { namespace: 'acme', name: 'second' });
  await webhooks.deleteApplication(org, other.id);
  await seen('shop', 'Ready');
  expect((await webhooks.applicationByExternalId(org, 'customer-17'))?.managedBy).toBe('acme/shop');
});

test('the id of what was made through the API is not taken, and that stays as it is', async () => {
  const made = await webhooks.createApplication({ org, name: 'Made', shard: 0 });
  await apply({ name: 'Declared' }, 'shop', { 'posthorn.dev/id': made.id });
  await seen('shop', 'IdTaken');
  await suite.store.delete('WebhookApplication', { namespace: 'acme', name: 'shop' });
  await apply({}, 'other');
  await seen('other', 'Ready');
  expect(await webhooks.application(org, made.id)).toEqual(made);
});

test('an application that is declared again under another name keeps its id by the annotation', async () => {
  await apply({ name: 'One' });
  const id = (await seen('shop', 'Ready')).status?.id ?? '';
  await suite.controllers.stop();
  await suite.store.delete('WebhookApplication', { namespace: 'acme', name: 'shop' });
  await apply({ name: 'Two' }, 'renamed', { 'posthorn.dev/id': id });
  suite.start();
  await seen('renamed', 'Ready');
  expect(await webhooks.application(org, id)).toMatchObject({ name: 'Two', managedBy: 'acme/renamed', revision: 2 });
});

test('what went while nobody led is removed by the next leader, and what the API made stays', async () => {
  await apply({});
  const id = (await seen('shop', 'Ready')).status?.id ?? '';
  await apply({}, 'second');
  const second = (await seen('second', 'Ready')).status?.id ?? '';
  const made = await webhooks.createApplication({ org, name: 'Made', shard: 0 });
  await suite.controllers.stop();
  await suite.store.delete('WebhookApplication', { namespace: 'acme', name: 'shop' });
  suite.start();
  await eventually(async () => expect(await webhooks.application(org, id)).toBeNull());
  expect([...(await webhooks.applicationsById(org, [second, made.id])).keys()].sort()).toEqual([second, made.id].sort());
});

test('after Redis has lost everything it is there again under the same id', async () => {
  await apply({ externalId: 'customer-17' });
  const { id } = (await seen('shop', 'Ready')).status ?? {};
  await suite.redis.client.flushall();
  await eventually(async () => expect((await webhooks.applicationByExternalId(org, 'customer-17'))?.id).toBe(id));
});

test('an application is not in force without its organization', async () => {
  await apply({});
  const id = (await seen('shop', 'Ready')).status?.id ?? '';
  await suite.store.delete('Organization', { name: 'acme' });
  await eventually(async () => expect(await webhooks.application(org, id)).toBeNull());
});
