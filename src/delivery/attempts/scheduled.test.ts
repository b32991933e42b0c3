import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
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
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import { systemClock } from '../../runtime/clock.ts';

const prefix = 'posthorn:';
const org = 'org_a';
const inside = webhookOrganization(org);
let redis: RedisServer;
let reader: RedisMessageReader;
let receiver: Receiver;
let endpoint: WebhookEndpoint;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
  reader = new RedisMessageReader({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  receiver = await startReceiver((response) => response.end());
  ends.push(() => receiver.close());
  const publisher = new RedisRegistryPublisher(redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  await publisher.publish(epoch, 'organization', organizationRecord({ egress: { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] } }));
  await publisher.markComplete();
  const store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  const { id } = await store.createApplication({ org, name: 'Customer', shard: 0 });
  const sealSecret = (endpointId: string) => ({
    sealed: testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext(org, endpointId)),
    prefix: 'whsec_AQEB',
    version: 1,
    previous: [],
  });
  endpoint = await store.createEndpoint(newWebhookEndpoint(id, { url: receiver.url, sealSecret }));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function startWorker(): Promise<Program> {
  const program = await startDeliveryProgram(redis.url, { POSTHORN_SHARDS: '1', POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' });
  ends.push(() => program.stop());
  return program;
}

async function send(notBeforeMs: number | null): Promise<string> {
  const event = newWebhookEvent(org, [endpoint]);
  const times = notBeforeMs === null ? {} : { notBeforeMs };
  const targets = event.targets.map((target) => ({ ...target, ...times }));
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock }).accept({ ...event, ...times, targets });
  return event.targets[0]?.messageId ?? '';
}
const becomes = (messageId: string, expected: object) =>
  eventually(async () => expect(await reader.delivery(inside, messageId)).toMatchObject(expected));

test('a scheduled message is sent at its time by a worker that was idle, beside a message that is sent at once', async () => {
  await startWorker();
  await becomes(await send(null), { status: 'delivered' });
  const notBeforeMs = Date.now() + 3000;
  const scheduled = await send(notBeforeMs);
  await becomes(await send(null), { status: 'delivered' });
  await becomes(scheduled, { status: 'delivered', attempts: 1 });
  const sent = receiver.requests.filter(({ headers }) => headers['webhook-id'] === scheduled);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.atMs).toBeGreaterThanOrEqual(notBeforeMs - 10);
}, 60_000);

test('a scheduled message is sent once, at its time, though all workers were killed before; its replay is sent at once', async () => {
  const killed = await startWorker();
  await becomes(await send(null), { status: 'delivered' });
  const notBeforeMs = Date.now() + 4000;
  const scheduled = await send(notBeforeMs);
  killed.signal('SIGKILL');
  await killed.ended;
  await startWorker();
  await becomes(scheduled, { status: 'delivered', attempts: 1 });
  const sent = receiver.requests.filter(({ headers }) => headers['webhook-id'] === scheduled);
  expect(sent).toHaveLength(1);
  expect(sent[0]?.atMs).toBeGreaterThanOrEqual(notBeforeMs - 10);
  const again = await new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock }).replay(inside, scheduled);
  await becomes(again, { status: 'delivered' });
}, 60_000);
