import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startCuttableLine } from '../../../test/support/cuttable-line.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { startReceiver } from '../../../test/support/receiver.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { startTestDelivery } from '../../../test/support/test-delivery.ts';
import { PosthornError } from '../../core/errors.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { NewEvent } from '../../data/shard/messages.ts';
import { commandConnection } from '../../redis/connection.ts';

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

/** Lets the first `count` calls of a method fail, without having happened or after they have, and reports each. */
function failing(
  queue: RedisDeliveryQueue,
  { method, when, count, told }: { method: keyof RedisDeliveryQueue; when: 'before' | 'after'; count: number; told: () => void },
): RedisDeliveryQueue {
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

const methods = ['dequeue', 'settle', 'promote', 'configure', 'refreshShard', 'adopt'] as const;
const cases = methods.flatMap((method) => (['before', 'after'] as const).map((when) => [method, when] as const));

/** Events that wait for a worker, and the records that it needs. */
async function waiting(url: string): Promise<{ events: NewEvent[]; registry: RecordRegistry }> {
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  registry.put('route', routeRecord({ circuit: { failureThreshold: 1000, cooldownSeconds: 300, probeSuccessThreshold: 2 } }));
  registry.put('destination', destinationRecord({ url }));
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  const events = Array.from({ length: messages }, () => newEvent());
  await Promise.all(events.map((event) => acceptor.accept(event)));
  await configureTargets();
  return { events, registry };
}

/** All messages become delivered, each after so many attempts. */
async function areDelivered(attempts: number): Promise<void> {
  const reader = new RedisMessageReader({ redis: redis.client, prefix });
  await eventually(async () => {
    const { items } = await reader.deliveries('org_a', {}, { limit: 100 });
    expect(items.map((item) => ({ status: item.status, attempts: item.attempts }))).toEqual(
      Array.from({ length: messages }, () => ({ status: 'delivered', attempts })),
    );
  });
}

describe('a worker delivers everything', () => {
  test.each(cases)('a worker delivers everything when %s fails %s it has happened', async (method, when) => {
    // Each message fails once, so that every step of its life is taken.
    const seen = new Map<string, number>();
    const to = await startReceiver((response, _, { headers }) => {
      const id = String(headers['webhook-id']);
      seen.set(id, (seen.get(id) ?? 0) + 1);
      response.writeHead(headers['x-posthorn-attempt'] === '1' ? 500 : 200).end();
    });
    ends.push(() => to.close());
    const { registry } = await waiting(to.url);
    let failures = 0;
    const told = (): void => void failures++;
    // Something is adopted only after a dequeue whose answer was lost.
    const losing = (queue: RedisDeliveryQueue) => failing(queue, { method: 'dequeue', when: 'after', count: 1, told: () => {} });
    const wrapQueue = (queue: RedisDeliveryQueue) => failing(method === 'adopt' ? losing(queue) : queue, { method, when, count: 2, told });
    const delivery = startTestDelivery(redis, { prefix, registry, wrapQueue });
    ends.push(() => delivery.stop(1000));
    await areDelivered(2);
    expect([...seen.values()]).toEqual(Array.from({ length: messages }, () => 2));
    expect(failures).toBeGreaterThan(0);
  });
});

/** A client that resends its dequeue: it runs twice, and only the second reply arrives. Reports what was lost. */
function dequeuedTwice(queue: RedisDeliveryQueue, lost: (jobs: number) => void): RedisDeliveryQueue {
  let isFirst = true;
  return new Proxy(queue, {
    get(target, name) {
      const original: unknown = Reflect.get(target, name);
      if (typeof original !== 'function') return original;
      return async (...args: unknown[]): Promise<unknown> => {
        if (name === 'dequeue' && isFirst) {
          isFirst = false;
          const answer: Awaited<ReturnType<RedisDeliveryQueue['dequeue']>> = await original.apply(target, args);
          lost(answer.jobs.length);
        }
        return await original.apply(target, args);
      };
    },
  });
}

/** Reports each rejected dequeue. Calls that are made while the connection is down fail at once and do not count. */
function watchedDequeues(queue: RedisDeliveryQueue, rejected: (error: unknown) => void): RedisDeliveryQueue {
  return new Proxy(queue, {
    get(target, name) {
      const original: unknown = Reflect.get(target, name);
      if (typeof original !== 'function') return original;
      return async (...args: unknown[]): Promise<unknown> => {
        try {
          return await original.apply(target, args);
        } catch (error) {
          if (name === 'dequeue') rejected(error);
          throw error;
        }
      };
    },
  });
}

describe('a worker delivers once what it was given by an answer that nobody has heard', () => {
  const idsOf = (events: readonly NewEvent[]) => events.flatMap(({ targets }) => targets.map(({ messageId }) => messageId)).sort();

  test('when a dequeue happens twice and only the second answer comes, without any error', async () => {
    const to = await startReceiver();
    ends.push(() => to.close());
    const { events, registry } = await waiting(to.url);
    let lostJobs = 0;
    const wrapQueue = (queue: RedisDeliveryQueue) => dequeuedTwice(queue, (jobs) => (lostJobs = jobs));
    const delivery = startTestDelivery(redis, { prefix, registry, wrapQueue });
    ends.push(() => delivery.stop(1000));
    await areDelivered(1);
    expect(lostJobs).toBeGreaterThan(0);
    expect(to.requests.map(({ headers }) => headers['webhook-id']).sort()).toEqual(idsOf(events));
  });

  test('when the connection breaks under the answer and the client sends the dequeue again', async () => {
    const to = await startReceiver();
    ends.push(() => to.close());
    const { events, registry } = await waiting(to.url);
    const line = await startCuttableLine({ host: '127.0.0.1', port: redis.port });
    ends.push(() => line.stop());
    const client = commandConnection(`redis://127.0.0.1:${line.port}/0`, { commandTimeoutMs: 30_000 });
    client.on('error', () => {});
    await client.connect();
    ends.push(async () => client.disconnect());
    // The answer to a dequeue has the events.
    const swallowed = line.swallow(String(events[0]?.payload));
    const rejections: unknown[] = [];
    const wrapQueue = (queue: RedisDeliveryQueue) => watchedDequeues(queue, (error) => rejections.push(error));
    const delivery = startTestDelivery({ client, url: redis.url }, { prefix, registry, wrapQueue });
    ends.push(() => delivery.stop(1000));
    await swallowed;
    await areDelivered(1);
    expect(to.requests.map(({ headers }) => headers['webhook-id']).sort()).toEqual(idsOf(events));
    expect(rejections).toEqual([]);
  });
});
