import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Webhook } from 'svix';
import { testKeyring } from '../../../test/support/controllers.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { patientClock } from '../../../test/support/patient-clock.ts';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { organizationRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { startTestDelivery } from '../../../test/support/test-delivery.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { changeStreamBlockMs } from '../../data/registry/change-stream.ts';
import { disableEndpoint } from '../../data/webhooks/disable-endpoint.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import { WebhookDirectory } from '../../data/webhooks/webhook-directory.ts';
import { WebhookNotes } from '../../data/webhooks/webhook-notes.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSecret } from '../../data/webhooks/webhooks.ts';
import { blockingConnection } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Delivery } from '../start-delivery.ts';

const prefix = 'test:';
const org = 'org_a';
const secretOf = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const seal = (endpointId: string, byte: number): string => testKeyring.seal(secretOf(byte), webhookSecretSealingContext(org, endpointId));
let redis: RedisServer;
let store: RedisWebhookStore;
let reader: RedisMessageReader;
let directory: WebhookDirectory;
let delivery: Delivery;
let receiver: Receiver;
let answer: number;
let application: WebhookApplication;
let endpoint: WebhookEndpoint;

beforeAll(async () => {
  redis = await startRedis();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  reader = new RedisMessageReader({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  answer = 200;
  receiver = await startReceiver((response) => response.writeHead(answer).end());
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  const blocking = blockingConnection(redis.url, { blockMs: changeStreamBlockMs });
  directory = new WebhookDirectory({ redis: redis.client, blocking, prefix, clock: systemClock, logger: silentLogger });
  // Before its first change the stream has no marker yet.
  await new WebhookNotes({ redis: redis.client, prefix, logger: silentLogger }).note({ kind: 'application', id: 'app_z' });
  directory.start();
  const disable = (organization: string, id: string, reason: string) => disableEndpoint(store, organization, id, reason);
  const webhooks = { directory, disableEndpoint: disable, retries: { delaysMs: [3_600_000] }, allowsInsecureUrls: true };
  delivery = startTestDelivery(redis, { prefix, registry, webhooks });
  application = await store.createApplication({ org, name: 'shop', shard: 0 });
  const sealSecret = (id: string): WebhookSecret => ({ sealed: seal(id, 1), prefix: 'whsec_AQEB…', version: 1, previous: [] });
  endpoint = await store.createEndpoint({ org, applicationId: application.id, url: receiver.url, sealSecret });
});
afterEach(async () => {
  await delivery.stop(1000);
  await directory.stop();
  await receiver.close();
});

async function send(): Promise<string> {
  const messageId = newTimedId('msg_', 0, Date.now());
  const target = { messageId, routeId: application.id, destinationId: endpoint.id, shard: 0, maxAttempts: 2 };
  const webhook = { labels: {}, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [] };
  const event = newEvent({ org: webhookOrganization(org), sourceId: 'etp_a', sourceSlug: 'order.paid', webhook, targets: [target] });
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock }).accept(event);
  return messageId;
}

const shows = (id: string, expected: object) =>
  eventually(async () => expect(await reader.delivery(webhookOrganization(org), id)).toMatchObject(expected));

test('an endpoint that answers 410 is disabled in the store; enabled again it gets what has waited', async () => {
  answer = 410;
  await shows(await send(), { status: 'dlq', deadLetterReason: 'destination_not_found', lastErrorType: 'gone' });
  expect(await store.endpoint(org, endpoint.id)).toMatchObject({ isDisabled: true, disabledReason: 'the endpoint answered 410 Gone' });
  answer = 200;
  const waiting = await send();
  await eventually(async () => expect(await redis.client.scard(`${prefix}{s0}:paused`)).toBe(1));
  await store.updateEndpoint(org, endpoint.id, { isDisabled: false, disabledReason: null });
  await shows(waiting, { status: 'delivered' });
});

test('a rotation of the secret and a new URL are in force for the next attempt', async () => {
  await send();
  await receiver.arrived(1);
  const secret = { ...endpoint.secret, sealed: seal(endpoint.id, 2), version: 2 };
  await store.updateEndpoint(org, endpoint.id, { secret, url: `${receiver.url}/new` });
  await eventually(async () => expect((await directory.endpoint(org, endpoint.id))?.url).toMatch('/new'));
  await send();
  const [, request] = await receiver.arrived(2);
  expect(request?.path).toBe('/new');
  const headers = Object.fromEntries(Object.entries(request?.headers ?? {}).map(([name, value]) => [name, String(value)]));
  expect(() => new Webhook(secretOf(2)).verify(request?.body ?? '', headers)).not.toThrow();
  expect(() => new Webhook(secretOf(1)).verify(request?.body ?? '', headers)).toThrow();
});

test('an application that is deleted leaves what its endpoints wait for to the dead letters', async () => {
  answer = 500;
  const retried = await send();
  await shows(retried, { status: 'retrying' });
  await store.deleteApplication(org, application.id);
  await shows(retried, { status: 'dlq', attempts: 1, deadLetterReason: 'destination_not_found' });
});

test('an application that is disabled pauses its endpoints until it is enabled', async () => {
  await store.updateApplication(org, application.id, { isDisabled: true });
  await eventually(async () => expect((await directory.application(org, application.id))?.isDisabled).toBe(true));
  const waiting = await send();
  await eventually(async () => expect(await redis.client.scard(`${prefix}{s0}:paused`)).toBe(1));
  expect(receiver.requests).toEqual([]);
  await store.updateApplication(org, application.id, { isDisabled: false });
  await shows(waiting, { status: 'delivered' });
});
