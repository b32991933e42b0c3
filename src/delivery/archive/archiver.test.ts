import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { testKeyring } from '../../../test/support/controllers.ts';
import { rowsOfObjects } from '../../../test/support/duckdb.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { type StoreServer, s3Keys, startS3Server } from '../../../test/support/object-stores.ts';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord, warehouseRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { startTestDelivery } from '../../../test/support/test-delivery.ts';
import { waitForPeriodStart } from '../../../test/support/wait-for-period-start.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import type { WarehouseRecord } from '../../core/records.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';
import { ArchiveFailures } from '../../data/history/archive-failures.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { OrganizationPools } from '../../data/pools/organization-pools.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';

const prefix = 'test:';
const due = { finishedMs: -1000, deadLettersMs: -1000 };

let redis: RedisServer;
let store: StoreServer;
let receiver: Receiver;
let registry: RecordRegistry;
let acceptor: RedisMessageAcceptor;
let reader: RedisMessageReader;
let queue: RedisDeliveryQueue;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
  receiver = await startReceiver();
  const shared = { redis: redis.client, prefix };
  acceptor = new RedisMessageAcceptor({ ...shared, clock: lenientClock });
  reader = new RedisMessageReader(shared);
  queue = new RedisDeliveryQueue(shared);
});
afterAll(async () => {
  await receiver.close();
  await redis.stop();
});
beforeEach(async () => {
  await redis.client.flushall();
  store = await startS3Server();
  ends.push(() => store.stop());
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord({ archive: { destinationId: 'dst_w' } }));
  registry.put('route', routeRecord());
  registry.put('destination', destinationRecord({ url: receiver.url }));
  putWarehouse();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function putWarehouse(changes: Partial<WarehouseRecord> = {}, enabled = true, { id = 'dst_w', org = 'org_a' } = {}): void {
  const secretAccessKey = testKeyring.seal(s3Keys.secretAccessKey, recordSealingContext(org, 'destination', id, 'secretAccessKey'));
  const s3 = { bucket: store.bucket, region: 'us-east-1', credentials: { accessKeyId: s3Keys.accessKeyId, secretAccessKey } };
  registry.put('destination', warehouseRecord({ type: 's3', s3 }, changes, { id, org, enabled }));
}

function start(pool?: string): Registry {
  const metrics = new Registry();
  const warehouse = { endpoints: { s3: store.url }, archiveAgeMs: 0 };
  const delivery = startTestDelivery(redis, {
    prefix,
    registry,
    metrics,
    warehouse,
    egress: { allowedCidrs: ['127.0.0.0/8'] },
    ...(pool && { pool }),
  });
  ends.push(() => delivery.stop(2000));
  return metrics;
}

const figure = async (metrics: Registry, name: string): Promise<number> => {
  const found = (await metrics.getMetricsAsJSON()).find((metric) => metric.name === name);
  return (found?.values ?? []).reduce((sum, { value }) => sum + value, 0);
};

/** Retries after a failure are due now. */
const tryNow = (): Promise<unknown> => redis.client.zadd(`${prefix}{s0}:az`, 'XX', 0, 'org_a');

async function lines(): Promise<Record<string, unknown>[]> {
  const contents = [...(await store.objects()).values()];
  return contents.flatMap((content) => content.toString().trim().split('\n')).map((line) => JSON.parse(line));
}

test('what has ended is read as partitioned tables, one of deliveries and one of messages, and then goes', async () => {
  await waitForPeriodStart(86_400_000, 30_000);
  putWarehouse({ prefix: '/raw/' });
  const metrics = start();
  const headers: [string, string][] = [
    ['x-gitlab-token', 'the secret'],
    ['x-api-key', 'the secret'],
  ];
  const sent = Array.from({ length: 3 }, (_, i) =>
    newEvent({ headers, query: `n=%2f${i}`, payload: Buffer.from(`{"order":${i},"big":12345678901234567890}`) }),
  );
  await Promise.all(sent.map((event) => acceptor.accept(event)));
  await acceptor.accept(newEvent({ destinations: [], filteredRoutes: ['rte_a'] }));
  const gone = newWebhookEvent('org_a', [{ id: 'ep_gone', applicationId: 'app_a' }], { webhook: { labels: { country: 'at' } } });
  await acceptor.accept(gone);
  await eventually(async () => expect(await figure(metrics, 'posthorn_archived_messages_total')).toBe(4));
  // A dead letter is archived, in both meanings, when its time is over.
  await eventually(async () => expect(await queue.prune(due)).toMatchObject({ lost: 0 }));
  await eventually(async () => expect(await figure(metrics, 'posthorn_archived_messages_total')).toBe(5));

  const today = new Date().toISOString().slice(0, 10);
  for (const key of (await store.objects()).keys())
    expect(key).toMatch(new RegExp(`^raw/archive/(deliveries|messages)/date=${today}/[0-9A-Z]{26}\\.jsonl$`));
  const deliveries = await rowsOfObjects(
    store,
    `SELECT CAST(date AS VARCHAR) AS date, id, status, attempts, attemptLog[1].responseBody AS body, payload.order AS o, query, source
     FROM read_json('DIRECTORY/raw/archive/deliveries/**/*.jsonl', hive_partitioning = true) ORDER BY status, o`,
  );
  expect(deliveries).toEqual([
    ...sent.map(({ targets }, i) => ({
      date: today,
      id: targets[0]?.messageId,
      status: 'delivered',
      attempts: '1',
      body: 'ok',
      o: String(i),
      query: `n=%2f${i}`,
      source: 'shop',
    })),
    expect.objectContaining({ status: 'filtered', attempts: '0', body: null, query: '' }),
  ]);
  const messages = await rowsOfObjects(
    store,
    `SELECT id, eventType, endpointId, status, dlqReason, labels.country AS country FROM read_json('DIRECTORY/raw/archive/messages/**/*.jsonl')`,
  );
  expect(messages).toEqual([
    {
      id: gone.targets[0]?.messageId,
      eventType: 'order.paid',
      endpointId: 'ep_gone',
      status: 'exhausted',
      dlqReason: 'endpoint_not_found',
      country: 'at',
    },
  ]);
  const written = JSON.stringify([...(await store.objects()).values()].map(String));
  expect(written).toContain('12345678901234567890');
  expect(written).not.toContain('the secret');
  while ((await queue.prune(due)).hasMore);
  expect(await redis.client.keys(`${prefix}{s0}:m:*`)).toEqual([]);
});

test('a payload above 1 MiB is null in the archive, and the rest of its record is there', async () => {
  const metrics = start();
  const large = newEvent({ payload: Buffer.alloc(1_048_577, 'x') });
  await acceptor.accept(large);
  await acceptor.accept(newEvent());
  await eventually(async () => expect(await figure(metrics, 'posthorn_archived_messages_total')).toBe(2));
  const found = (await lines()).map(({ eventId, status, payload }) => ({ eventId, status, payload }));
  expect(found).toContainEqual({ eventId: large.id, status: 'delivered', payload: null });
  expect(found).toContainEqual(expect.objectContaining({ status: 'delivered', payload: { a: 1 } }));
});

test('a store that is down gets everything when it is up again; until then it is reported, and nothing goes', async () => {
  const metrics = start();
  await store.halt();
  const event = newEvent();
  await acceptor.accept(event);
  await eventually(async () => expect(await figure(metrics, 'posthorn_archive_uploads_total')).toBeGreaterThan(0));
  await eventually(async () =>
    expect((await new ArchiveFailures({ redis: redis.client, prefix }).all()).get('org_a')?.failing?.message).toMatch(/ECONNREFUSED/),
  );
  expect(await queue.prune(due)).toMatchObject({ removed: 0, lost: 0 });
  expect(await reader.delivery('org_a', event.targets[0]?.messageId ?? '')).toMatchObject({ status: 'delivered' });
  await store.resume();
  await tryNow();
  await eventually(async () => expect(await figure(metrics, 'posthorn_archived_messages_total')).toBe(1), 30_000);
  expect(await lines()).toMatchObject([{ id: event.targets[0]?.messageId }]);
  expect((await new ArchiveFailures({ redis: redis.client, prefix }).all()).get('org_a')).toBeUndefined();
  expect(await queue.prune(due)).toMatchObject({ removed: 1, lost: 0 });
});

test('an archive without its destination, or with one that is disabled, waits and says why; json is one array in a file', async () => {
  registry.put('organization', organizationRecord({ archive: { destinationId: null } }));
  const metrics = start();
  await acceptor.accept(newEvent());
  const why = async () => (await new ArchiveFailures({ redis: redis.client, prefix }).all()).get('org_a')?.failing?.message;
  await eventually(async () => expect(await why()).toBe('the destination of the archive is not there, or is no warehouse'));
  putWarehouse({ fileFormat: 'json' }, false);
  registry.put('organization', organizationRecord({ archive: { destinationId: 'dst_w' } }));
  await eventually(async () => expect(await why()).toBe('the destination of the archive is disabled, or suspended by the plan'));
  putWarehouse({ fileFormat: 'json' });
  await tryNow();
  await eventually(async () => expect(await figure(metrics, 'posthorn_archived_messages_total')).toBe(1), 30_000);
  const [[key, content] = ['', Buffer.alloc(0)]] = await store.objects();
  expect(key).toMatch(/^archive\/deliveries\/date=[-0-9]+\/[0-9A-Z]{26}\.json$/);
  expect(JSON.parse(content.toString())).toMatchObject([{ status: 'delivered' }]);
});

test('an archive of an organization that has a pool of its own is written by no other worker', async () => {
  registry.put('organization', organizationRecord({ id: 'org_b', archive: { destinationId: 'dst_b' } }));
  putWarehouse({}, true, { id: 'dst_b', org: 'org_b' });
  await new OrganizationPools({ redis: redis.client, prefix, shards: 1 }).assign('org_a', 'x');
  // Ends without a worker.
  const ended = () => newEvent({ destinations: [], filteredRoutes: ['rte_a'] });
  for (const org of ['org_a', 'org_b']) await acceptor.accept({ ...ended(), org });
  const written = (metrics: Registry) => figure(metrics, 'posthorn_archived_messages_total');
  const here = start();
  await eventually(async () => expect(await written(here)).toBe(1));
  const there = start('x');
  await eventually(async () => expect(await written(there)).toBe(1));
  expect(await written(here)).toBe(1);
});
