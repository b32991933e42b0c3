import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { startDeliveryProgram } from '../../../test/support/delivery-program.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { expireMessages } from '../../../test/support/expire-messages.ts';
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
import { checkShards } from '../../data/check/shard-check.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import { systemClock } from '../../runtime/clock.ts';

const prefix = 'posthorn:';
const base = `${prefix}{s0}:`;
const hourMs = 3_600_000;
const org = 'org_a';
const inside = webhookOrganization(org);
let redis: RedisServer;
let reader: RedisMessageReader;
let receiver: Receiver;
let endpoint: WebhookEndpoint;
let store: RedisWebhookStore;
let answer: (response: ServerResponse) => void;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
  reader = new RedisMessageReader({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  answer = (response) => response.end();
  receiver = await startReceiver((response) => answer(response));
  ends.push(() => receiver.close());
  const publisher = new RedisRegistryPublisher(redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  await publisher.publish(epoch, 'organization', organizationRecord({ egress: { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] } }));
  await publisher.markComplete();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  const { id } = await store.createApplication({ org, name: 'Customer', shard: 0 });
  const sealSecret = (endpointId: string) => ({
    sealed: testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext(org, endpointId)),
    prefix: 'whsec_AQEB',
    version: 1,
    previous: [],
  });
  endpoint = await store.createEndpoint(newWebhookEndpoint(id, { url: receiver.url, sealSecret, timeoutSeconds: 60 }));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function startWorker(): Promise<Program> {
  const program = await startDeliveryProgram(redis.url, { POSTHORN_SHARDS: '1', POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' });
  ends.push(() => program.stop());
  return program;
}

/** Sends a message that expires in so many ms; returns its id and its deadline. */
async function send(inMs: number): Promise<{ id: string; expiresAtMs: number }> {
  const event = newWebhookEvent(org, [endpoint]);
  const expiresAtMs = Date.now() + inMs;
  const targets = event.targets.map((target) => ({ ...target, expiresAtMs }));
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock }).accept({ ...event, targets });
  return { id: event.targets[0]?.messageId ?? '', expiresAtMs };
}
const expired = { status: 'dlq', deadLetterReason: 'max_retries_exceeded', lastErrorType: 'expired' } as const;
async function expires(id: string, more: object = {}): Promise<number> {
  await eventually('the message to expire', 40_000, async () => (await reader.delivery(inside, id))?.status === 'dlq');
  const view = await reader.delivery(inside, id);
  expect(view).toMatchObject({ ...expired, ...more });
  return view?.completedAtMs ?? 0;
}

test('a message to a disabled endpoint is given up at its time by a worker that was idle', async () => {
  await store.updateEndpoint(org, endpoint.id, { isDisabled: true });
  await startWorker();
  await expires((await send(1000)).id);
  // The target is known to be paused by now.
  const { id, expiresAtMs } = await send(2000);
  const endedAtMs = await expires(id, { attempts: 0 });
  expect(endedAtMs).toBeGreaterThanOrEqual(expiresAtMs);
  // Of itself an idle worker looks after half a minute.
  expect(endedAtMs).toBeLessThan(expiresAtMs + 15_000);
  expect(receiver.requests).toEqual([]);
}, 60_000);

test('a message whose next attempt would be after its time is given up after the attempt that has failed', async () => {
  answer = (response) => void response.writeHead(500).end();
  await store.updateEndpoint(org, endpoint.id, { retryDelaysSeconds: [3600] });
  await startWorker();
  const { id, expiresAtMs } = await send(60_000);
  expect(await expires(id, { attempts: 1, lastResponseStatus: 500 })).toBeLessThan(expiresAtMs);
}, 60_000);

test('an attempt that is under way at the time of its message may still deliver it', async () => {
  const responses: ServerResponse[] = [];
  answer = (response) => void responses.push(response);
  await startWorker();
  const { id } = await send(hourMs);
  await receiver.arrived(1);
  expect(await expireMessages(redis.client, base)).toHaveLength(1);
  responses[0]?.end();
  await eventually('the message to be delivered', 20_000, async () => (await reader.delivery(inside, id))?.status === 'delivered');
}, 60_000);

test('a message that a killed worker holds at its time is given up, and not sent again', async () => {
  // It never answers.
  answer = () => undefined;
  const killed = await startWorker();
  const { id } = await send(hourMs);
  await receiver.arrived(1);
  killed.signal('SIGKILL');
  await killed.ended;
  expect(await expireMessages(redis.client, base)).toHaveLength(1);
  await startWorker();
  await expires(id, { attempts: 0 });
  expect(receiver.requests).toHaveLength(1);
  expect((await checkShards({ redis: redis.client, prefix })).findings).toEqual([]);
}, 60_000);
