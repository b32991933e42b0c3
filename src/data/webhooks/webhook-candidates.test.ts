import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { allCandidates, newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { WebhookCandidates } from './webhook-candidates.ts';

const org = 'org_a';
const prefix = 'test:';
let redis: RedisServer;
let store: RedisWebhookStore;
let candidates: WebhookCandidates;
beforeAll(async () => {
  redis = await startRedis();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  candidates = new WebhookCandidates({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

const makeApplication = () => store.createApplication({ org, name: 'a', shard: 2 });
const makeEndpoint = (applicationId: string) => store.createEndpoint(newWebhookEndpoint(applicationId));
const subscribe = (endpointId: string, more = {}) => store.createSubscription({ org, endpointId, eventTypeId: 'etp_a', ...more });

const all = async (): Promise<string[]> => (await allCandidates(candidates, org, 'etp_a', 7)).map(({ subscriptionId }) => subscriptionId);

test('a candidate says what its subscription wants, and where its message goes', async () => {
  const application = await makeApplication();
  const endpoint = await makeEndpoint(application.id);
  const wants = { filterExpression: 'true', labelFilters: { a: ['b'] }, labelFilterMode: 'any' as const, transformId: 'trf_x' };
  const { id } = await subscribe(endpoint.id, wants);
  const { candidates: found, next, end } = await candidates.ofEventType(org, 'etp_a', 0, 10);
  const own = {
    subscriptionId: id,
    endpointId: endpoint.id,
    applicationId: application.id,
    url: endpoint.url,
    retries: null,
    expiresAfterSeconds: null,
    shard: 2,
    applicationLimits: application.rateLimits,
    ...wants,
    lastFilterError: null,
    number: 1,
    application: 1,
  };
  expect([found, next, end]).toEqual([[{ place: 0, ...own }], null, 1]);
  expect(await candidates.ofEndpoints(org, 'etp_a', [endpoint.id])).toEqual([{ place: 0, ...own }]);
  expect((await candidates.ofApplication(org, 'etp_a', application.id, 0, 10)).candidates).toEqual([{ place: 0, ...own }]);
  for (const nobody of [candidates.ofEventType(org, 'etp_b', 0, 10), candidates.ofApplication(org, 'etp_a', 'app_x', 0, 10)])
    expect(await nobody).toEqual({ candidates: [], dormant: [], next: null, end: 0 });
  expect(await candidates.ofEndpoints(org, 'etp_b', [endpoint.id, 'ep_x'])).toEqual([]);
});

test('candidates are walked in the order in which they were made, without those that are gone, and with those that come meanwhile', async () => {
  const { id: applicationId } = await makeApplication();
  const ids: string[] = [];
  for (let i = 0; i < 600; i++) ids.push((await subscribe((await makeEndpoint(applicationId)).id)).id);
  expect(await all()).toEqual(ids);
  for (const id of ids.slice(100, 501)) await store.deleteSubscription(org, id);
  const left = [...ids.slice(0, 100), ...ids.slice(501)];
  expect(await all()).toEqual(left);
  const first = await candidates.ofEventType(org, 'etp_a', 0, 100);
  const late = await subscribe((await makeEndpoint(applicationId)).id);
  const rest = await candidates.ofEventType(org, 'etp_a', first.next ?? -1, 100);
  expect([...first.candidates, ...rest.candidates].map(({ subscriptionId }) => subscriptionId)).toEqual([...left, late.id]);
  expect(rest.candidates.at(-1)?.place).toBeGreaterThanOrEqual(first.end);
  expect(rest.candidates.at(-2)?.place).toBeLessThan(first.end);
});

test('the candidates of an application are only its own, page by page', async () => {
  const applications = [await makeApplication(), await makeApplication()];
  const own: string[] = [];
  for (let i = 0; i < 50; i++) {
    const application = applications[i % 2];
    const endpoint = await makeEndpoint(application?.id ?? '');
    if (i % 3 === 0) continue;
    const { id } = await subscribe(endpoint.id);
    if (application === applications[1]) own.push(id);
  }
  const found: string[] = [];
  for (let from: number | null = 0; from !== null; ) {
    const page = await candidates.ofApplication(org, 'etp_a', applications[1]?.id ?? '', from, 4);
    found.push(...page.candidates.map(({ subscriptionId }) => subscriptionId));
    from = page.next;
  }
  expect(found).toEqual(own);
});

describe('what is disabled or deleted is no candidate, and the version tells', () => {
  test.each<[string, (ids: { application: string; endpoint: string; subscription: string }) => Promise<unknown>]>([
    ['subscription disabled', ({ subscription }) => store.updateSubscription(org, subscription, { isEnabled: false })],
    ['endpoint disabled', ({ endpoint }) => store.updateEndpoint(org, endpoint, { isDisabled: true })],
    ['application disabled', ({ application }) => store.updateApplication(org, application, { isDisabled: true })],
    ['subscription deleted', ({ subscription }) => store.deleteSubscription(org, subscription)],
    ['endpoint deleted', ({ endpoint }) => store.deleteEndpoint(org, endpoint)],
    ['application deleted', ({ application }) => store.deleteApplication(org, application)],
    ['event type deleted', () => store.deleteEventType(org, 'etp_a')],
  ])('%s', async (_, change) => {
    const { id: application } = await makeApplication();
    const { id: endpoint } = await makeEndpoint(application);
    const { id: subscription } = await subscribe(endpoint);
    const before = await candidates.version(org, 'etp_a');
    expect(await all()).toEqual([subscription]);
    await change({ application, endpoint, subscription });
    expect(await all()).toEqual([]);
    expect((await candidates.ofApplication(org, 'etp_a', application, 0, 5)).candidates).toEqual([]);
    expect(await candidates.ofEndpoints(org, 'etp_a', [endpoint])).toEqual([]);
    expect(await candidates.version(org, 'etp_a')).not.toBe(before);
  });
});

test('the version changes with what the candidates say, and with nothing else', async () => {
  const { id: application } = await makeApplication();
  const { id: endpoint } = await makeEndpoint(application);
  const { id: subscription } = await subscribe(endpoint);
  await store.createSubscription({ org, endpointId: endpoint, eventTypeId: 'etp_b' });
  const versions: [string, string][] = [];
  const look = async () => versions.push([await candidates.version(org, 'etp_a'), await candidates.version(org, 'etp_b')]);
  await look();
  await store.updateEndpoint(org, endpoint, { description: 'x', timeoutSeconds: 3 });
  await store.updateApplication(org, application, { name: 'x', metadata: { a: 1 } });
  await store.noteFilterError(org, subscription, { filterExpression: null, error: 'no such key' });
  expect((await store.subscription(org, subscription))?.lastFilterError).toBe('no such key');
  expect((await store.subscription(org, subscription))?.revision).toBe(1);
  await look();
  expect(versions[1]).toEqual(versions[0]);
  await store.updateSubscription(org, subscription, { filterExpression: 'false' });
  await look();
  expect(versions[2]?.[0]).not.toBe(versions[1]?.[0]);
  expect(versions[2]?.[1]).toBe(versions[1]?.[1]);
  await store.updateEndpoint(org, endpoint, { url: 'https://elsewhere.example' });
  await look();
  expect(versions[3]?.[0]).not.toBe(versions[2]?.[0]);
  expect(versions[3]?.[1]).not.toBe(versions[2]?.[1]);
  await redis.client.flushall();
  const fresh = await makeApplication();
  await subscribe((await makeEndpoint(fresh.id)).id);
  await look();
  expect(versions.slice(0, 4).map(([version]) => version)).not.toContain(versions[4]?.[0]);
});

test('requests of one tick read the version once, and each sees what was written before it asked', async () => {
  const { id: application } = await makeApplication();
  const { id: endpoint } = await makeEndpoint(application);
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await redis.client.info('stats'))?.[1]);
  const before = await commands();
  const versions = await Promise.all(Array.from({ length: 50 }, () => candidates.version(org, 'etp_a')));
  expect((await commands()) - before).toBeLessThan(5);
  await subscribe(endpoint);
  expect(versions).not.toContain(await candidates.version(org, 'etp_a'));
});
