import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { allPages } from '../../../test/support/all-pages.ts';
import { crashingClient } from '../../../test/support/crashing-client.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { allCandidates, newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { checkWebhooks } from '../check/webhook-check.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { WebhookCandidates } from './webhook-candidates.ts';
import { webhookKeys } from './webhook-keys.ts';
import { WebhookSweeper } from './webhook-sweeper.ts';

const org = 'org_a';
const prefix = 'test:';
const keys = webhookKeys(prefix, org);
const unfinished = `${prefix}{wh}:unfinished`;
let redis: RedisServer;
let clock: FakeClock;
let store: RedisWebhookStore;
let sweeper: WebhookSweeper;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await empty();
  clock = new FakeClock();
  store = storeOn(redis.client);
  sweeper = new WebhookSweeper({ redis: redis.client, prefix, clock, logger: silentLogger });
});

async function empty(): Promise<void> {
  await redis.client.flushall();
  await redis.client.hset(registryKeys(prefix).records('organization'), org, '{}');
}

function storeOn(client: RedisClient): RedisWebhookStore {
  return new RedisWebhookStore({ redis: client, prefix, clock, logger: silentLogger });
}

interface World {
  applicationId: string;
  otherEndpointId: string;
  endpointId: string;
}

/** Two applications; the first has 120 endpoints with two subscriptions each, one of them 150 more. */
async function makeWorld(): Promise<World> {
  const applicationId = (await store.createApplication({ org, name: 'a', shard: 0, externalId: 'x' })).id;
  const other = (await store.createApplication({ org, name: 'b', shard: 0 })).id;
  const make = async (id: string) => (await store.createEndpoint(newWebhookEndpoint(id))).id;
  const endpointIds = await Promise.all(Array.from({ length: 120 }, () => make(applicationId)));
  const otherEndpointId = await make(other);
  await Promise.all(
    [...endpointIds, otherEndpointId].map((endpointId) => store.createSubscriptions({ org, endpointId }, ['etp_a', 'etp_b'])),
  );
  const [endpointId = ''] = endpointIds;
  const more = Array.from({ length: 150 }, (_, i) => `etp_${i}`);
  await store.createSubscriptions({ org, endpointId }, more.slice(0, 100));
  await store.createSubscriptions({ org, endpointId }, more.slice(100));
  return { applicationId, otherEndpointId, endpointId };
}

async function sizes(): Promise<Record<string, number>> {
  const base = keys.declared[0].slice(0, -3);
  const each = ['ap', 'ep', 'sb', 'es', 'ax', 'doom', 'ids', 'ty', 'tr'];
  return Object.fromEntries(await Promise.all(each.map(async (name) => [name, await redis.client.hlen(base + name)])));
}

const deletions: [string, (store: RedisWebhookStore, world: World) => Promise<void>, Record<string, number>][] = [
  [
    'an application',
    (each, { applicationId }) => each.deleteApplication(org, applicationId),
    { ap: 1, ep: 1, sb: 2, es: 1, ax: 0, doom: 0, ids: 0, ty: 152, tr: 152 },
  ],
  [
    'an endpoint',
    (each, { endpointId }) => each.deleteEndpoint(org, endpointId),
    { ap: 2, ep: 120, sb: 240, es: 120, ax: 1, doom: 0, ids: 0, ty: 152, tr: 152 },
  ],
  [
    'an event type',
    (each) => each.deleteEventType(org, 'etp_a'),
    { ap: 2, ep: 121, sb: 271, es: 121, ax: 1, doom: 0, ids: 0, ty: 151, tr: 151 },
  ],
];

test('thousands of things that were deleted at once are all finished', async () => {
  const deleted = Array.from({ length: 3000 }, (_, i) => [`e${i + 1}`, '']);
  await redis.client.hset(keys.doomed, Object.fromEntries(deleted));
  await redis.client.zadd(unfinished, 0, org);
  await sweeper.sweep(AbortSignal.timeout(60_000));
  expect(await redis.client.exists(keys.doomed)).toBe(0);
});

describe.each(deletions)('deleting %s', (_, remove, left) => {
  test('takes along what is below it, and gives back what that took', async () => {
    await remove(store, await makeWorld());
    await eventually(async () => expect(await sizes()).toEqual(left));
  });

  test.each(['before', 'after'] as const)(
    'is either not made or gone at once and finished by another, when the process dies %s any of its commands',
    async (moment) => {
      const all = crashingClient(redis.client, Number.POSITIVE_INFINITY, moment);
      await remove(storeOn(all.client), await makeWorld());
      expect(all.count()).toBeGreaterThan(4);
      for (let nth = 1; nth <= all.count(); nth++) {
        await empty();
        const world = await makeWorld();
        const whole = await sizes();
        const { client, count } = crashingClient(redis.client, nth, moment);
        void remove(storeOn(client), world);
        await eventually(() => expect(count()).toBe(nth));
        await redis.client.ping();
        const isMade = JSON.stringify(await sizes()) !== JSON.stringify(whole);
        if (isMade) await expectGone(world, left);
        // Also what is half removed fits together.
        expect((await checkWebhooks({ redis: redis.client, prefix })).findings).toEqual([]);
        await sweeper.sweep();
        expect(await sizes()).toEqual(isMade ? left : whole);
      }
    },
    180_000,
  );
});

/** As every reader sees it, however far the removal is. */
async function expectGone(world: World, left: Record<string, number>): Promise<void> {
  const candidates = new WebhookCandidates({ redis: redis.client, prefix });
  expect(await allPages((page) => store.applications(org, {}, page), 100)).toHaveLength(left['ap'] ?? -1);
  expect(await allPages((page) => store.endpoints(org, {}, page), 100)).toHaveLength(left['ep'] ?? -1);
  expect(await allPages((page) => store.subscriptions(org, {}, page), 100)).toHaveLength(left['sb'] ?? -1);
  const other = await candidates.ofEndpoints(org, 'etp_b', [world.otherEndpointId]);
  expect(other).toHaveLength(1);
  if (left['ap'] === 1) {
    expect(await store.application(org, world.applicationId)).toBeNull();
    expect(await store.endpoint(org, world.endpointId)).toBeNull();
    expect(await allCandidates(candidates, org, 'etp_a')).toHaveLength(1);
  }
}

test('an organization leaves the list of those to look at a minute after its last deletion, unless another has begun', async () => {
  const make = async () => (await store.createApplication({ org, name: 'a', shard: 0 })).id;
  const [one, two] = [await make(), await make()];
  await store.deleteApplication(org, one);
  await sweeper.sweep();
  expect(await redis.client.zcard(unfinished)).toBe(1);
  await clock.advance(59_000);
  await store.deleteApplication(org, two);
  await clock.advance(59_000);
  await sweeper.sweep();
  expect(await redis.client.zcard(unfinished)).toBe(1);
  await clock.advance(2000);
  await sweeper.sweep();
  expect(await redis.client.zcard(unfinished)).toBe(0);
});

test('a deletion that begins while the list is looked through keeps its organization there', async () => {
  await sweeper.announce(org);
  await clock.advance(120_000);
  const interrupted = new Proxy(redis.client, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (name !== 'zscore') return typeof member === 'function' ? member.bind(target) : member;
      return async (...args: Parameters<typeof target.zscore>) => {
        const score = await target.zscore(...args);
        await sweeper.announce(org);
        return score;
      };
    },
  });
  await new WebhookSweeper({ redis: interrupted, prefix, clock, logger: silentLogger }).sweep();
  expect(await redis.client.zrange(unfinished, '0', '-1')).toEqual([org]);
});

test('a large deletion is answered before everything is removed, and goes on', async () => {
  const { id } = await store.createApplication({ org, name: 'a', shard: 0 });
  const types = Array.from({ length: 100 }, (_, i) => `etp_${i}`);
  for (let i = 0; i < 40; i++) {
    const endpoint = await store.createEndpoint(newWebhookEndpoint(id));
    await store.createSubscriptions({ org, endpointId: endpoint.id }, types);
  }
  await store.deleteApplication(org, id);
  expect((await sizes())['sb']).toBeGreaterThan(0);
  expect((await store.subscriptions(org, {}, { limit: 10 })).items).toEqual([]);
  await eventually(async () => expect(await sizes()).toMatchObject({ ap: 0, ep: 0, sb: 0, es: 0, doom: 0 }));
});

test('the periodic look goes on after Redis was away', async () => {
  const { applicationId } = await makeWorld();
  const { client, count } = crashingClient(redis.client, 3, 'after');
  void storeOn(client).deleteApplication(org, applicationId);
  await eventually(() => expect(count()).toBe(3));
  const stop = new AbortController();
  let failures = 2;
  const failing = new Proxy(redis.client, {
    get(target, name) {
      if (name === 'zrange' && failures-- > 0) return () => Promise.reject(new Error('away'));
      const member = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  const running = new WebhookSweeper({ redis: failing, prefix, clock, logger: silentLogger }).run(stop.signal);
  await eventually(async () => {
    await clock.advance(40_000);
    expect((await sizes())['ep']).toBe(1);
  });
  stop.abort();
  await running;
});
