import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newEvent } from '../../test/support/new-event.ts';
import { passes } from '../../test/support/passes.ts';
import { patientClock } from '../../test/support/patient-clock.ts';
import { startReceiver } from '../../test/support/receiver.ts';
import { destinationRecord, organizationRecord, RecordRegistry, routeRecord } from '../../test/support/record-registry.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { targetSetting } from '../../test/support/target-setting.ts';
import { startTestDelivery } from '../../test/support/test-delivery.ts';
import { PosthornError } from '../core/errors.ts';
import type { DeliveryQueue } from '../data/delivery-queue.ts';
import { RedisMessageAcceptor } from '../data/message-acceptor.ts';
import { RedisMessageReader } from '../data/message-reader.ts';
import { RedisDeliveryQueue } from '../data/redis-delivery-queue.ts';

const prefix = 'test:';
const messages = 20;
let redis: RedisServer;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const unavailable = (): PosthornError => new PosthornError('UNAVAILABLE', 'injected');

/** Lets the first `count` calls of a method fail, without having happened or after they have, and tells of each. */
function failing(
  queue: DeliveryQueue,
  { method, when, count, told }: { method: keyof DeliveryQueue; when: 'before' | 'after'; count: number; told: () => void },
): DeliveryQueue {
  let calls = 0;
  return new Proxy(queue, {
    get(target, name) {
      const original: unknown = Reflect.get(target, name);
      if (typeof original !== 'function') return original;
      return async (...args: unknown[]) => {
        const fails = name === method && calls++ < count;
        if (fails) told();
        if (fails && when === 'before') throw unavailable();
        const answer: unknown = await original.apply(target, args);
        if (fails) throw unavailable();
        return answer;
      };
    },
  });
}

/** So that the first dequeue of the worker gives messages. The generation is an old one, so the worker configures again. */
async function configureTargets(): Promise<void> {
  const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  for (const target of (await queue.targets(1)).targets) await queue.configure(target, targetSetting({ revision: 'old' }));
}

const methods = ['dequeue', 'settle', 'promote', 'configure', 'tend', 'adopt'] as const;
const cases = methods.flatMap((method) => (['before', 'after'] as const).map((when) => [method, when] as const));

describe('a worker delivers everything', () => {
  test.each(cases)('when %s fails %s it has happened', async (method, when) => {
    // Each message fails once, so that every step of its life is taken.
    const seen = new Map<string, number>();
    const to = await startReceiver((response, _, { headers }) => {
      const id = String(headers['webhook-id']);
      seen.set(id, (seen.get(id) ?? 0) + 1);
      response.writeHead(headers['x-posthorn-attempt'] === '1' ? 500 : 200).end();
    });
    ends.push(() => to.close());
    const registry = new RecordRegistry();
    registry.put('organization', organizationRecord());
    registry.put('route', routeRecord({ circuit: { failureThreshold: 1000, cooldownSeconds: 300, probeSuccessThreshold: 2 } }));
    registry.put('destination', destinationRecord({ url: to.url }));
    const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock });
    const events = Array.from({ length: messages }, () => newEvent());
    await Promise.all(events.map((event) => acceptor.accept(event)));
    await configureTargets();
    let failures = 0;
    const told = (): void => void failures++;
    // Something is adopted only after a dequeue whose answer was lost.
    const losing = (queue: DeliveryQueue) => failing(queue, { method: 'dequeue', when: 'after', count: 1, told: () => {} });
    const wrapQueue = (queue: DeliveryQueue) => failing(method === 'adopt' ? losing(queue) : queue, { method, when, count: 2, told });
    const delivery = startTestDelivery(redis, { prefix, registry, wrapQueue });
    ends.push(() => delivery.stop(1000));
    const reader = new RedisMessageReader({ redis: redis.client, prefix });
    await passes(async () => {
      const { items } = await reader.deliveries('org_a', {}, { limit: 100 });
      expect(items.map(({ status, attempts }) => ({ status, attempts }))).toEqual(
        Array.from({ length: messages }, () => ({ status: 'delivered', attempts: 2 })),
      );
    });
    expect([...seen.values()]).toEqual(Array.from({ length: messages }, () => 2));
    expect(failures).toBeGreaterThan(0);
  });
});
