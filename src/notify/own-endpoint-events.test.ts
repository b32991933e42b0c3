import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { testKeyring } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import { expireMessages } from '../../test/support/expire-messages.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../test/support/memory-directory.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { newWebhookEvent } from '../../test/support/webhook-messages.ts';
import { hopHeader } from '../core/hops.ts';
import { webhookSecretSealingContext } from '../core/sealing-contexts.ts';
import { webhookOrganization } from '../core/webhook.ts';
import { checkShards } from '../data/check/shard-check.ts';
import { Circuits } from '../data/queue/circuits.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { OwnEventLog } from '../data/queue/own-event-log.ts';
import { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';
import type { NewEvent } from '../data/shard/messages.ts';
import type { WebhookPlanSources } from '../delivery/plans/webhook-plan.ts';

const prefix = 'test:';
const shards = 3;
const hourMs = 3_600_000;
const one = { failureThreshold: 1, successThreshold: 1, cooldownSeconds: 600 };
let redis: RedisServer;
let registry: RecordRegistry;
let directory: MemoryDirectory;
let shop: Receiver;
let ops: Receiver;
let shopAnswers: number;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  shopAnswers = 500;
  shop = await startReceiver((response) => response.writeHead(shopAnswers).end());
  ops = await startReceiver();
  ends.push(
    () => shop.close(),
    () => ops.close(),
  );
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  registry.put('source', sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn' }));
  registry.put('destination', destinationRecord({ url: ops.url }, { id: 'dst_ops', shard: 1 }));
  registry.put('route', routeRecord({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 1 }] }));
  directory = new MemoryDirectory();
  directory.putApplication(webhookApplication());
  const sealed = testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext('org_a', 'ep_a'));
  directory.putEndpoint(webhookEndpoint({ url: shop.url, secret: { sealed, prefix: '', version: 1, previous: [] }, circuit: one }));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const sources = (changes: Partial<WebhookPlanSources> = {}): WebhookPlanSources => ({
  ...directory.sources(),
  ownEvents: new OwnEventLog({ redis: redis.client, prefix }),
  circuits: new Circuits({ redis: redis.client, prefix, shards: () => shards }),
  ...changes,
});
function worker(webhooks: WebhookPlanSources): void {
  ends.push(startAlertingWorker(redis, { prefix, registry, shards, webhooks }));
}
/** A message of a part of the event `evt_whole`; returns its id. */
async function sendToEndpoint(changes: Partial<NewEvent['targets'][number]> = {}): Promise<string> {
  const webhook = { partOf: 'evt_whole' };
  const event = newWebhookEvent('org_a', [{ id: 'ep_a', applicationId: 'app_a' }], { webhook, headers: [[hopHeader, '3']] });
  const targets = event.targets.map((target) => ({ ...target, maxAttempts: 1, ...changes }));
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock, shards: () => shards }).accept({ ...event, targets });
  return targets[0]?.messageId ?? '';
}
const nothingUnderWay = () =>
  eventually(async () => {
    for (let shard = 0; shard < shards; shard++) {
      expect(await redis.client.exists(`${prefix}{s${shard}}:ends`)).toBe(0);
      expect(await redis.client.xlen(`${prefix}{s${shard}}:out`)).toBe(0);
    }
    expect((await checkShards({ redis: redis.client, prefix, shards })).unfinished).toBe(0);
  });
const told = () => ops.requests.map(({ body }) => JSON.parse(body.toString()));
const types = (): string[] => told().map(({ type }) => type);

test('an endpoint is reported with its application when it is disabled, once', async () => {
  shopAnswers = 410;
  worker(sources());
  const messageId = await sendToEndpoint();
  await ops.arrived(3);
  await nothingUnderWay();
  const target = { applicationId: 'app_a', endpointId: 'ep_a' };
  const byType = new Map(told().map((each) => [each.type, each]));
  expect(byType.get('endpoint.disabled')).toMatchObject({
    organization: 'org_a',
    data: { ...target, reason: 'the endpoint answered 410 Gone' },
  });
  expect(byType.get('endpoint.circuit_opened')).toMatchObject({ organization: 'org_a', data: target });
  expect(byType.get('message.dead_lettered')).toMatchObject({
    organization: 'org_a',
    // Users see the whole event, not its part.
    data: { ...target, messageId, eventId: 'evt_whole', reason: 'endpoint_not_found', errorType: 'gone', responseStatus: 410 },
  });
  expect(ops.requests.map(({ headers }) => headers[hopHeader])).toEqual(['4', '4', '4']);
});

test('a message that expired has the reason and the error type of its record', async () => {
  worker(sources());
  await sendToEndpoint();
  await ops.arrived(2);
  const messageId = await sendToEndpoint({ expiresAtMs: Date.now() + hourMs });
  await expireMessages(redis.client, `${prefix}{s0}:`);
  await ops.arrived(3);
  expect(told()[2]).toMatchObject({
    type: 'message.dead_lettered',
    data: { messageId, reason: 'max_retries_exceeded', errorType: 'expired', attempts: 0 },
  });
});

test('a message that expires before any worker has configured its endpoint is recorded once, for the own events alone', async () => {
  const messageId = await sendToEndpoint({ expiresAtMs: Date.now() + hourMs });
  await expireMessages(redis.client, `${prefix}{s0}:`);
  await new RedisDeliveryQueue({ redis: redis.client, prefix }).promote();
  expect(await redis.client.xlen(`${prefix}{s0}:ends`)).toBe(1);
  worker(sources());
  await ops.arrived(1);
  await nothingUnderWay();
  expect(told()).toMatchObject([{ type: 'message.dead_lettered', data: { messageId, endpointId: 'ep_a', errorType: 'expired' } }]);
});

test('what was reported of an endpoint is not reported again by another worker', async () => {
  worker(sources());
  const messageId = await sendToEndpoint();
  await ops.arrived(2);
  const notes = new OwnEventLog({ redis: redis.client, prefix });
  const about = { shard: 0, org: webhookOrganization('org_a'), routeId: 'app_a', destinationId: 'ep_a', messageId, reason: 'x' };
  for (const number of [5, 5, 4]) await notes.note({ ...about, kind: 'disabled', number });
  await notes.note({ ...about, kind: 'disabled', number: 6 });
  await notes.note({ ...about, destinationId: 'ep_none', kind: 'disabled', number: 7 });
  await ops.arrived(4);
  await nothingUnderWay();
  expect(types().filter((type) => type === 'endpoint.disabled')).toHaveLength(2);
});

test.each([
  [49, null],
  [50, 50],
  [69, 50],
  [70, 70],
  [95, 90],
])('an endpoint that has failed for %d %% of its time is warned of at %p %%', async (part, percent) => {
  const sinceMs = Math.floor(Date.now() - (part / 100) * hourMs - 1000);
  const circuit = { openedAtMs: sinceMs, lastSuccessAtMs: null };
  directory.putEndpoint({ ...(await endpoint()), updatedAtMs: 0 });
  worker(sources({ disableAfterHours: 1, circuits: { ofTarget: async () => circuit as never } }));
  await sendToEndpoint();
  await ops.arrived(percent === null ? 2 : 3);
  await nothingUnderWay();
  expect(new Set(ops.requests.map(({ headers }) => headers[hopHeader]))).toEqual(new Set(['4']));
  const warnings = told().filter(({ type }) => type === 'endpoint.disabling');
  expect(warnings.map(({ data }) => data)).toEqual(
    percent === null
      ? []
      : [
          {
            applicationId: 'app_a',
            endpointId: 'ep_a',
            percent,
            failingSince: new Date(sinceMs).toISOString(),
            disabledAt: new Date(sinceMs + hourMs).toISOString(),
          },
        ],
  );
});

async function endpoint() {
  const found = await directory.endpoint('org_a', 'ep_a');
  if (found === null) throw new Error('no endpoint');
  return found;
}
