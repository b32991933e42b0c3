import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { type RunningControllers, startControllers } from '../../../test/support/controllers.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { PosthornError } from '../../core/errors.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { cronKeys } from '../../data/cron/cron-keys.ts';
import { OrganizationPools } from '../../data/pools/organization-pools.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';
import { shardBase } from '../../data/shard/shard-keys.ts';
import { taskKeys } from '../../data/tasks/task-kind.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { ResourceCache } from '../../store/cache.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { createStoreMetrics } from '../../store/metrics.ts';
import { Reflector } from '../../store/reflector.ts';
import { idOf } from '../held-ids.ts';
import type { Pools } from './organization-pool.ts';

const prefix = 'test:';
const namespace = 'posthorn-system';
const options = { manager: 'test', force: true };
let redis: RedisServer;
let store: MemoryStore;
let controllers: RunningControllers;
let following: { end: AbortController; ended: Promise<void> };
let follow: () => void;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  store = new MemoryStore(systemClock);
  await store.apply({ kind: 'Namespace', metadata: { name: namespace } }, options);
  start();
});
afterEach(() => stop());

function start(own: Partial<Pools> = {}, { knowsPools = true } = {}): void {
  const cache = new ResourceCache('DeliveryPool', { logger: silentLogger });
  const metrics = createStoreMetrics(new Registry());
  const end = new AbortController();
  const reflector = new Reflector({ store, cache, clock: systemClock, logger: silentLogger, metrics, namespace });
  following = { end, ended: Promise.resolve() };
  follow = () => {
    following.ended = reflector.run(end.signal);
  };
  if (knowsPools) follow();
  const assignments = new OrganizationPools({ redis: redis.client, prefix, shards: 1 });
  const pools = { cache, assign: (org: string, pool: string) => assignments.assign(org, pool), ...own };
  controllers = startControllers({ store, redis: redis.client, prefix, pools });
}

async function stop(): Promise<void> {
  following.end.abort();
  await following.ended;
  await controllers.stop();
}

const put = (deliveryPool?: string) =>
  store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', deliveryPool } }, options);
const putPool = (name: string) => store.apply({ kind: 'DeliveryPool', metadata: { namespace, name }, spec: {} }, options);
const condition = async (type: string) => {
  const { status } = await store.get('Organization', { name: 'acme' });
  const found = status?.conditions?.find((each) => each.type === type);
  return found === undefined ? undefined : `${found.status} ${found.reason}`;
};
/** By whom the messages of routes and of webhooks are delivered, and the runs of cron jobs and the tasks made; null: by the default pool. */
const servedBy = async (org: string) =>
  await Promise.all([
    ...[org, webhookOrganization(org)].map((each) => redis.client.hget(`${shardBase(prefix, 0)}o:${each}`, hashFields.organization.pool)),
    redis.client.hget(cronKeys(prefix).pools, org),
    redis.client.hget(taskKeys(prefix).pools, org),
  ]);
const everything = (mark: string | null) => [mark, mark, mark, mark];

test('an organization is served by the pool that it names, and by the default one while that is not there', async () => {
  const org = idOf('Organization', await put('eu'));
  await eventually(async () => expect(await condition('ResolvedRefs')).toBe('False DeliveryPoolNotFound'));
  expect(await condition('Programmed')).toBe('True Programmed');
  expect(await servedBy(org)).toEqual(everything(null));
  await putPool('eu');
  await eventually(async () => expect(await condition('Ready')).toBe('True Ready'));
  expect(await servedBy(org)).toEqual(everything('@eu'));
  await putPool('us');
  await put('us');
  await eventually(async () => expect(await servedBy(org)).toEqual(everything('@us')));
  await store.delete('DeliveryPool', { namespace, name: 'us' });
  await eventually(async () => expect(await servedBy(org)).toEqual(everything(null)));
  await eventually(async () => expect(await condition('ResolvedRefs')).toBe('False DeliveryPoolNotFound'));
});

test.each([
  ['names none', undefined, 'DeliveryPool default does not exist'],
  ['names it', 'default', 'DeliveryPool default does not exist'],
  ['names another one that is missing, too', 'eu', 'neither DeliveryPool eu nor default exists'],
])('an organization that %s says that the pool default is missing, and is Ready while it is there', async (_, named, message) => {
  await put(named);
  const resolved = async () =>
    (await store.get('Organization', { name: 'acme' })).status?.conditions?.find(({ type }) => type === 'ResolvedRefs');
  const isMissed = () =>
    eventually(async () =>
      expect(await resolved()).toMatchObject({
        status: 'False',
        reason: 'DeliveryPoolNotFound',
        message: expect.stringContaining(message),
      }),
    );
  await isMissed();
  expect(await condition('Programmed')).toBe('True Programmed');
  await putPool('default');
  if (named === 'eu') {
    await eventually(async () => expect((await resolved())?.message).toContain('the pool default serves the organization'));
  } else await eventually(async () => expect(await condition('Ready')).toBe('True Ready'));
  await store.delete('DeliveryPool', { namespace, name: 'default' });
  await isMissed();
});

test('a new leader that has not read the pools yet keeps their conditions', async () => {
  await put();
  await eventually(async () => expect(await condition('ResolvedRefs')).toBe('False DeliveryPoolNotFound'));
  await stop();
  start({}, { knowsPools: false });
  const org = idOf('Organization', await store.get('Organization', { name: 'acme' }));
  await eventually(async () => expect(await controllers.registry.get('organization', org)).not.toBeNull());
  expect(await condition('ResolvedRefs')).toBe('False DeliveryPoolNotFound');
  await putPool('default');
  follow();
  await eventually(async () => expect(await condition('Ready')).toBe('True Ready'));
});

test('an organization goes back to the default pool when it names none any more, also while nobody led', async () => {
  await putPool('eu');
  const org = idOf('Organization', await put('eu'));
  await eventually(async () => expect(await servedBy(org)).toEqual(everything('@eu')));
  await stop();
  await put();
  start();
  await eventually(async () => expect(await servedBy(org)).toEqual(everything(null)));
});

test('a pool that went while nobody led serves nobody', async () => {
  await putPool('eu');
  const org = idOf('Organization', await put('eu'));
  await eventually(async () => expect(await servedBy(org)).toEqual(everything('@eu')));
  await stop();
  await store.delete('DeliveryPool', { namespace, name: 'eu' });
  await redis.client.flushall();
  start({}, { knowsPools: false });
  await eventually(async () => expect(await controllers.registry.get('organization', org)).not.toBeNull());
  follow();
  await eventually(async () => expect(await condition('ResolvedRefs')).toBe('False DeliveryPoolNotFound'));
  expect(await servedBy(org)).toEqual(everything(null));
});

test('a pool that could not be assigned, and is not wanted any more, is taken back', async () => {
  await putPool('eu');
  await stop();
  start({ assign: () => Promise.reject(new PosthornError('UNAVAILABLE', 'Redis does not answer')) });
  const org = idOf('Organization', await put('eu'));
  await eventually(async () => expect((await controllers.registry.get('organization', org))?.deliveryPool).toBe('eu'));
  await stop();
  await new OrganizationPools({ redis: redis.client, prefix, shards: 1 }).assign(org, 'eu');
  await put();
  start();
  await eventually(async () => expect(await servedBy(org)).toEqual(everything(null)));
});

test('an emptied Redis gets the pools again', async () => {
  await putPool('eu');
  const org = idOf('Organization', await put('eu'));
  await eventually(async () => expect(await servedBy(org)).toEqual(everything('@eu')));
  await stop();
  await redis.client.flushall();
  start();
  await eventually(async () => expect(await servedBy(org)).toEqual(everything('@eu')));
});
