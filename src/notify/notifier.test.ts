import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { Webhook } from 'standardwebhooks';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { testKeyring } from '../../test/support/controllers.ts';
import { endAlertWindows } from '../../test/support/end-alert-windows.ts';
import { eventually } from '../../test/support/eventually.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { startTestDelivery } from '../../test/support/test-delivery.ts';
import { alertOrganization } from '../core/alert.ts';
import { newTimedId } from '../core/ids.ts';
import type { ChannelRecord, NotificationsRecord } from '../core/records.ts';
import { recordSealingContext, type SealedRecordField } from '../core/sealing-contexts.ts';
import { ChannelAlerts } from '../data/alerts/channel-alerts.ts';
import { RedisStatisticsReader } from '../data/analytics/redis-statistics-reader.ts';
import { checkShards } from '../data/check/shard-check.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageReplayer } from '../data/history/message-replayer.ts';
import { RedisMessagePurger } from '../data/purge/message-purger.ts';
import { Circuits } from '../data/queue/circuits.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { systemClock } from '../runtime/system-clock.ts';

const prefix = 'test:';
const shards = 3;
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
let redis: RedisServer;
let registry: RecordRegistry;
let acceptor: RedisMessageAcceptor;
let reader: RedisMessageReader;
let logLines: string[];
let metrics: Registry;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  logLines = [];
  metrics = new Registry();
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord({ egress: { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] } }));
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const logger = pino({ level: 'debug' }, { write: (line: string) => void logLines.push(line) });

function worker(): void {
  ends.push(startAlertingWorker(redis, { prefix, registry, shards, logger, metrics }));
}
async function receiver(answer?: Parameters<typeof startReceiver>[0]): Promise<Receiver> {
  const started = await startReceiver(answer);
  ends.push(() => started.close());
  return started;
}
const refusing = (status: number, headers: Record<string, string> = {}): Promise<Receiver> =>
  receiver((response) => response.writeHead(status, headers).end());
const seal = (id: string, field: SealedRecordField, plain: string): string =>
  testKeyring.seal(plain, recordSealingContext('org_a', 'notificationChannel', id, field));
function channel(
  url: string,
  { id = 'nch_a', enabled = true, ...more }: Partial<ChannelRecord> & { id?: string; enabled?: boolean } = {},
): void {
  registry.put('notificationChannel', {
    v: 1,
    id,
    org: 'org_a',
    slug: id,
    name: id,
    enabled,
    channel: { type: 'webhook', url, headers: [], signingSecrets: [], ...more } as ChannelRecord,
    generation: 1,
  });
}
const all: NotificationsRecord = {
  onFailure: true,
  onSuccess: true,
  onRecovery: true,
  failureThreshold: 1,
  channelIds: null,
  emails: [],
};
function route(
  notifications: Partial<NotificationsRecord> = {},
  circuit = { failureThreshold: 1000, cooldownSeconds: 60, probeSuccessThreshold: 1 },
): void {
  const destinations = [0, 1, 2].map((shard) => ({ id: `dst_${shard}`, shard }));
  registry.put('route', routeRecord({ name: 'Orders', destinations, circuit, notifications: { ...all, ...notifications } }));
}
function destination(url: string, shard = 0): void {
  const policy = { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
  registry.put('destination', destinationRecord({ url }, { id: `dst_${shard}`, name: `Shop ${shard}`, shard, retryPolicy: policy }));
}
/** Events for the destination in this shard; returns the ids of their deliveries. */
async function send(count = 1, shard = 0): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const nowMs = Date.now();
    const target = { messageId: newTimedId('msg_', shard, nowMs), routeId: 'rte_a', destinationId: `dst_${shard}`, shard, maxAttempts: 1 };
    await acceptor.accept({ ...newEvent(), id: newTimedId('evt_', shard, nowMs), targets: [target] });
    ids.push(target.messageId);
  }
  return ids;
}
async function ended(ids: readonly string[], status: string): Promise<void> {
  await eventually(async () => {
    for (const id of ids) expect((await reader.delivery('org_a', id))?.status).toBe(status);
  });
}
/** Once everything that has ended is counted, in whatever shard. */
const counted = () =>
  eventually(async () => {
    for (let shard = 0; shard < shards; shard++) expect(await redis.client.exists(`${prefix}{s${shard}}:ends`)).toBe(0);
  });
const bodies = (to: Receiver) => to.requests.map(({ body }) => JSON.parse(body.toString()));
const typesAt = (to: Receiver): string[] => bodies(to).map(({ type, count }) => `${type} ${count}`);

describe('an alert', () => {
  test('an alert about a failure arrives at once, as the documented JSON, signed', async () => {
    const [shop, ops] = [await receiver((response) => response.writeHead(503).end('closed')), await receiver()];
    destination(shop.url);
    channel(`${ops.url}/alerts?a=1`, {
      headers: [{ name: 'Authorization', value: seal('nch_a', 'headerValue', 'Bearer canary-header') }],
      signingSecrets: [seal('nch_a', 'signingSecrets', secret)],
    });
    route();
    worker();
    const [id = ''] = await send();
    const [request] = await ops.arrived(1);
    const found = await reader.delivery('org_a', id);
    expect(request).toMatchObject({
      method: 'POST',
      path: '/alerts?a=1',
      headers: { authorization: 'Bearer canary-header', 'content-type': 'application/json', 'user-agent': 'Posthorn/0.0.0-test' },
    });
    const alert = new Webhook(secret).verify(request?.body.toString() ?? '', request?.headers as Record<string, string>);
    expect(alert).toEqual({
      type: 'delivery.failed',
      organizationId: 'org_a',
      route: { id: 'rte_a', name: 'Orders' },
      destination: { id: 'dst_0', name: 'Shop 0' },
      circuitState: 'closed',
      event: { id: found?.eventId, receivedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
      attempts: 1,
      responseStatus: 503,
      errorMessage: 'the receiver answered 503',
      count: 1,
      firstAt: expect.any(String),
      lastAt: expect.any(String),
    });
  });

  test('an alert counts messages that their schema or transform kept from being sent', async () => {
    const [shop, ops] = [await receiver(), await receiver()];
    destination(shop.url);
    channel(ops.url);
    const destinations = [{ id: 'dst_0', shard: 0 }];
    registry.put('route', routeRecord({ transformId: 'trf_a', destinations, notifications: { ...all, failureThreshold: 2 } }));
    registry.put('transform', { v: 1, id: 'trf_a', org: 'org_a', type: 'javascript', code: 'none.such', generation: 1 });
    worker();
    await ended(await send(), 'transform_failed');
    const broken = { messageId: newTimedId('msg_', 1, Date.now()), routeId: 'rte_a', brokenSchema: 'no id', failedFor: 'dst_0' };
    await acceptor.accept({ ...newEvent(), id: newTimedId('evt_', 1, Date.now()), targets: [], invalid: [broken] });
    await ops.arrived(1);
    expect(bodies(ops)).toMatchObject([{ type: 'delivery.failed', destination: { id: 'dst_0' }, count: 2, errorMessage: 'no id' }]);
  });

  test('an alert of a type is followed by one for all that came within the window', async () => {
    const [shop, ops] = [await refusing(500), await receiver()];
    destination(shop.url);
    channel(ops.url);
    route();
    worker();
    await send();
    await ops.arrived(1);
    await ended(await send(4), 'dlq');
    await counted();
    expect(typesAt(ops)).toEqual(['delivery.failed 1']);
    await endAlertWindows(redis.client, prefix);
    await ops.arrived(2);
    expect(typesAt(ops)).toEqual(['delivery.failed 1', 'delivery.failed 4']);
  });

  test('an alert is one for the route, whatever shards its destinations live in', async () => {
    const [shop, ops] = [await refusing(500), await receiver()];
    for (const shard of [0, 1, 2]) destination(shop.url, shard);
    channel(ops.url);
    route();
    worker();
    for (const shard of [0, 1, 2]) await ended(await send(2, shard), 'dlq');
    await ops.arrived(1);
    await counted();
    await endAlertWindows(redis.client, prefix);
    await eventually(async () => expect(bodies(ops).reduce((sum, { count }) => sum + count, 0)).toBe(6));
    expect(ops.requests.length).toBeLessThanOrEqual(2);
  });

  test('an alert about a recovery comes with the first delivery after it', async () => {
    let isUp = false;
    const [shop, ops] = [await receiver((response) => response.writeHead(isUp ? 200 : 500).end()), await receiver()];
    destination(shop.url);
    channel(ops.url);
    route({ onSuccess: false });
    worker();
    await ended(await send(), 'dlq');
    await ops.arrived(1);
    isUp = true;
    await ended(await send(3), 'delivered');
    await ops.arrived(2);
    expect(typesAt(ops)).toEqual(['delivery.failed 1', 'route.recovered 1']);
  });

  test('an alert about a success goes out when the route requests it', async () => {
    const [shop, ops] = [await receiver(), await receiver()];
    destination(shop.url);
    channel(ops.url);
    route();
    worker();
    await send();
    await ops.arrived(1);
    expect(bodies(ops)).toMatchObject([{ type: 'delivery.succeeded', count: 1, responseStatus: 200, errorMessage: null }]);
  });

  test('an alert about a circuit names its state', async () => {
    const [shop, ops] = [await refusing(500), await receiver()];
    destination(shop.url);
    channel(ops.url);
    route({ failureThreshold: 100 }, { failureThreshold: 2, cooldownSeconds: 600, probeSuccessThreshold: 1 });
    worker();
    await ended(await send(2), 'dlq');
    await ops.arrived(1);
    await new Circuits({ redis: redis.client, prefix, shards: () => shards }).reset('org_a', 'rte_a', ['dst_0']);
    await ops.arrived(2);
    expect(bodies(ops)).toMatchObject([
      { type: 'circuit.opened', circuitState: 'open', destination: { id: 'dst_0' }, event: null, count: 1 },
      { type: 'circuit.closed', circuitState: 'closed' },
    ]);
  });

  test('an alert does not go out for a route without flags, to other channels than those it names, or to disabled ones', async () => {
    const [shop, ops, other] = [await refusing(500), await receiver(), await receiver()];
    destination(shop.url);
    channel(ops.url, { id: 'nch_a' });
    channel(other.url, { id: 'nch_b' });
    channel(other.url, { id: 'nch_c', enabled: false });
    route({ channelIds: ['nch_a', 'nch_c', 'nch_gone'] });
    worker();
    await ended(await send(), 'dlq');
    await ops.arrived(1);
    registry.put('route', routeRecord({ destinations: [{ id: 'dst_0', shard: 0 }] }));
    await ended(await send(3), 'dlq');
    expect(other.requests).toEqual([]);
  });
});

describe('a channel', () => {
  test('a channel that is down gets the alert later, holds up nothing, and raises no alert', async () => {
    let isUp = false;
    const [shop, ops, down] = [
      await refusing(500),
      await receiver(),
      await receiver((response) => response.writeHead(isUp ? 200 : 503, { 'retry-after': '1' }).end()),
    ];
    destination(shop.url);
    channel(ops.url);
    channel(down.url, { id: 'nch_b' });
    route();
    worker();
    await send();
    await Promise.all([ops.arrived(1), down.arrived(1)]);
    isUp = true;
    await down.arrived(2);
    expect(down.requests[1]?.headers['webhook-id']).toBe(down.requests[0]?.headers['webhook-id']);
    expect(down.requests[1]?.body).toEqual(down.requests[0]?.body);
    expect(ops.requests).toHaveLength(1);
  });

  test.each<[string, number, Record<string, string>]>([
    ['is gone for good', 410, {}],
    ['rejects it permanently', 503, { 'x-posthorn-retry': 'no', 'retry-after': '3600' }],
  ])('an alert whose channel %s is given up, with a log line and a metric, and without an alert', async (_, status, headers) => {
    const [shop, ops] = [await refusing(500), await refusing(status, headers)];
    destination(shop.url);
    channel(ops.url);
    route();
    worker();
    await send();
    await eventually(() => expect(logLines.join('')).toContain('an alert could not be sent and is given up'));
    expect(await metrics.getSingleMetricAsString('posthorn_alert_outcomes_total')).toContain('{channel="webhook",outcome="dead"} 1');
    await eventually(async () => expect((await checkShards({ redis: redis.client, prefix, shards })).unfinished).toBe(0));
    expect(ops.requests).toHaveLength(1);
  });

  test('a channel that is deleted takes what waits for it along', async () => {
    const [shop, ops] = [await refusing(500), await receiver((response) => response.writeHead(503, { 'retry-after': '3600' }).end())];
    destination(shop.url);
    channel(ops.url);
    route();
    worker();
    await ended(await send(), 'dlq');
    await ops.arrived(1);
    await eventually(async () => expect((await checkShards({ redis: redis.client, prefix, shards })).unfinished).toBe(1));
    registry.remove('notificationChannel', 'nch_a');
    await eventually(async () => expect((await checkShards({ redis: redis.client, prefix, shards })).unfinished).toBe(0));
  });

  test('a channel says when an alert last arrived, and what became of those that were sent', async () => {
    const busy = await receiver((response) => response.writeHead(503, { 'retry-after': '3600' }).end());
    destination(busy.url);
    channel((await receiver()).url);
    channel(busy.url, { id: 'nch_b' });
    route();
    worker();
    const alerts = new ChannelAlerts({ redis: redis.client, prefix });
    await send();
    await eventually(async () => expect(await alerts.lastArrivalMs('org_a', 'nch_a')).toBeGreaterThan(Date.now() - 60_000));
    const about = { type: 'delivery.failed', route: { name: 'Orders' }, destination: { name: 'Shop 0' }, isTest: false, attempts: 1 };
    expect(await alerts.newest('org_a', 'nch_a')).toMatchObject([
      { ...about, state: 'delivered', responseStatus: 200, errorMessage: null },
    ]);
    await eventually(async () =>
      expect(await alerts.newest('org_a', 'nch_b')).toMatchObject([{ ...about, state: 'retrying', responseStatus: 503 }]),
    );
    expect(await alerts.lastArrivalMs('org_a', 'nch_b')).toBeNull();
  });
});

test('alerts are in no list, counter or statistic of the organization, and every message is in one place', async () => {
  const [shop, ops] = [await refusing(500), await refusing(410)];
  destination(shop.url);
  channel(ops.url);
  route();
  worker();
  await ended(await send(2), 'dlq');
  await ops.arrived(1);
  await eventually(() => expect(logLines.join('')).toContain('given up'));
  await eventually(async () => expect((await checkShards({ redis: redis.client, prefix, shards })).unfinished).toBe(0));
  expect((await reader.events('org_a', {}, { limit: 50 })).items).toHaveLength(2);
  expect((await reader.deliveries('org_a', {}, { limit: 50 })).items).toHaveLength(2);
  expect((await reader.deliveries('org_a', { routeId: 'rte_a' }, { limit: 50 })).items).toHaveLength(2);
  const alerts = (await reader.deliveries(alertOrganization('org_a'), {}, { limit: 50 })).items;
  expect(alerts).toHaveLength(1);
  expect(await reader.delivery('org_a', alerts[0]?.id ?? '')).toBeNull();
  expect(await reader.event('org_a', alerts[0]?.eventId ?? '')).toBeNull();
  const clock = systemClock;
  const statistics = new RedisStatisticsReader({ redis: redis.client, prefix, clock, shards: () => shards });
  expect((await statistics.ofOrganization('org_a', '1h')).total).toMatchObject({ delivered: 0 });
  const stats = await new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock, shards: () => shards }).deadLetterStats(
    'org_a',
  );
  expect(stats.total).toBe(2);
  expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
  for (const end of ends.splice(0).reverse()) await end();
  await new RedisMessagePurger({ redis: redis.client, prefix, shards }).purgeOrganization('org_a', new AbortController().signal);
  expect((await redis.client.keys('*')).filter((key) => /org_a|nch_a|rte_a/.test(key))).toEqual([]);
});

test('what several workers log at the same time is counted once', async () => {
  const [shop, ops] = [await refusing(500), await receiver()];
  destination(shop.url);
  channel(ops.url);
  route();
  for (let i = 0; i < 3; i++) {
    metrics = new Registry();
    worker();
  }
  await ended(await send(40), 'dlq');
  await ops.arrived(1);
  await counted();
  await endAlertWindows(redis.client, prefix);
  await eventually(async () => expect(bodies(ops).reduce((sum, { count }) => sum + count, 0)).toBe(40));
  expect(ops.requests.length).toBeLessThanOrEqual(3);
  expect(new Set(ops.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(ops.requests.length);
});

test('what was decided and not queued when a worker died is queued by the next', async () => {
  const [shop, ops] = [await refusing(500), await receiver()];
  destination(shop.url);
  channel(ops.url);
  route();
  const delivery = startTestDelivery(redis, { prefix, registry, shards, egress: { allowedCidrs: ['127.0.0.0/8'] } });
  await ended(await send(), 'dlq');
  await delivery.stop(1000);
  expect(ops.requests).toEqual([]);
  worker();
  await ops.arrived(1, 40_000);
  expect(typesAt(ops)).toEqual(['delivery.failed 1']);
});
