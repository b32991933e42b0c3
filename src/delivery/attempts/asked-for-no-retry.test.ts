import { beforeEach, expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { NewEvent } from '../../data/shard/messages.ts';

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

test('an endpoint that answers 503 with x-posthorn-retry: no gets the message once, and stays enabled', async () => {
  const to = await receiver((response) => response.writeHead(503, { 'x-posthorn-retry': 'no', 'retry-after': '3600' }).end());
  const directory = new MemoryDirectory();
  directory.putApplication(webhookApplication());
  const sealed = testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext('org_a', 'ep_a'));
  directory.putEndpoint(webhookEndpoint({ url: to.url, secret: { sealed, prefix: 'whsec_AQEB…', version: 1, previous: [] } }));
  worker({ webhooks: { ...directory.sources(), retries: { delaysMs: [50, 100] } } });
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
});
