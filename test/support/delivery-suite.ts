import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import type { Delivery, DeliveryOptions } from '../../src/delivery/start-delivery.ts';
import { startDeliveryProgram } from './delivery-program.ts';
import { eventually } from './eventually.ts';
import { lenientClock } from './lenient-clock.ts';
import { newEvent } from './new-event.ts';
import type { Program } from './program.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { RecordRegistry } from './record-registry.ts';
import { organizationRecord } from './records.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { startTestDelivery } from './test-delivery.ts';

const prefix = 'test:';

/** What the tests of a suite about deliveries share. Redis is emptied before each test; what a test starts ends with it. */
export interface DeliverySuite {
  readonly prefix: string;
  readonly redis: RedisServer;
  readonly acceptor: RedisMessageAcceptor;
  readonly reader: RedisMessageReader;
  /** The registry of this test; it has the organization `org_a`. */
  readonly registry: RecordRegistry;
  /** Called after the test, the last one first. */
  readonly ends: (() => Promise<unknown>)[];
  worker(own?: Partial<DeliveryOptions>): Delivery;
  /** Starts a worker as a process of its own, which reads the records that are published in Redis. */
  program(): Promise<Program>;
  receiver(answer?: Parameters<typeof startReceiver>[0]): Promise<Receiver>;
  /** Accepts an event for the route `rte_a` and the destination `dst_a`; returns the id of its message. */
  send(): Promise<string>;
  /** Waits until the delivery matches. */
  becomes(messageId: string, expected: object): Promise<void>;
}

/** Registers the hooks of the suite that calls it. */
export function deliverySuite({ shards = 1 } = {}): DeliverySuite {
  let redis: RedisServer;
  let acceptor: RedisMessageAcceptor;
  let reader: RedisMessageReader;
  let registry: RecordRegistry;
  const ends: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
    reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    await redis.client.flushall();
    registry = new RecordRegistry();
    registry.put('organization', organizationRecord());
  });
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  return {
    prefix,
    ends,
    get redis() {
      return redis;
    },
    get acceptor() {
      return acceptor;
    },
    get reader() {
      return reader;
    },
    get registry() {
      return registry;
    },
    worker(own = {}) {
      const delivery = startTestDelivery(redis, { shards, prefix, registry, ...own });
      ends.push(() => delivery.stop(1000));
      return delivery;
    },
    async program() {
      const program = await startDeliveryProgram(redis.url, { POSTHORN_REDIS_KEY_PREFIX: prefix, POSTHORN_SHARDS: String(shards) });
      ends.push(() => program.stop());
      return program;
    },
    async receiver(answer) {
      const started = await startReceiver(answer);
      ends.push(() => started.close());
      return started;
    },
    async send() {
      const event = newEvent();
      await acceptor.accept(event);
      return event.targets[0]?.messageId ?? '';
    },
    becomes: (messageId, expected) => eventually(async () => expect(await reader.delivery('org_a', messageId)).toMatchObject(expected)),
  };
}
