import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { expireMessages } from '../../test/support/expire-messages.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import type { HttpDestinationRecord } from '../core/records.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';

const prefix = 'test:';
let redis: RedisServer;
let registry: RecordRegistry;
let acceptor: RedisMessageAcceptor;
let ops: Receiver;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord({ egress: { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] } }));
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  ops = await startReceiver();
  ends.push(() => ops.close());
  const notifications = { onFailure: true, onSuccess: false, onRecovery: false, failureThreshold: 1, channelIds: null, emails: [] };
  registry.put('route', routeRecord({ notifications }));
  registry.put('notificationChannel', {
    v: 1,
    id: 'nch_a',
    org: 'org_a',
    slug: 'nch_a',
    name: 'nch_a',
    enabled: true,
    channel: { type: 'webhook', url: ops.url, headers: [], signingSecrets: [] },
    generation: 1,
  });
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const expiry = 'the message was not delivered before it expired';

test.each<[string, Partial<HttpDestinationRecord>, object]>([
  ['was never attempted', { enabled: false }, { attempts: 0, responseStatus: null, errorMessage: expiry }],
  ['has failed before', {}, { attempts: 1, responseStatus: 503, errorMessage: `${expiry}; before: the receiver answered 503` }],
])('an alert about a message that has expired and %s says that it has', async (_, settings, expected) => {
  const shop = await startReceiver((response) => response.writeHead(503).end());
  ends.push(() => shop.close());
  const retryPolicy = { maxRetries: 3, initialDelayMs: 60_000, maxDelayMs: 60_000, backoffMultiplier: 1 };
  registry.put('destination', destinationRecord({ url: shop.url }, { retryPolicy, ...settings }));
  ends.push(startAlertingWorker(redis, { prefix, registry, shards: 1, logger: silentLogger, metrics: new Registry() }));
  const event = newEvent();
  const expiresAtMs = Date.now() + 2000;
  await acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, expiresAtMs })) });
  const [request] = await ops.arrived(1);
  expect(JSON.parse(request?.body.toString() ?? '')).toMatchObject({ type: 'delivery.failed', ...expected });
});

test('there is an alert about a message that has expired before any worker has configured its target', async () => {
  registry.put('destination', destinationRecord({ url: ops.url }));
  const event = newEvent();
  const expiresAtMs = Date.now() + 60_000;
  await acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, expiresAtMs })) });
  await expireMessages(redis.client, `${prefix}{s0}:`);
  await new RedisDeliveryQueue({ redis: redis.client, prefix }).promote();
  ends.push(startAlertingWorker(redis, { prefix, registry, shards: 1, logger: silentLogger, metrics: new Registry() }));
  const [request] = await ops.arrived(1);
  expect(JSON.parse(request?.body.toString() ?? '')).toMatchObject({ type: 'delivery.failed', attempts: 0, errorMessage: expiry });
});
