import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook } from 'svix';
import { testKeyring } from '../../../test/support/controllers.ts';
import { endCooldowns } from '../../../test/support/end-cooldowns.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { organizationRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { startTestDelivery } from '../../../test/support/test-delivery.ts';
import type { Clock } from '../../core/clock.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { Circuits } from '../../data/queue/circuits.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { OwnEventLog } from '../../data/queue/own-event-log.ts';
import { changeStreamBlockMs } from '../../data/registry/change-stream.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';
import { disableEndpoint, type EndpointToDisable } from '../../data/webhooks/disable-endpoint.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import { WebhookDirectory } from '../../data/webhooks/webhook-directory.ts';
import { WebhookNotes } from '../../data/webhooks/webhook-notes.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSecret } from '../../data/webhooks/webhooks.ts';
import { blockingConnection } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
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
  const webhooks = {
    directory,
    disableEndpoint: (each: EndpointToDisable) => disableEndpoint(store, each),
    circuits: new Circuits({ redis: redis.client, prefix }),
    ownEvents: new OwnEventLog({ redis: redis.client, prefix }),
    disableAfterHours: 0,
    retries: { delaysMs: [3_600_000] },
    allowsInsecureUrls: true,
  };
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
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event);
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

describe('an endpoint whose every attempt fails', () => {
  const dayMs = 86_400_000;
  /** Lets an attempt fail that opens the circuit. */
  async function fail(): Promise<void> {
    answer = 500;
    await shows(await send(), { status: 'circuit_open', attempts: 1 });
  }
  /** Lets a probe fail when the outage has lasted for so long. */
  async function failAgainAfter(hours: number): Promise<void> {
    await redis.client.hset(`${prefix}{s0}:t:1`, hashFields.target.outageBeganMs, Date.now() - hours * 3_600_000);
    const probing = await send();
    await endCooldowns(redis.client, prefix);
    await shows(probing, { attempts: 1 });
  }
  const configure = async (ofEndpoint: number | null, ofApplication: number | null, successThreshold = 1) => {
    const longAgo: Clock = { ...systemClock, now: () => Date.now() - 30 * dayMs };
    const earlier = new RedisWebhookStore({ redis: redis.client, prefix, clock: longAgo, logger: silentLogger });
    await earlier.updateApplication(org, application.id, { disableAfterHours: ofApplication });
    const circuit = { failureThreshold: 1, successThreshold, cooldownSeconds: 3600 };
    await earlier.updateEndpoint(org, endpoint.id, { disableAfterHours: ofEndpoint, circuit });
    await eventually(async () => {
      expect(await directory.application(org, application.id)).toMatchObject({ disableAfterHours: ofApplication });
      expect(await directory.endpoint(org, endpoint.id)).toMatchObject({ disableAfterHours: ofEndpoint, circuit });
    });
  };
  const isDisabled = async () => (await store.endpoint(org, endpoint.id))?.isDisabled;

  test('an endpoint whose every attempt fails is disabled after its disableAfterHours, and the reason says since when it has failed', async () => {
    await configure(48, null);
    await fail();
    await failAgainAfter(49);
    const disabledReason = expect.stringMatching(/^every attempt has failed since \d{4}-/);
    expect(await store.endpoint(org, endpoint.id)).toMatchObject({ isDisabled: true, disabledReason });
  });

  test('an endpoint whose every attempt fails follows its application where it has no setting; 0 is never', async () => {
    await configure(0, 48);
    await fail();
    await failAgainAfter(49);
    expect(await isDisabled()).toBe(false);
    await configure(null, 48);
    await failAgainAfter(49);
    expect(await isDisabled()).toBe(true);
  });

  test('an endpoint whose every attempt fails stays enabled when a probe has succeeded since, although the circuit is still half open', async () => {
    await configure(48, null, 2);
    await fail();
    answer = 200;
    const succeeding = await send();
    await endCooldowns(redis.client, prefix);
    await shows(succeeding, { status: 'delivered' });
    answer = 500;
    await failAgainAfter(49);
    expect(await isDisabled()).toBe(false);
  });

  test('an endpoint whose every attempt fails stays enabled when it is not the one that was evaluated any more, and with the reason of the one that has disabled it', async () => {
    const { id, revision } = endpoint;
    await store.updateEndpoint(org, id, { description: 'moved' });
    expect(await disableEndpoint(store, { org, id, disabledReason: 'late', ifRevision: revision })).toEqual({
      isDone: false,
      revision: null,
    });
    expect(await isDisabled()).toBe(false);
    await store.updateEndpoint(org, id, { isDisabled: true, disabledReason: 'by hand' });
    expect(await disableEndpoint(store, { org, id, disabledReason: 'late' })).toEqual({ isDone: false, revision: null });
    expect(await store.endpoint(org, id)).toMatchObject({ disabledReason: 'by hand' });
  });

  test('an endpoint whose every attempt fails keeps the revision with which it was disabled through later changes, by which it is reported once, and has another when it is disabled again', async () => {
    const { id } = endpoint;
    const first = await disableEndpoint(store, { org, id, disabledReason: 'late' });
    expect(first).toEqual({ isDone: true, revision: 2 });
    await store.updateEndpoint(org, id, { description: 'moved' });
    expect(await disableEndpoint(store, { org, id, disabledReason: 'late' })).toEqual({ isDone: false, revision: 2 });
    await store.updateEndpoint(org, id, { isDisabled: false });
    expect(await store.endpoint(org, id)).not.toHaveProperty('disabledRevision');
    expect(await disableEndpoint(store, { org, id, disabledReason: 'late' })).toEqual({ isDone: true, revision: 5 });
  });

  test('an endpoint whose every attempt fails stays enabled without a setting, before the time is over, and until it has failed for that long since its last change', async () => {
    await configure(null, null);
    await fail();
    await failAgainAfter(10_000);
    expect(await isDisabled()).toBe(false);
    await configure(48, null);
    await failAgainAfter(47);
    expect(await isDisabled()).toBe(false);
    await store.updateEndpoint(org, endpoint.id, { description: 'moved' });
    await eventually(async () => expect(await directory.endpoint(org, endpoint.id)).toMatchObject({ description: 'moved' }));
    await failAgainAfter(240);
    expect(await isDisabled()).toBe(false);
  });
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
