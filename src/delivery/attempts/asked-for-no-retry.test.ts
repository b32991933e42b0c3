import { beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { publishRecords } from '../../../test/support/published-records.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import type { NewEvent } from '../../data/shard/messages.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const suite = deliverySuite();
const { receiver, worker } = suite;
const retryPolicy = { maxRetries: 3, initialDelayMs: 50, maxDelayMs: 50, backoffMultiplier: 1 };

beforeEach(() => suite.registry.put('route', routeRecord()));

async function ended(event: NewEvent, expected: object, org = 'org_a'): Promise<void> {
  const id = event.targets[0]?.messageId ?? '';
  await eventually(async () => expect(await suite.reader.delivery(org, id)).toMatchObject(expected));
}

const refused = {
  status: 'dlq',
  attempts: 1,
  deadLetterReason: 'max_retries_exceeded',
  lastErrorType: 'http_error',
  lastResponseStatus: 422,
  lastErrorMessage: 'the receiver answered 422, and asked for no retry',
};

test.each([
  ['no', refused],
  [' NO ', refused],
  [['later', 'no'], refused],
  ['yes', { status: 'delivered', attempts: 2 }],
  ['', { status: 'delivered', attempts: 2 }],
])('a destination that answers 422 with x-posthorn-retry: %j ends the message so', async (value, expected) => {
  const to = await receiver((response, number) => response.writeHead(number === 1 ? 422 : 200, { 'x-posthorn-retry': value }).end());
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy }));
  worker();
  const event = newEvent();
  await suite.acceptor.accept(event);
  await ended(event, expected);
  const next = newEvent();
  await suite.acceptor.accept(next);
  await ended(next, { status: 'delivered', attempts: 1 });
});

test('a message that its destination rejects permanently goes to the failover destination at once', async () => {
  const [first, spare] = [
    await receiver((response) => response.writeHead(503, { 'x-posthorn-retry': 'no', 'retry-after': '3600' }).end()),
    await receiver(),
  ];
  suite.registry.put('destination', destinationRecord({ url: first.url }, { retryPolicy }));
  suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_b', retryPolicy }));
  suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 3 } }));
  worker();
  const event = newEvent();
  await suite.acceptor.accept(event);
  await ended(event, { status: 'delivered', destinationId: 'dst_b' });
  expect(first.requests).toHaveLength(1);
});

test.each<[string, number, Record<string, string>]>([
  ['x-posthorn-retry: no', 422, { 'x-posthorn-retry': 'no' }],
  ['410', 410, {}],
])('a message that its destination rejected by %s does not come back to it from a failover destination', async (_, status, headers) => {
  const [first, spare] = [
    await receiver((response) => response.writeHead(status, headers).end()),
    await receiver((response) => response.writeHead(503, { 'retry-after': '3600' }).end()),
  ];
  const other = (fields: object) => destinationRecord({ url: spare.url }, { id: 'dst_b', retryPolicy, ...fields });
  suite.registry.put('destination', destinationRecord({ url: first.url }, { retryPolicy }));
  suite.registry.put('destination', other({}));
  suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 3 } }));
  worker();
  const event = newEvent();
  await suite.acceptor.accept(event);
  await ended(event, { status: 'retrying', destinationId: 'dst_b', attempts: 2 });
  suite.registry.put('destination', other({ enabled: false, generation: 2 }));
  await ended(event, { status: 'dlq', deadLetterReason: 'max_retries_exceeded' });
  expect(first.requests).toHaveLength(1);
});

test('a probe that its destination rejects ends as a message that was rejected', async () => {
  const to = await receiver((response, number) => {
    if (number === 1) response.writeHead(500).end();
    else response.writeHead(422, { 'x-posthorn-retry': 'no' }).end();
  });
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy }));
  suite.registry.put('route', routeRecord({ circuit: { failureThreshold: 1, cooldownSeconds: 1, probeSuccessThreshold: 1 } }));
  worker();
  const event = newEvent();
  await suite.acceptor.accept(event);
  await ended(event, { ...refused, attempts: 2 });
});

test('a message that a killed worker held is rejected at the attempt of the next worker, and its replay is sent again', async () => {
  const to = await receiver((response, number) => {
    if (number === 2) response.writeHead(422, { 'x-posthorn-retry': 'no' }).end();
    else if (number > 2) response.end();
  });
  const destination = destinationRecord({ url: to.url }, { retryPolicy });
  await publishRecords(suite.redis.client, suite.prefix, { route: routeRecord(), destination });
  const first = await suite.program();
  const id = await suite.send();
  await to.arrived(1);
  first.signal('SIGKILL');
  await first.ended;
  await suite.program();
  await suite.becomes(id, refused);
  const replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix: suite.prefix, clock: systemClock });
  const replay = await replayer.replay('org_a', id);
  await suite.becomes(replay, { status: 'delivered', attempts: 1 });
  expect(to.requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, id, replay]);
}, 120_000);

test('a metric counts what receivers reject, by header or 410, and no other failure', async () => {
  const metrics = new Registry();
  const rejections = async () =>
    (await metrics.metrics()).split('\n').filter((line) => line.startsWith('posthorn_delivery_rejections_total{'));
  const answers: [number, Record<string, string>][] = [
    [422, { 'x-posthorn-retry': 'no' }],
    [410, {}],
    [500, {}],
    [200, { 'x-posthorn-retry': 'no' }],
  ];
  const to = await receiver((response, number) => response.writeHead(...(answers[number - 1] ?? [200, {}])).end());
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy }));
  worker({ metrics });
  for (const attempts of [1, 1, 2]) {
    const event = newEvent();
    await suite.acceptor.accept(event);
    await ended(event, { status: attempts === 1 ? 'dlq' : 'delivered', attempts });
  }
  expect(await rejections()).toEqual([
    'posthorn_delivery_rejections_total{target="destination"} 2',
    'posthorn_delivery_rejections_total{target="endpoint"} 0',
    'posthorn_delivery_rejections_total{target="channel"} 0',
  ]);
});

test('an endpoint that answers 503 with x-posthorn-retry: no gets the message once, and stays enabled', async () => {
  const to = await receiver((response) => response.writeHead(503, { 'x-posthorn-retry': 'no', 'retry-after': '3600' }).end());
  const directory = new MemoryDirectory();
  directory.putApplication(webhookApplication());
  const sealed = testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext('org_a', 'ep_a'));
  directory.putEndpoint(webhookEndpoint({ url: to.url, secret: { sealed, prefix: 'whsec_AQEB…', version: 1, previous: [] } }));
  const metrics = new Registry();
  worker({ metrics, webhooks: { ...directory.sources(), retries: { delaysMs: [50, 100] } } });
  const org = webhookOrganization('org_a');
  const event: NewEvent = {
    ...newEvent({ payload: Buffer.from('{}'), headers: [] }),
    org,
    sourceId: 'etp_a',
    sourceSlug: 'order.paid',
    webhook: { labels: {}, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [] },
    targets: [
      {
        messageId: newTimedId('msg_', 0, Date.now()),
        routeId: 'app_a',
        destinationId: 'ep_a',
        shard: 0,
        maxAttempts: 3,
        subscription: { id: 'sub_a', transformId: null },
      },
    ],
  };
  await suite.acceptor.accept(event);
  await ended(event, { ...refused, lastResponseStatus: 503, lastErrorMessage: 'the receiver answered 503, and asked for no retry' }, org);
  expect(to.requests).toHaveLength(1);
  expect(directory.reasons).toEqual([]);
  expect(await metrics.metrics()).toContain('posthorn_delivery_rejections_total{target="endpoint"} 1');
});
