import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { webhookSecretSealingContext } from '../../src/core/sealing-contexts.ts';
import { webhookOrganization } from '../../src/core/webhook.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import type { NewEvent } from '../../src/data/shard/messages.ts';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import type { NewWebhookEndpoint, WebhookEndpoint, WebhookSecret } from '../../src/data/webhooks/webhooks.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { testKeyring } from './controllers.ts';
import { startDeliveryProgram } from './delivery-program.ts';
import { eventually } from './eventually.ts';
import { lenientClock } from './lenient-clock.ts';
import { silentLogger } from './logger.ts';
import type { Program } from './program.ts';
import { publishRecords } from './published-records.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { newWebhookEndpoint } from './webhooks.ts';

const prefix = 'posthorn:';
const org = 'org_a';
const inside = webhookOrganization(org);

/** What the tests of a suite about processes that deliver to webhook endpoints share. Redis is emptied before each test. */
export interface WebhookProgramSuite {
  readonly prefix: string;
  readonly redis: RedisServer;
  readonly store: RedisWebhookStore;
  readonly reader: RedisMessageReader;
  /** The receiver of this test. */
  readonly receiver: Receiver;
  /** What the receiver does with a request. Each test begins with the status 200. */
  answer: (response: ServerResponse) => void;
  /** Makes an endpoint of `org_a` at the receiver, with an application and a secret of its own. */
  endpoint(settings?: Partial<NewWebhookEndpoint>): Promise<WebhookEndpoint>;
  /** Starts a worker on one shard, which is stopped after the test. */
  worker(environment?: Record<string, string>): Promise<Program>;
  accept(event: NewEvent): Promise<void>;
  /** Waits until the message matches. */
  becomes(messageId: string, expected: object): Promise<void>;
}

/** How a worker program opens the secret of an endpoint of `org_a`. */
export function sealWebhookSecret(endpointId: string): WebhookSecret {
  const sealed = testKeyring.seal(`whsec_${Buffer.alloc(32, 1).toString('base64')}`, webhookSecretSealingContext(org, endpointId));
  return { sealed, prefix: 'whsec_AQEB', version: 1, previous: [] };
}

/** Registers the hooks of the suite that calls it. */
export function webhookProgramSuite(): WebhookProgramSuite {
  let redis: RedisServer;
  let store: RedisWebhookStore;
  let reader: RedisMessageReader;
  let receiver: Receiver;
  const ends: (() => Promise<unknown>)[] = [];
  const suite: WebhookProgramSuite = {
    prefix,
    get redis() {
      return redis;
    },
    get store() {
      return store;
    },
    get reader() {
      return reader;
    },
    get receiver() {
      return receiver;
    },
    answer: () => undefined,
    async endpoint(settings = {}) {
      const { id } = await store.createApplication({ org, name: 'Customer', shard: 0 });
      return await store.createEndpoint(newWebhookEndpoint(id, { url: receiver.url, sealSecret: sealWebhookSecret, ...settings }));
    },
    async worker(environment = {}) {
      const settings = { POSTHORN_SHARDS: '1', POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true', ...environment };
      const program = await startDeliveryProgram(redis.url, settings);
      ends.push(() => program.stop());
      return program;
    },
    accept: async (event) => void (await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event)),
    becomes: (messageId, expected) => eventually(async () => expect(await reader.delivery(inside, messageId)).toMatchObject(expected)),
  };

  beforeAll(async () => {
    redis = await startRedis();
    store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
    reader = new RedisMessageReader({ redis: redis.client, prefix });
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    await redis.client.flushall();
    suite.answer = (response) => response.end();
    receiver = await startReceiver((response) => suite.answer(response));
    ends.push(() => receiver.close());
    await publishRecords(redis.client, prefix);
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  return suite;
}
