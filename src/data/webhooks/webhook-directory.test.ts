import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { blockingConnection } from '../../redis/connection.ts';
import { changeStreamBlockMs } from '../registry/change-stream.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { WebhookDirectory } from './webhook-directory.ts';
import { webhookKeys } from './webhook-keys.ts';

const org = 'org_a';
const prefix = 'test:';
let redis: RedisServer;
let clock: FakeClock;
let store: RedisWebhookStore;
let directory: WebhookDirectory;
let heard: string[];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  clock = new FakeClock();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock, logger: silentLogger });
  await open();
});
afterEach(() => directory.stop());

async function open(maxEntries?: number): Promise<void> {
  const blocking = blockingConnection(redis.url, { blockMs: changeStreamBlockMs });
  blocking.on('error', () => {});
  directory = new WebhookDirectory({ redis: redis.client, blocking, prefix, clock, logger: silentLogger, maxEntries });
  heard = [];
  directory.onChange((changeKey) => heard.push(changeKey));
  directory.start();
  await eventually(() => expect(heard).toEqual(['*']));
}

async function make() {
  const application = await store.createApplication({ org, name: 'a', shard: 0 });
  const endpoint = await store.createEndpoint(newWebhookEndpoint(application.id));
  const subscription = await store.createSubscription({ org, endpointId: endpoint.id, eventTypeId: 'etp_a' });
  return { application, endpoint, subscription };
}

/** From the third read on what is found is kept. */
async function keep(read: () => Promise<unknown>): Promise<void> {
  for (let times = 0; times < 3; times++) await read();
}

/** How many script calls it took. */
async function callsOf(action: () => Promise<unknown>): Promise<number> {
  const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.client.info('commandstats'))?.[1] ?? 0);
  const before = await calls();
  await action();
  return (await calls()) - before;
}

test('objects are read three times, and again after a change of them or of what they are below', async () => {
  const { application, endpoint, subscription } = await make();
  const reads = [
    () => directory.application(org, application.id),
    () => directory.endpoint(org, endpoint.id),
    () => directory.subscription(org, subscription.id),
  ];
  const readAll = () => Promise.all(reads.map((read) => read()));
  for (const read of reads) expect(await callsOf(() => keep(read))).toBe(3);
  expect(await readAll()).toEqual([application, endpoint, subscription]);
  expect(await callsOf(readAll)).toBe(0);
  const changed = await store.updateEndpoint(org, endpoint.id, { url: 'https://elsewhere.example' });
  await eventually(async () => expect(await readAll()).toEqual([application, changed, subscription]));
  await store.updateSubscription(org, subscription.id, { transformId: 'trf_x' });
  await eventually(async () => expect((await directory.subscription(org, subscription.id))?.transformId).toBe('trf_x'));
  // The first change of a store flushes; from then on each is told.
  expect(heard.slice(1)).toEqual(['*', `webhookSubscription:${subscription.id}`]);
  await store.deleteApplication(org, application.id);
  await eventually(async () => expect(await readAll()).toEqual([null, null, null]));
  expect(heard).toContain(`webhookApplication:${application.id}`);
});

test('what is asked for at the same time is read together, and one that is not there is not mixed up with the others', async () => {
  const { application, endpoint } = await make();
  const { id: otherId } = await store.createEndpoint(newWebhookEndpoint(application.id));
  const ids = [endpoint.id, `${endpoint.id.slice(0, -1)}_`, otherId];
  let found: (string | undefined)[] = [];
  const readAll = async () => {
    found = (await Promise.all(ids.map((id) => directory.endpoint(org, id)))).map((each) => each?.id);
  };
  expect(await callsOf(readAll)).toBe(1);
  expect(found).toEqual([endpoint.id, undefined, otherId]);
});

test('subscriptions of a deleted event type are gone', async () => {
  const { subscription } = await make();
  await keep(() => directory.subscription(org, subscription.id));
  expect(await directory.subscription(org, subscription.id)).toEqual(subscription);
  await store.deleteEventType(org, 'etp_a');
  await eventually(async () => expect(await directory.subscription(org, subscription.id)).toBeNull());
});

test('what is not there is asked for anew, and found once it is made', async () => {
  const { application } = await make();
  await store.deleteApplication(org, application.id);
  expect(await directory.application(org, application.id)).toBeNull();
  const id = `app_${'b'.repeat(26)}`;
  expect(await directory.application(org, id)).toBeNull();
  await store.createApplication({ org, id, name: 'b', shard: 0 });
  expect((await directory.application(org, id))?.name).toBe('b');
});

test('a change without an announcement is seen within a minute', async () => {
  const { application } = await make();
  await keep(() => directory.application(org, application.id));
  const records = webhookKeys(prefix, org).declared[0].replace(/ctl$/, 'ap');
  const record = (await redis.client.hget(records, '1')) ?? '';
  await redis.client.hset(records, '1', record.replace('"n":"a"', '"n":"silent"'));
  await clock.advance(59_000);
  expect((await directory.application(org, application.id))?.name).toBe('a');
  await clock.advance(2000);
  expect((await directory.application(org, application.id))?.name).toBe('silent');
});

test('no more objects are kept than it may', async () => {
  await directory.stop();
  await open(10);
  const { application } = await make();
  const endpoints = await Promise.all(Array.from({ length: 30 }, () => store.createEndpoint(newWebhookEndpoint(application.id))));
  for (const { id } of endpoints) await keep(() => directory.endpoint(org, id));
  expect(await callsOf(async () => await Promise.all(endpoints.slice(20).map(({ id }) => directory.endpoint(org, id))))).toBe(0);
  expect(await callsOf(async () => await directory.endpoint(org, endpoints[0]?.id ?? ''))).toBe(1);
});

test('what is asked for once does not push out what is used', async () => {
  await directory.stop();
  await open(10);
  const { application } = await make();
  const endpoints = await Promise.all(Array.from({ length: 30 }, () => store.createEndpoint(newWebhookEndpoint(application.id))));
  await keep(() => directory.application(org, application.id));
  for (const { id } of endpoints) await directory.endpoint(org, id);
  expect(await callsOf(() => directory.application(org, application.id))).toBe(0);
});

test('after Redis was emptied nothing of before is served', async () => {
  const { application } = await make();
  await keep(() => directory.application(org, application.id));
  await redis.kill('SIGKILL');
  await redis.start();
  // No faster than the real time: the minute after which all is read again does not end.
  await eventually(async () => {
    await clock.advance(20);
    expect(await directory.application(org, application.id)).toBeNull();
  });
});
