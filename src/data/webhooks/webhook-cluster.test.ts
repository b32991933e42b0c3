import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { allPages } from '../../../test/support/all-pages.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { clusterClient, moveSlots, type RedisGroup, startRedisCluster } from '../../../test/support/redis-group.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import type { RedisAddress } from '../../redis/address.ts';
import { blockingConnection, commandConnection, type RedisClient } from '../../redis/connection.ts';
import { ReplicatedWrites } from '../../redis/replicated-writes.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { changeStreamBlockMs } from '../registry/change-stream.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { WebhookCandidates } from './webhook-candidates.ts';
import { WebhookDirectory } from './webhook-directory.ts';
import { webhookKeys } from './webhook-keys.ts';
import { WebhookSweeper } from './webhook-sweeper.ts';

const prefix = 'posthorn:';
const org = 'org_a';
const rules = /^user posthorn (.+)$/m
  .exec(readFileSync(new URL('../../../config/redis/users.acl', import.meta.url), 'utf8'))?.[1]
  ?.split(' ');
let cluster: RedisGroup;
let redis: RedisClient;
let blocking: RedisClient;

const address = (): RedisAddress => ({ mode: 'cluster', url: `redis://posthorn:change-me@${cluster.hosts}` });

beforeAll(async () => {
  cluster = await startRedisCluster();
  for (const { client } of cluster.nodes) await client.call('ACL', 'SETUSER', 'posthorn', ...(rules ?? []));
  redis = await clusterClient(cluster, 'posthorn:change-me');
  blocking = blockingConnection(address(), { blockMs: changeStreamBlockMs });
  blocking.on('error', () => {});
});
afterAll(async () => {
  redis.disconnect();
  await cluster.stop();
});

test('on a Redis Cluster, as the user that operations has, the store works, also while its slot moves', async () => {
  const options = { redis, prefix, clock: systemClock, logger: silentLogger };
  const store = new RedisWebhookStore(options);
  const directory = new WebhookDirectory({ ...options, blocking });
  directory.start();
  const { id: applicationId } = await store.createApplication({ org, name: 'a', shard: 0, externalId: 'x' });
  const work = async (): Promise<string[]> => {
    const made: string[] = [];
    for (let i = 0; i < 40; i++) {
      const { id } = await store.createEndpoint(newWebhookEndpoint(applicationId));
      await store.createSubscriptions({ org, endpointId: id }, ['etp_a', 'etp_b']);
      await store.updateEndpoint(org, id, { description: `number ${i}` });
      made.push(id);
    }
    return made;
  };
  const [made, moved] = await Promise.all([
    work(),
    moveSlots(cluster, [webhookKeys(prefix, org).counters]).catch((error: unknown) => error),
  ]);
  expect(moved === 0 || moved === 1).toBe(true);
  const listed = await allPages((page) => store.endpoints(org, { applicationId }, page), 7);
  expect(listed.map(({ id }) => id)).toEqual(made.toReversed());
  expect(listed[0]?.description).toBe('number 39');
  expect((await store.applications(org, { orderBy: 'name', order: 'asc' }, { limit: 5 })).items).toHaveLength(1);
  expect(await store.subscriptionCounts(org, ['etp_a'])).toEqual(new Map([['etp_a', 40]]));
  const candidates = new WebhookCandidates({ redis, prefix });
  expect((await candidates.ofEventType(org, 'etp_a', 0, 100)).candidates).toHaveLength(40);
  const before = await candidates.version(org, 'etp_a');

  const [endpointId = ''] = made;
  expect((await directory.endpoint(org, endpointId))?.isDisabled).toBe(false);
  await store.updateEndpoint(org, endpointId, { isDisabled: true });
  await eventually(async () => expect((await directory.endpoint(org, endpointId))?.isDisabled).toBe(true));
  expect(await candidates.version(org, 'etp_a')).not.toBe(before);
  await store.deleteApplication(org, applicationId);
  await new WebhookSweeper(options).sweep();
  expect(await directory.endpoint(org, endpointId)).toBeNull();
  await new RedisMessagePurger({ redis, prefix }).purgeOrganization(org, new AbortController().signal);
  for (const key of webhookKeys(prefix, org).all) expect(await redis.exists(key)).toBe(0);
  await directory.stop();
});

test('a change is waited for at the primary that has it', async () => {
  const connection = commandConnection(address(), { commandTimeoutMs: 90_000 });
  connection.on('error', () => {});
  await connection.connect();
  const infos = async (section: string) => Promise.all((await cluster.masters()).map(({ client }) => client.info(section)));
  await eventually('each primary to have its replica', 30_000, async () =>
    (await infos('replication')).every((text) => text.includes('state=online')),
  );
  try {
    const registry = new Registry();
    const writes = new ReplicatedWrites({ redis: connection, clock: systemClock, logger: silentLogger, registry, limitMs: 60_000 });
    const store = new RedisWebhookStore({ redis, writes, prefix, clock: systemClock, logger: silentLogger });
    const orgs = Array.from({ length: 12 }, (_, i) => `org_waits_${i}`);
    for (const each of orgs) await store.createApplication({ org: each, name: 'a', shard: 0 });
    const waited = await Promise.all(
      (await cluster.masters()).map(async ({ client }) => {
        const keys = await client.keys(`${prefix}*`);
        const calls = Number(/^cmdstat_wait:calls=(\d+)/m.exec(await client.info('commandstats'))?.[1] ?? 0);
        return { calls, own: orgs.filter((each) => keys.some((key) => key.includes(`${each}}`))).length };
      }),
    );
    for (const { calls, own } of waited) expect(calls).toBe(own);
    expect(waited.filter(({ own }) => own > 0).length).toBeGreaterThan(1);
    expect((await registry.getSingleMetric('posthorn_unreplicated_writes_total')?.get())?.values[0]?.value).toBe(0);
  } finally {
    connection.disconnect();
  }
});

test('a replica that does not acknowledge holds up the changes of its own server only', async () => {
  const connection = commandConnection(address(), { commandTimeoutMs: 90_000 });
  connection.on('error', () => {});
  await connection.connect();
  const registry = new Registry();
  const writes = new ReplicatedWrites({ redis: connection, clock: new FakeClock(), logger: silentLogger, registry, limitMs: 5000 });
  const store = new RedisWebhookStore({ redis, writes, prefix, clock: systemClock, logger: silentLogger });
  const unacknowledged = async () => (await registry.getSingleMetric('posthorn_unreplicated_writes_total')?.get())?.values[0]?.value;
  const orgs = Array.from({ length: 12 }, (_, i) => `org_apart_${i}`);
  for (const each of orgs) await store.createApplication({ org: each, name: 'a', shard: 0 });
  expect(await unacknowledged()).toBe(0);
  const found = await Promise.all(
    (await cluster.masters()).map(async ({ client, port }) => {
      const keys = await client.keys(`${prefix}*`);
      return { port, own: orgs.find((each) => keys.some((key) => key.includes(`${each}}`))) ?? '' };
    }),
  );
  const [slow, quick] = found.filter(({ own }) => own !== '');
  const followed = await Promise.all(cluster.nodes.map(({ client }) => client.info('replication')));
  const thaw = cluster.nodes[followed.findIndex((text) => text.includes(`master_port:${slow?.port}\r`))]?.freeze();
  try {
    const answered: unknown[] = [];
    const change = async (server: typeof slow): Promise<void> => {
      await store.createApplication({ org: server?.own ?? '', name: 'b', shard: 0 });
      answered.push(server);
    };
    const held = change(slow);
    await change(quick);
    await held;
    await change(quick);
    expect(answered).toEqual([quick, slow, quick]);
    expect(await unacknowledged()).toBe(1);
  } finally {
    thaw?.();
    connection.disconnect();
  }
});

test('a request between the move of the keys and that of their slot is answered', async () => {
  const key = `${prefix}{wh:org_b}:x`;
  await redis.set(key, 'there');
  const answers: (string | null)[] = [];
  expect(await moveSlots(cluster, [key], async () => answers.push(await redis.get(key)))).toBe(1);
  expect(answers).toEqual(['there']);
});
