import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { WebhookCandidates } from './webhook-candidates.ts';
import { webhookFields } from './webhook-fields.ts';
import { WebhookMatcher } from './webhook-matcher.ts';

const org = 'org_a';
const prefix = 'test:';
const count = 2600;
const eventTypeId = 'etp_a';
let redis: RedisServer;
let store: RedisWebhookStore;
let candidates: CountingCandidates;
let matcher: WebhookMatcher;
const applications: string[] = [];
const endpoints: string[] = [];
const subscriptions: string[] = [];

/** Knows how often candidates were read: all of a type from the beginning on, and single ones. */
class CountingCandidates extends WebhookCandidates {
  pages = 0;
  reads = 0;
  override ofEventType(...args: Parameters<WebhookCandidates['ofEventType']>): ReturnType<WebhookCandidates['ofEventType']> {
    this.pages++;
    return super.ofEventType(...args);
  }
  override ofNumbers(...args: Parameters<WebhookCandidates['ofNumbers']>): ReturnType<WebhookCandidates['ofNumbers']> {
    this.reads++;
    return super.ofNumbers(...args);
  }
}

const newMatcher = (of: WebhookCandidates): WebhookMatcher =>
  new WebhookMatcher({ candidates: of, store, clock: lenientClock, logger: silentLogger });

/** Each of very many customers wants its own events alone. */
beforeAll(async () => {
  redis = await startRedis();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  candidates = new CountingCandidates({ redis: redis.client, prefix });
  matcher = newMatcher(candidates);
  for (let i = 0; i < 23; i++) applications.push((await store.createApplication({ org, name: String(i), shard: 0 })).id);
  for (let i = 0; i < count; i++) {
    const { id: endpointId } = await store.createEndpoint(newWebhookEndpoint(applications[i % 23] ?? ''));
    endpoints.push(endpointId);
    subscriptions.push((await subscribe(endpointId, { customer: `c${i}` })).id);
  }
}, 120_000);
afterAll(() => redis?.stop());

const subscribe = (endpointId: string, labelFilters: Record<string, string>) =>
  store.createSubscription({ org, endpointId, eventTypeId, labelFilters });

async function matched(labels: Record<string, string>, of = matcher): Promise<string[]> {
  const event = { type: 'order.made', data: {}, labels, metadata: {} };
  const { first, total, rest } = await of.match(org, eventTypeId, { applicationId: null, endpointIds: [] }, event);
  expect([total, rest]).toEqual([first.length, null]);
  return first.map(({ subscriptionId }) => subscriptionId);
}

/** How often candidates were read meanwhile. */
async function readsOf(work: () => Promise<unknown>): Promise<{ pages: number; reads: number }> {
  const { pages, reads } = candidates;
  await work();
  return { pages: candidates.pages - pages, reads: candidates.reads - reads };
}

test('an event that few of very many want is matched by what they want, and only those are read', async () => {
  await eventually(async () => expect(await matched({ customer: 'c2200' })).toEqual([subscriptions[2200]]));
  expect(await readsOf(() => matched({ customer: 'c2100' }))).toEqual({ pages: 0, reads: 1 });
  for (const customer of ['nobody', 'c7']) expect(await readsOf(() => matched({ customer }))).toEqual({ pages: 0, reads: 0 });
});

test('after a change only what has changed is read again, and is in force at once', async () => {
  const at = (i: number): string => subscriptions[i] ?? '';
  const changes: [string, () => Promise<unknown>, Record<string, string>, string[]][] = [
    [
      'a filter',
      () => store.updateSubscription(org, at(2250), { labelFilters: { customer: 'c3' } }),
      { customer: 'c3' },
      [at(3), at(2250)],
    ],
    ['one of the first disabled', () => store.updateSubscription(org, at(3), { isEnabled: false }), { customer: 'c3' }, [at(2250)]],
    ['an endpoint disabled', () => store.updateEndpoint(org, endpoints[2250] ?? '', { isDisabled: true }), { customer: 'c3' }, []],
    ['an endpoint enabled', () => store.updateEndpoint(org, endpoints[2250] ?? '', { isDisabled: false }), { customer: 'c3' }, [at(2250)]],
    ['an application disabled', () => store.updateApplication(org, applications[4] ?? '', { isDisabled: true }), { customer: 'c4' }, []],
    ['its others', async () => {}, { customer: `c${4 + 23 * 95}` }, []],
    [
      'an application enabled',
      () => store.updateApplication(org, applications[4] ?? '', { isDisabled: false }),
      { customer: 'c4' },
      [at(4)],
    ],
    ['its others again', async () => {}, { customer: `c${4 + 23 * 95}` }, [at(4 + 23 * 95)]],
    ['a subscription deleted', () => store.deleteSubscription(org, at(2260)), { customer: 'c2260' }, []],
    ['an endpoint deleted', () => store.deleteEndpoint(org, endpoints[2261] ?? ''), { customer: 'c2261' }, []],
    ['an application deleted', () => store.deleteApplication(org, applications[5] ?? ''), { customer: 'c5' }, []],
  ];
  for (const [what, change, labels, expected] of changes) {
    await change();
    const { pages, reads } = await readsOf(async () => expect([what, await matched(labels)]).toEqual([what, expected]));
    expect([what, pages, reads <= 2]).toEqual([what, 0, true]);
  }
  // What was below the deleted application is being removed meanwhile.
  await eventually(async () => expect(await redis.client.hlen(`${prefix}{wh:${org}}:doom`)).toBe(0));
  expect(await readsOf(() => matched({ customer: 'c0' }))).toMatchObject({ pages: 0 });
  const { id } = await subscribe((await store.createEndpoint(newWebhookEndpoint(applications[0] ?? ''))).id, { customer: 'new' });
  expect(await matched({ customer: 'new' })).toEqual([id]);
});

test('however many ask while much changes, what has changed is read once for all of them', async () => {
  const target = subscriptions[10] ?? '';
  const counted = await readsOf(async () => {
    await store.updateSubscription(org, target, { labelFilters: { customer: 'many' } });
    const found = await Promise.all(Array.from({ length: 100 }, () => matched({ customer: 'many' })));
    expect(found).toEqual(Array.from({ length: 100 }, () => [target]));
  });
  expect(counted).toEqual({ pages: 0, reads: 1 });
});

test('more changes than are noted are read with all others, once', async () => {
  const some = subscriptions.slice(20, 620).filter((_, i) => (20 + i) % 23 !== 5);
  await Promise.all(some.map((id) => store.updateSubscription(org, id, { labelFilters: { customer: 'old' } })));
  const counted = await readsOf(async () => {
    const found = await Promise.all(Array.from({ length: 100 }, () => matched({ customer: 'old' })));
    expect(new Set(found.map(({ length }) => length)).size).toBe(1);
  });
  expect(counted.pages).toBeLessThan(40);
});

const { changesOf } = webhookFields.webhookVersions;

test('a change by a process of another release, which does not say what it was, is in force at once, too', async () => {
  const key = `${prefix}{wh:${org}}:v`;
  expect(await matched({ customer: 'earlier' })).toEqual([]);
  const [version, journal] = await redis.client.hmget(key, eventTypeId, changesOf + eventTypeId);
  await store.updateSubscription(org, subscriptions[1] ?? '', { labelFilters: { customer: 'earlier' } });
  await redis.client.hset(key, changesOf + eventTypeId, journal ?? '', eventTypeId, `${version}9`);
  await eventually(async () => expect(await matched({ customer: 'earlier' })).toEqual([subscriptions[1]]));
});

test('while the others are not counted yet an event goes to the first ones that want it, and to the others later', async () => {
  class Slow extends WebhookCandidates {
    override ofEventType(...args: Parameters<WebhookCandidates['ofEventType']>): ReturnType<WebhookCandidates['ofEventType']> {
      return args[2] >= 2400 ? new Promise(() => {}) : super.ofEventType(...args);
    }
  }
  const event = { type: 'order.made', data: {}, labels: { customer: 'c9' }, metadata: {} };
  const slow = newMatcher(new Slow({ redis: redis.client, prefix }));
  const { first, total, rest } = await slow.match(org, eventTypeId, { applicationId: null, endpointIds: [] }, event);
  expect([first.map(({ subscriptionId }) => subscriptionId), total]).toEqual([[subscriptions[9]], 1]);
  expect(rest).toEqual({ from: expect.any(Number), end: count + 1 });
});
