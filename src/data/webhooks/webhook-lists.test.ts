import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { allPages } from '../../../test/support/all-pages.ts';
import { inBatches } from '../../../test/support/in-batches.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import type { WebhookEndpoint } from './webhooks.ts';

const org = 'org_a';
let redis: RedisServer;
let store: RedisWebhookStore;
beforeAll(async () => {
  redis = await startRedis();
  store = new RedisWebhookStore({ redis: redis.client, prefix: 'test:', clock: systemClock, logger: silentLogger });
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

const makeApplication = (name: string, more = {}) => store.createApplication({ org, name, shard: 0, ...more });
const idsOf = (objects: readonly { id: string }[]): string[] => objects.map(({ id }) => id);

test('lists are newest first, page by page, each with its own members', async () => {
  const applications = [];
  for (let i = 0; i < 7; i++) applications.push(await makeApplication(`application ${i}`));
  const endpoints: WebhookEndpoint[] = [];
  for (let i = 0; i < 600; i++) endpoints.push(await store.createEndpoint(newWebhookEndpoint(applications[i % 2]?.id ?? '')));
  const subscriptions = [];
  for (const endpoint of endpoints.slice(0, 290)) {
    const { created } = await store.createSubscriptions({ org, endpointId: endpoint.id }, ['etp_a', 'etp_b']);
    subscriptions.push(...created);
  }
  expect(idsOf(await allPages((page) => store.applications(org, {}, page), 2))).toEqual(idsOf(applications.toReversed()));
  expect(idsOf(await allPages((page) => store.applications(org, { order: 'asc' }, page), 3))).toEqual(idsOf(applications));
  expect(idsOf(await allPages((page) => store.endpoints(org, {}, page), 37))).toEqual(idsOf(endpoints.toReversed()));
  const [applicationId = ''] = idsOf(applications);
  const own = endpoints.filter((endpoint) => endpoint.applicationId === applicationId);
  expect(idsOf(await allPages((page) => store.endpoints(org, { applicationId }, page), 7))).toEqual(idsOf(own.toReversed()));
  expect(idsOf(await allPages((page) => store.subscriptions(org, {}, page), 100))).toEqual(idsOf(subscriptions.toReversed()));
  const ofType = subscriptions.filter(({ eventTypeId }) => eventTypeId === 'etp_b');
  expect(idsOf(await allPages((page) => store.subscriptions(org, { eventTypeId: 'etp_b' }, page), 9))).toEqual(idsOf(ofType.toReversed()));
  const ofEndpoint = subscriptions.filter(({ endpointId }) => endpointId === endpoints[3]?.id);
  expect(idsOf(await allPages((page) => store.subscriptions(org, { endpointId: endpoints[3]?.id }, page), 1))).toEqual(
    idsOf(ofEndpoint.toReversed()),
  );
  const ofApplication = subscriptions.filter((subscription) => subscription.applicationId === applicationId);
  expect(idsOf(await allPages((page) => store.subscriptions(org, { applicationId }, page), 7))).toEqual(idsOf(ofApplication.toReversed()));
  const both = ofApplication.filter(({ eventTypeId }) => eventTypeId === 'etp_a');
  expect(idsOf(await allPages((page) => store.subscriptions(org, { applicationId, eventTypeId: 'etp_a' }, page), 10))).toEqual(
    idsOf(both.toReversed()),
  );
  expect(await store.subscriptions(org, { applicationId: 'app_x' }, { limit: 5 })).toEqual({ items: [], nextCursor: null });
  expect(await store.subscriptions('org_b', {}, { limit: 5 })).toEqual({ items: [], nextCursor: null });
});

test('applications are listed by name in both directions, also after a new name', async () => {
  const names = ['beta', 'Alpha', 'ärger', 'alpha', 'gamma', 'Beta 2'];
  for (const name of names) await makeApplication(name);
  const { items } = await store.applications(org, { search: 'gamma' }, { limit: 1 });
  await store.updateApplication(org, items[0]?.id ?? '', { name: 'aaa' });
  const listed = async (order: 'asc' | 'desc') =>
    (await allPages((page) => store.applications(org, { orderBy: 'name', order }, page), 2)).map(({ name }) => name);
  expect(await listed('asc')).toEqual(['aaa', 'Alpha', 'alpha', 'beta', 'Beta 2', 'ärger']);
  expect(await listed('desc')).toEqual(['aaa', 'Alpha', 'alpha', 'beta', 'Beta 2', 'ärger'].toReversed());
});

test('a search that one of very many meets finds it, in its first page or behind the cursor of that', async () => {
  await inBatches(12_000, (i) => makeApplication(i === 500 ? 'needle' : `hay ${i}`));
  const found = await allPages((page) => store.applications(org, { search: 'NEEDLE' }, page), 5);
  expect(found.map(({ name }) => name)).toEqual(['needle']);
});

test('a walk through a list meets everything that was there all the time once, whatever is made and deleted meanwhile', async () => {
  const application = await makeApplication('a');
  const make = () => store.createEndpoint(newWebhookEndpoint(application.id));
  const all = await Promise.all(Array.from({ length: 300 }, make));
  const deleted = new Set<string>();
  const seen: string[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await store.endpoints(org, { applicationId: application.id }, { limit: 13, ...(cursor === undefined ? {} : { cursor }) });
    seen.push(...idsOf(page.items));
    cursor = page.nextCursor;
    await make();
    // Also the one on which the cursor stands.
    for (const id of [page.items.at(-1)?.id ?? '', all[Math.floor(Math.random() * all.length)]?.id ?? '']) {
      if (id === '' || deleted.has(id)) continue;
      deleted.add(id);
      await store.deleteEndpoint(org, id);
    }
  }
  expect(new Set(seen).size).toBe(seen.length);
  const stayed = idsOf(all).filter((id) => !deleted.has(id));
  expect(stayed.filter((id) => !seen.includes(id))).toEqual([]);
  expect(seen.filter((id) => !idsOf(all).includes(id))).toEqual([]);
});

test('a cursor is of use with its own list alone, and a forged one is refused', async () => {
  for (let i = 0; i < 3; i++) await makeApplication(`a ${i}`);
  const { nextCursor } = await store.applications(org, {}, { limit: 1 });
  const cursor = nextCursor ?? '';
  expect((await store.applications(org, {}, { limit: 1, cursor })).items).toHaveLength(1);
  const invalid = { code: 'INVALID_QUERY', details: { cursor: expect.anything() } };
  await expect(store.applications(org, { isDisabled: false }, { limit: 1, cursor })).rejects.toMatchObject(invalid);
  await expect(store.applications('org_b', {}, { limit: 1, cursor })).rejects.toMatchObject(invalid);
  await expect(store.endpoints(org, {}, { limit: 1, cursor })).rejects.toMatchObject(invalid);
  for (const forged of ['x', '', Buffer.from('1').toString('base64url'), `${cursor}A`, cursor.slice(1)])
    await expect(store.applications(org, {}, { limit: 1, cursor: forged })).rejects.toMatchObject(invalid);
  await expect(store.applications(org, {}, { limit: 101 })).rejects.toMatchObject({ code: 'INVALID_QUERY' });
});
