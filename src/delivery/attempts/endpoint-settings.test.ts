import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { startDeliveryProgram } from '../../../test/support/delivery-program.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { patientClock } from '../../../test/support/patient-clock.ts';
import type { Program } from '../../../test/support/program.ts';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { organizationRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import { Circuits } from '../../data/queue/circuits.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import type { NewWebhookEndpoint, WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import { systemClock } from '../../runtime/clock.ts';

const prefix = 'posthorn:';
const org = 'org_a';
const inside = webhookOrganization(org);
const usedUp = { status: 'dlq', deadLetterReason: 'max_retries_exceeded', attempts: 3, maxAttempts: 3 };
let redis: RedisServer;
let store: RedisWebhookStore;
let reader: RedisMessageReader;
let receiver: Receiver;
let answer: number;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  reader = new RedisMessageReader({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  answer = 200;
  receiver = await startReceiver((response) => response.writeHead(answer, { 'retry-after': '3600' }).end());
  ends.push(() => receiver.close());
  const publisher = new RedisRegistryPublisher(redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  await publisher.publish(epoch, 'organization', organizationRecord({ egress: { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] } }));
  await publisher.markComplete();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** `delays`: of the installation, in seconds. */
async function startWorker(delays = '3600'): Promise<Program> {
  const program = await startDeliveryProgram(redis.url, {
    POSTHORN_SHARDS: '1',
    POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true',
    POSTHORN_WEBHOOK_RETRY_DELAYS: delays,
  });
  ends.push(() => program.stop());
  return program;
}

async function endpointWith(settings: Partial<NewWebhookEndpoint>): Promise<WebhookEndpoint> {
  const { id } = await store.createApplication({ org, name: 'Customer', shard: 0 });
  const sealSecret = (endpointId: string) => ({
    sealed: testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext(org, endpointId)),
    prefix: 'whsec_AQEB',
    version: 1,
    previous: [],
  });
  return await store.createEndpoint(newWebhookEndpoint(id, { url: receiver.url, sealSecret, ...settings }));
}

async function send(endpoint: WebhookEndpoint): Promise<string> {
  const event = newWebhookEvent(org, [endpoint]);
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock }).accept(event);
  return event.targets[0]?.messageId ?? '';
}

const becomes = (messageId: string, expected: object) =>
  eventually(async () => expect(await reader.delivery(inside, messageId)).toMatchObject(expected));
/** The status of a message that has ended; false: it has not ended yet. */
async function endOf(messageId: string): Promise<string | false> {
  const { status } = (await reader.delivery(inside, messageId)) ?? {};
  return status === 'delivered' || status === 'dlq' ? status : false;
}
const waitsMs = (): number[] => receiver.requests.slice(1).map(({ atMs }, i) => atMs - (receiver.requests[i]?.atMs ?? 0));

describe('an endpoint with delays of its own', () => {
  test('an endpoint with delays of its own has as many retries, each after its delay, and again when its dead letter is retried', async () => {
    answer = 500;
    await startWorker();
    const circuit = { failureThreshold: 1000, successThreshold: 1, cooldownSeconds: 60 };
    const endpoint = await endpointWith({ retryDelaysSeconds: [2, 1], circuit });
    const messageId = await send(endpoint);
    await becomes(messageId, usedUp);
    // Each varies by a fifth.
    const [toSecond, toThird] = waitsMs();
    expect(toSecond).toBeGreaterThanOrEqual(1590);
    expect(toThird).toBeGreaterThanOrEqual(790);
    const replayer = new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock });
    const again = await replayer.replay(inside, messageId);
    await becomes(again, usedUp);
    expect(receiver.requests).toHaveLength(6);
    await store.updateEndpoint(org, endpoint.id, { successStatusCodes: [500] });
    // Until the worker has read the change, a replay ends as a dead letter again.
    let dead = again;
    await eventually('a replay to be delivered', 40_000, async () => {
      const replayed = await replayer.replay(inside, dead);
      const status = await eventually('the replay to end', 20_000, async () => endOf(replayed));
      if (status === 'dlq') dead = replayed;
      else expect(await reader.delivery(inside, replayed)).toMatchObject({ status: 'delivered', attempts: 1 });
      return status === 'delivered';
    });
  }, 90_000);

  test('an endpoint with delays of its own gets what is due after the worker was killed between two attempts', async () => {
    answer = 500;
    const endpoint = await endpointWith({ retryDelaysSeconds: [4, 1] });
    const killed = await startWorker();
    const messageId = await send(endpoint);
    await becomes(messageId, { status: 'retrying', attempts: 1, maxAttempts: 3 });
    const { nextAttemptAtMs } = (await reader.delivery(inside, messageId)) ?? {};
    const [first] = await receiver.arrived(1);
    const delayMs = (nextAttemptAtMs ?? 0) - (first?.atMs ?? 0);
    // It varies by a fifth, and a slow worker begins it late; the delay of the installation is an hour.
    expect(delayMs).toBeGreaterThanOrEqual(3190);
    expect(delayMs).toBeLessThan(600_000);
    killed.signal('SIGKILL');
    await killed.ended;
    await startWorker();
    await becomes(messageId, usedUp);
    expect(receiver.requests.map(({ headers }) => headers['x-posthorn-attempt'])).toEqual(['1', '2', '3']);
    expect(receiver.requests[1]?.atMs).toBeGreaterThanOrEqual((nextAttemptAtMs ?? 0) - 10);
    expect(waitsMs()[1]).toBeGreaterThanOrEqual(790);
  }, 60_000);

  test('an endpoint with delays of its own has those of the installation once its own are taken away', async () => {
    answer = 500;
    await startWorker('1');
    const circuit = { failureThreshold: 1000, successThreshold: 1, cooldownSeconds: 60 };
    const endpoint = await endpointWith({ retryDelaysSeconds: [3600], circuit });
    await becomes(await send(endpoint), { status: 'retrying', maxAttempts: 2 });
    await store.updateEndpoint(org, endpoint.id, { retryDelaysSeconds: null });
    // Until the worker has read the change, a message waits for an hour.
    await eventually('a message to be tried again after a second', 40_000, async () => {
      const messageId = await send(endpoint);
      const retried = await eventually('the first attempt', 20_000, async () => {
        const shown = await reader.delivery(inside, messageId);
        return shown?.attempts === 0 ? undefined : shown;
      });
      if ((retried?.nextAttemptAtMs ?? 0) > systemClock.now() + 600_000) return false;
      await becomes(messageId, { status: 'dlq', attempts: 2, maxAttempts: 2 });
      return true;
    });
  }, 90_000);
});

describe('an endpoint with success statuses of its own', () => {
  test.each([409, 410, 429, 503, 302, 204])(
    'a %i that is among them is success and nothing else',
    async (status) => {
      answer = status;
      await startWorker();
      const circuit = { failureThreshold: 1, successThreshold: 1, cooldownSeconds: 3600 };
      const endpoint = await endpointWith({ successStatusCodes: ['2xx', 302, '4XX', 503], circuit });
      await becomes(await send(endpoint), { status: 'delivered', attempts: 1, lastResponseStatus: status, lastErrorType: null });
      expect(await store.endpoint(org, endpoint.id)).toMatchObject({ isDisabled: false });
      const [shown] = await new Circuits({ redis: redis.client, prefix }).ofRoute(inside, endpoint.applicationId, [endpoint.id]);
      expect(shown?.state ?? 'closed').toBe('closed');
    },
    60_000,
  );

  test('a 2xx that is not among them is a failure, and so is a 410, which disables', async () => {
    await startWorker('1');
    const endpoint = await endpointWith({ successStatusCodes: [202] });
    await becomes(await send(endpoint), { status: 'dlq', attempts: 2, lastResponseStatus: 200, lastErrorType: 'http_error' });
    answer = 202;
    await becomes(await send(endpoint), { status: 'delivered', attempts: 1 });
    answer = 410;
    await becomes(await send(endpoint), { status: 'dlq', lastErrorType: 'gone' });
    expect(await store.endpoint(org, endpoint.id)).toMatchObject({ isDisabled: true });
  }, 60_000);
});
