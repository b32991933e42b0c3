import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import type { startReceiver } from '../../../test/support/receiver.ts';
import { organizationRecord } from '../../../test/support/records.ts';
import { verifies } from '../../../test/support/webhook-verification.ts';
import { newTimedId } from '../../core/ids.ts';
import { recordLayoutVersion } from '../../core/records.ts';
import { Keyring } from '../../core/sealing.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { Circuits } from '../../data/queue/circuits.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';
import type { DeliveryView, NewEvent } from '../../data/shard/messages.ts';
import type { WebhookEndpoint, WebhookSecret } from '../../data/webhooks/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import type { WebhookPlanSources } from '../plans/webhook-plan.ts';
import type { Delivery } from '../start-delivery.ts';

const org = webhookOrganization('org_a');
const secretOf = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const sealed = (byte: number, endpointId = 'ep_a', keyring = testKeyring): string =>
  keyring.seal(secretOf(byte), webhookSecretSealingContext('org_a', endpointId));
const secretWith = (sealedSecret: string, previous: WebhookSecret['previous'] = []): WebhookSecret => ({
  sealed: sealedSecret,
  prefix: 'whsec_AQEB…',
  version: 1,
  previous,
});
let directory: MemoryDirectory;
const suite = deliverySuite();
const { prefix, receiver } = suite;

beforeEach(() => {
  directory = new MemoryDirectory();
  directory.putApplication(webhookApplication());
});

function worker(webhooks: Partial<WebhookPlanSources> = {}): Delivery {
  return suite.worker({ webhooks: { ...directory.sources(), retries: { delaysMs: [50, 100] }, ...webhooks } });
}

const status =
  (code: number): Parameters<typeof startReceiver>[0] =>
  (response) =>
    response.writeHead(code).end();

function endpoint(url: string, changes: Partial<WebhookEndpoint> = {}): WebhookEndpoint {
  const made = webhookEndpoint({ url, secret: secretWith(sealed(1, changes.id)), ...changes });
  directory.putEndpoint(made);
  return made;
}

async function send(body = '{"a": 1.0}', { endpoints = ['ep_a'], transformId = null as string | null } = {}): Promise<NewEvent> {
  const targets = endpoints.map((destinationId, i) => ({
    messageId: newTimedId('msg_', 0, Date.now()),
    routeId: 'app_a',
    destinationId,
    shard: 0,
    maxAttempts: 3,
    subscription: { id: `sub_${i}`, transformId },
  }));
  const webhook = { labels: { tier: 'gold' }, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [] };
  const event = {
    ...newEvent({ payload: Buffer.from(body), headers: [] }),
    org,
    sourceId: 'etp_a',
    sourceSlug: 'order.paid',
    webhook,
    targets,
  };
  await suite.acceptor.accept(event);
  return event;
}

const messageOf = ({ targets }: NewEvent): string => targets[0]?.messageId ?? '';

async function ended(event: NewEvent, expected: Partial<DeliveryView>): Promise<void> {
  await eventually(async () => expect(await suite.reader.delivery(org, messageOf(event))).toMatchObject(expected));
}

describe('a delivery', () => {
  test('a delivery has the bytes that were sent, our headers and those of the endpoint, and a signature that both verifiers accept', async () => {
    const { url, arrived } = await receiver();
    const headers = [
      { name: 'X-Own', value: 'yes' },
      { name: 'webhook-id', value: 'forged' },
      { name: 'Content-Type', value: 'text/plain' },
      { name: 'x-posthorn-attempt', value: '9' },
    ];
    endpoint(`${url}/hook?x=1`, { headers });
    worker();
    const event = await send();
    const [request] = await arrived(1);
    expect(request).toMatchObject({ method: 'POST', path: '/hook?x=1' });
    expect(request?.body.toString()).toBe('{"a": 1.0}');
    expect(request?.headers).toMatchObject({
      'webhook-id': messageOf(event),
      'content-type': 'application/json',
      'user-agent': 'Posthorn/0.0.0-test',
      'x-posthorn-event-id': event.id,
      'x-posthorn-event-type': 'order.paid',
      'x-posthorn-attempt': '1',
      'x-own': 'yes',
    });
    if (request === undefined) throw new Error('nothing arrived');
    expect(verifies(request, secretOf(1))).toBe(true);
    expect(verifies(request, secretOf(2))).toBe(false);
    await ended(event, { status: 'delivered', attempts: 1, maxAttempts: 3 });
  });

  test('a delivery follows the schedule of the installation with the same id, and ends as a dead letter when that is used up', async () => {
    const { url, requests } = await receiver(status(500));
    endpoint(url);
    worker();
    const event = await send();
    await ended(event, {
      status: 'dlq',
      attempts: 3,
      maxAttempts: 3,
      deadLetterReason: 'max_retries_exceeded',
      lastErrorType: 'http_error',
    });
    expect(new Set(requests.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([messageOf(event)]));
    expect(requests.map(({ headers }) => headers['x-posthorn-attempt'])).toEqual(['1', '2', '3']);
    expect(requests.every((request) => verifies(request, secretOf(1)))).toBe(true);
    const [first = 0, second = 0, third = 0] = requests.map(({ atMs }) => atMs);
    expect(second - first).toBeGreaterThanOrEqual(40);
    expect(third - second).toBeGreaterThanOrEqual(80);
  });

  test('a delivery waits for as long as the receiver asks', async () => {
    const { url, arrived } = await receiver((response, number) => {
      if (number === 1) response.writeHead(429, { 'retry-after': '1' });
      response.end();
    });
    endpoint(url);
    worker();
    await send();
    const [first, second] = await arrived(2);
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test('a delivery goes by http only where the installation allows it', async () => {
    const { url, requests } = await receiver();
    endpoint(url);
    worker({ allowsInsecureUrls: false, retries: { delaysMs: [] } });
    const event = await send();
    await ended(event, { status: 'dlq', attempts: 1, lastErrorType: 'blocked' });
    expect(requests).toEqual([]);
  });

  test('a delivery reaches no private address that the organization does not allow', async () => {
    const { url, requests } = await receiver();
    suite.registry.put('organization', organizationRecord({ egress: { allowedCidrs: [], allowedHosts: [] } }));
    endpoint(url);
    worker({ retries: { delaysMs: [] } });
    await ended(await send(), { status: 'dlq', lastErrorType: 'blocked' });
    expect(requests).toEqual([]);
  });
});

describe('secrets', () => {
  test('sign all that are valid at the time of the attempt, the previous one up to the instant of its end', async () => {
    const { url, requests } = await receiver(status(500));
    const minuteMs = 60_000;
    const validUntilMs = Date.now() + minuteMs;
    let aheadMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    endpoint(url, { secret: secretWith(sealed(2), [{ sealed: sealed(1), validUntilMs }]) });
    const retries = { delaysMs: Array.from({ length: 1000 }, () => 100) };
    suite.worker({ clock, webhooks: { ...directory.sources(), retries } });
    const event = await send();
    let isInGrace: boolean[] = [];
    const bothSeen = async (wanted: boolean[]): Promise<void> => {
      const attempts = await suite.reader.attempts(org, messageOf(event));
      isInGrace = attempts.map(({ startedAtMs }) => startedAtMs < validUntilMs);
      expect(new Set(isInGrace)).toEqual(new Set(wanted));
    };
    await eventually(() => bothSeen([true]));
    aheadMs = minuteMs;
    await eventually(() => bothSeen([true, false]));
    for (const [i, expected] of isInGrace.entries()) {
      const request = requests.find(({ headers }) => headers['x-posthorn-attempt'] === String(i + 1));
      if (request === undefined) throw new Error(`attempt ${i + 1} has not arrived`);
      expect([verifies(request, secretOf(2)), verifies(request, secretOf(1))]).toEqual([true, expected]);
    }
  });

  test('secrets that are replaced without grace end at once, also for messages that are being retried', async () => {
    const { url, requests, arrived } = await receiver((response, number) => {
      if (number === 1) directory.putEndpoint({ ...old, secret: secretWith(sealed(2)), revision: 2 });
      response.writeHead(number === 1 ? 500 : 200).end();
    });
    const old = endpoint(url);
    worker();
    await send();
    await arrived(2);
    expect(requests.map((request) => [verifies(request, secretOf(1)), verifies(request, secretOf(2))])).toEqual([
      [true, false],
      [false, true],
    ]);
  });

  test('that do not open end the message as a dead letter, as long as they are valid', async () => {
    const { url, requests, arrived } = await receiver();
    const foreign = new Keyring([{ id: 'gone', key: Buffer.alloc(32, 9) }]);
    const locked = endpoint(url, { secret: secretWith(sealed(1, 'ep_a', foreign)) });
    worker();
    const event = await send();
    const reason = 'secret_decryption_failed';
    await ended(event, { status: 'dlq', attempts: 0, deadLetterReason: reason, lastErrorType: reason });
    const previous = [{ sealed: locked.secret.sealed, validUntilMs: Date.now() + 60_000 }];
    directory.putEndpoint({ ...locked, secret: secretWith(sealed(2), previous), revision: 2 });
    await ended(await send(), { status: 'dlq', deadLetterReason: 'secret_decryption_failed' });
    expect(requests).toEqual([]);
    const over = [{ sealed: locked.secret.sealed, validUntilMs: Date.now() - 1 }];
    directory.putEndpoint({ ...locked, secret: secretWith(sealed(2), over), revision: 3 });
    await send();
    await arrived(1);
  });
});

describe('an endpoint', () => {
  test('an endpoint that answers 410 is disabled, its message is a dead letter as gone, and the next one waits', async () => {
    const { url, requests } = await receiver(status(410));
    endpoint(url);
    worker();
    const event = await send();
    await ended(event, {
      status: 'dlq',
      attempts: 1,
      deadLetterReason: 'destination_not_found',
      lastErrorType: 'gone',
      lastResponseStatus: 410,
    });
    expect(directory.reasons).toEqual(['the endpoint answered 410 Gone']);
    const waiting = await send();
    await eventually(async () => expect(await suite.redis.client.smembers(`${prefix}{s0}:paused`)).toHaveLength(1));
    await ended(waiting, { status: 'pending', attempts: 0 });
    expect(requests).toHaveLength(1);
  });

  test('an endpoint that is disabled keeps what is queued, and gets it when it is enabled', async () => {
    const { url, requests, arrived } = await receiver();
    const disabled = endpoint(url, { isDisabled: true });
    worker();
    await send();
    await eventually(async () => expect(await suite.redis.client.smembers(`${prefix}{s0}:paused`)).toHaveLength(1));
    expect(requests).toEqual([]);
    directory.putEndpoint({ ...disabled, isDisabled: false, revision: 2 });
    await arrived(1);
  });

  test('an endpoint waits while its application is disabled', async () => {
    const { url, requests, arrived } = await receiver();
    endpoint(url);
    directory.putApplication(webhookApplication({ isDisabled: true, revision: 2 }));
    worker();
    await send();
    await eventually(async () => expect(await suite.redis.client.smembers(`${prefix}{s0}:paused`)).toHaveLength(1));
    expect(requests).toEqual([]);
    directory.putApplication(webhookApplication({ revision: 3 }));
    await arrived(1);
  });

  test('an endpoint that is deleted leaves its queued messages and its waiting retries to the dead letters', async () => {
    const { url } = await receiver(status(500));
    endpoint(url);
    worker({ retries: { delaysMs: [3_600_000] } });
    const retried = await send();
    await ended(retried, { status: 'retrying' });
    directory.removeEndpoint('ep_a');
    await ended(retried, { status: 'dlq', attempts: 1, deadLetterReason: 'destination_not_found' });
    await ended(await send(), { status: 'dlq', attempts: 0, deadLetterReason: 'destination_not_found' });
  });

  test('an endpoint has a circuit of its own, which is shown and reset as the circuits of routes are', async () => {
    const { url } = await receiver(status(500));
    endpoint(url, { circuit: { failureThreshold: 2, successThreshold: 1, cooldownSeconds: 60 } });
    worker();
    const event = await send();
    const circuits = new Circuits({ redis: suite.redis.client, prefix });
    await ended(event, { status: 'circuit_open', attempts: 2 });
    expect(await circuits.ofRoute(org, 'app_a', ['ep_a'])).toMatchObject([{ state: 'open', consecutiveFailures: 2 }]);
    await circuits.reset(org, 'app_a', ['ep_a']);
    await ended(event, { status: 'dlq', attempts: 3 });
  });

  test('an endpoint gets no more in a second than its own limit', async () => {
    const { url, arrived } = await receiver();
    endpoint(url, { rateLimitPerSecond: 4 });
    worker();
    const beganAtMs = Date.now();
    for (let i = 0; i < 8; i++) await send();
    const requests = await arrived(8);
    // Without the limit they come at once.
    expect((requests[7]?.atMs ?? 0) - beganAtMs).toBeGreaterThanOrEqual(900);
  });
});

test.each([
  ['when the limit is raised', false],
  ['when a worker starts after the limit was raised', true],
])('an application gets no more than its limit over all its endpoints, and what waits goes %s', async (_, isStopped) => {
  const { url, requests, arrived } = await receiver();
  const endpoints = Array.from({ length: 5 }, (_, i) => `ep_${i}`);
  for (const id of endpoints) endpoint(url, { id });
  const rateLimits = { perSecond: 100, perMinute: 7, perHour: 1000 };
  directory.putApplication(webhookApplication({ rateLimits }));
  const before = worker();
  await send('{}', { endpoints });
  await send('{}', { endpoints });
  await arrived(7);
  await eventually(async () => expect(await suite.redis.client.zcard(`${prefix}{s0}:wait:app_a`)).toBeGreaterThanOrEqual(2));
  expect(requests).toHaveLength(7);
  if (isStopped) await before.stop(1000);
  directory.putApplication(webhookApplication({ rateLimits: { ...rateLimits, perMinute: 100 }, revision: 2 }));
  if (isStopped) worker();
  await arrived(10);
});

test('what waits by the limit of an application goes when it was raised while the changes could not be followed', async () => {
  const { url, arrived } = await receiver();
  endpoint(url);
  const rateLimits = { perSecond: 100, perMinute: 1000, perHour: 1 };
  directory.putApplication(webhookApplication({ rateLimits }));
  worker();
  await send();
  await send();
  await arrived(1);
  await eventually(async () => expect(await suite.redis.client.zcard(`${prefix}{s0}:wait:app_a`)).toBe(1));
  // The worker's checks at start are over.
  await sleep(1000);
  directory.putUnseen(webhookApplication({ rateLimits: { ...rateLimits, perHour: 1000 }, revision: 2 }));
  await arrived(2);
});

test('a limit of an application that was used up, and raised while no worker ran, holds back nothing that comes afterwards', async () => {
  const { url, arrived } = await receiver();
  endpoint(url);
  const rateLimits = { perSecond: 100, perMinute: 1000, perHour: 1 };
  directory.putApplication(webhookApplication({ rateLimits }));
  const first = worker();
  await send();
  await arrived(1);
  await first.stop(1000);
  directory.putApplication(webhookApplication({ rateLimits: { ...rateLimits, perHour: 1000 }, revision: 2 }));
  worker();
  await eventually(async () =>
    expect(await suite.redis.client.hget(`${prefix}{s0}:l:app_a`, hashFields.limiter.windows)).toContain('3600000 1000'),
  );
  await send();
  await arrived(2);
});

describe('the transform of a subscription', () => {
  const transform = (code: string, generation = 1) =>
    suite.registry.put('transform', { v: recordLayoutVersion, id: 'trf_a', org: 'org_a', type: 'javascript', code, generation });

  test('the transform of a subscription runs once for all endpoints with it, and every retry sends the same bytes', async () => {
    const { url, requests } = await receiver((response, number) => response.writeHead(number <= 2 ? 500 : 200).end());
    for (const id of ['ep_a', 'ep_b']) endpoint(url, { id, secret: secretWith(sealed(1, id)) });
    transform('(event) => ({ random: Math.random(), type: event.type, tier: event.labels.tier })');
    worker();
    await send('{}', { endpoints: ['ep_a', 'ep_b'], transformId: 'trf_a' });
    await eventually(async () => expect(requests).toHaveLength(4));
    expect(new Set(requests.map(({ body }) => body.toString())).size).toBe(1);
    expect(JSON.parse(requests[0]?.body.toString() ?? '')).toMatchObject({ type: 'order.paid', tier: 'gold' });
    expect(requests.every((request) => verifies(request, secretOf(1)))).toBe(true);
  });

  test('the transform of a subscription that is gone or fails ends the message, and nothing is sent', async () => {
    const { url, requests } = await receiver();
    endpoint(url);
    worker();
    const orphan = await send('{}', { transformId: 'trf_a' });
    await ended(orphan, { status: 'transform_failed', lastErrorMessage: 'the transform of the subscription is gone' });
    transform('() => { throw new Error("no") }');
    await ended(await send('{}', { transformId: 'trf_a' }), { status: 'transform_failed' });
    transform('function handler(event) { return event.payload; }', 2);
    await ended(await send('{}', { transformId: 'trf_a' }), {
      status: 'transform_failed',
      lastErrorMessage: 'the code neither defines a function "transform" nor has a value',
    });
    expect(requests).toEqual([]);
  });
});
