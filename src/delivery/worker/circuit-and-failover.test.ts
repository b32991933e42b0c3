import { beforeEach, describe, expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { endCooldowns } from '../../../test/support/end-cooldowns.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import type { RouteRecord } from '../../core/records.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const noRetry = { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
const retryOften = { maxRetries: 25, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
const suite = deliverySuite();
const { becomes, ends, prefix, send } = suite;

beforeEach(() => {
  suite.worker();
});

/** A receiver that responds with the current `health`. */
async function receiver(health: { status: number }): Promise<Receiver> {
  const started = await startReceiver((response) => {
    response.statusCode = health.status;
    response.end();
  });
  ends.push(() => started.close());
  return started;
}
/** As if what waits for the open circuit had been there for 73 hours, and been due for as long. */
async function waitLong(): Promise<void> {
  const { client } = suite.redis;
  const base = `${prefix}{s0}:`;
  await eventually(async () => expect(await client.exists(`${base}due`)).toBe(0));
  const longAgoMs = systemClock.now() - 73 * 3_600_000;
  for (const message of await client.keys(`${base}m:*`)) {
    await client.hset(message, hashFields.message.indexStamp, `${longAgoMs}-1`);
    await client.hdel(message, hashFields.message.dueMs);
  }
  for (const target of await client.smembers(`${base}broken`))
    await client.hset(`${base}t:${target}`, hashFields.target.outageBeganMs, longAgoMs);
  await endCooldowns(client, prefix);
}
function route(circuit: Partial<RouteRecord['circuit']>, failover: string[] = [], afterAttempts = 3): void {
  suite.registry.put(
    'route',
    routeRecord({
      circuit: { failureThreshold: 1000, cooldownSeconds: 60, probeSuccessThreshold: 1, ...circuit },
      failover: { destinations: failover.map((id) => ({ id, shard: 0 })), afterAttempts },
    }),
  );
}

describe('a circuit', () => {
  test('a circuit opens after consecutive failures, lets messages wait, and closes after a successful probe', async () => {
    const health = { status: 500 };
    const to = await receiver(health);
    suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy: retryOften }));
    route({ failureThreshold: 2, cooldownSeconds: 3600 });
    const id = await send();
    await becomes(id, { status: 'circuit_open', attempts: 2, lastErrorType: 'http_error' });
    const later = await send();
    await becomes(later, { status: 'circuit_open', attempts: 0, lastErrorType: 'circuit_open' });
    expect(to.requests).toHaveLength(2);
    health.status = 200;
    await endCooldowns(suite.redis.client, prefix);
    await becomes(id, { status: 'delivered', attempts: 3 });
    await becomes(later, { status: 'delivered', attempts: 1, lastErrorType: null });
  });

  test('a circuit for which a message has waited 72 hours is what its dead letter names, unless an attempt has failed before', async () => {
    const to = await receiver({ status: 500 });
    suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy: retryOften }));
    route({ failureThreshold: 1, cooldownSeconds: 3600 });
    const tried = await send();
    await becomes(tried, { status: 'circuit_open', attempts: 1 });
    const untried = await send();
    await becomes(untried, { status: 'circuit_open' });
    await waitLong();
    await becomes(untried, { status: 'dlq', attempts: 0, deadLetterReason: 'circuit_breaker_exhausted', lastErrorType: 'circuit_open' });
    await becomes(tried, { status: 'dlq', attempts: 1, deadLetterReason: 'circuit_breaker_exhausted', lastErrorType: 'http_error' });
  });

  test('a circuit is not opened by 429', async () => {
    const to = await receiver({ status: 429 });
    suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy: { ...retryOften, maxRetries: 4 } }));
    route({ failureThreshold: 2 });
    await becomes(await send(), { status: 'dlq', attempts: 5 });
  });

  test('a message whose last attempt was a failed probe is a dead letter of the circuit', async () => {
    const to = await receiver({ status: 500 });
    suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy: { ...retryOften, maxRetries: 1 } }));
    route({ failureThreshold: 1, cooldownSeconds: 1 });
    await becomes(await send(), { status: 'dlq', attempts: 2, deadLetterReason: 'circuit_breaker_exhausted' });
  });
});

describe('failover', () => {
  test('takes a message after the failed attempts, with its headers, and the record says where it ended', async () => {
    const broken = await receiver({ status: 500 });
    const spare = await receiver({ status: 200 });
    suite.registry.put('destination', destinationRecord({ url: broken.url }, { retryPolicy: retryOften }));
    suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_spare' }));
    route({}, ['dst_spare'], 2);
    const id = await send();
    await becomes(id, { status: 'delivered', attempts: 3, destinationId: 'dst_spare', failedOverFrom: 'dst_a' });
    expect(broken.requests).toHaveLength(2);
    const [request] = await spare.arrived(1);
    expect(request?.headers).toMatchObject({
      'webhook-id': id,
      'x-posthorn-attempt': '3',
      'x-posthorn-failover': 'true',
      'x-posthorn-original-destination': 'dst_a',
      'x-posthorn-failure-reason': 'failed_attempts',
    });
    for (const destinationId of ['dst_a', 'dst_spare']) {
      expect((await suite.reader.deliveries('org_a', { destinationId }, { limit: 10 })).items.map((each) => each.id)).toEqual([id]);
    }
  });

  test('takes messages at once while the circuit is open', async () => {
    const broken = await receiver({ status: 500 });
    const spare = await receiver({ status: 200 });
    suite.registry.put('destination', destinationRecord({ url: broken.url }, { retryPolicy: retryOften }));
    suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_spare' }));
    route({ failureThreshold: 1 }, ['dst_spare'], 10);
    await becomes(await send(), { status: 'delivered', attempts: 2, destinationId: 'dst_spare' });
    await becomes(await send(), { status: 'delivered', attempts: 1, destinationId: 'dst_spare' });
    expect(broken.requests).toHaveLength(1);
    expect(spare.requests.at(-1)?.headers['x-posthorn-failure-reason']).toBe('circuit_open');
  });

  test('for an open circuit is reported as such until its first attempt there has ended', async () => {
    const broken = await receiver({ status: 500 });
    const answers: (() => void)[] = [];
    const spare = await startReceiver((response) => answers.push(() => response.end()));
    ends.push(() => spare.close());
    suite.registry.put('destination', destinationRecord({ url: broken.url }, { retryPolicy: noRetry }));
    suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_spare' }));
    route({ failureThreshold: 1 }, ['dst_spare']);
    await send();
    await eventually(() => expect(answers).toHaveLength(1));
    const id = await send();
    await eventually(() => expect(answers).toHaveLength(2));
    await becomes(id, { status: 'processing', attempts: 0, failedOverFrom: 'dst_a', lastErrorType: 'circuit_open' });
    for (const answer of answers) answer();
    await becomes(id, { status: 'delivered', attempts: 1, lastErrorType: null });
  });

  test('comes before a dead letter, in order, each destination by its own retries, and never back to the first', async () => {
    const first = await receiver({ status: 500 });
    const second = await receiver({ status: 500 });
    const third = await receiver({ status: 500 });
    suite.registry.put('destination', destinationRecord({ url: first.url }, { retryPolicy: noRetry }));
    suite.registry.put(
      'destination',
      destinationRecord({ url: second.url }, { id: 'dst_b', retryPolicy: { ...retryOften, maxRetries: 2 } }),
    );
    suite.registry.put('destination', destinationRecord({ url: third.url }, { id: 'dst_c', retryPolicy: noRetry }));
    route({}, ['dst_b', 'dst_c'], 5);
    const id = await send();
    await becomes(id, {
      status: 'dlq',
      attempts: 5,
      destinationId: 'dst_c',
      failedOverFrom: 'dst_a',
      deadLetterReason: 'max_retries_exceeded',
    });
    expect([first, second, third].map(({ requests }) => requests.length)).toEqual([1, 3, 1]);
  });
});

test('what exceeds the queue limit is a dead letter that can be seen, and the rest is delivered', async () => {
  const to = await receiver({ status: 200 });
  const throttle = { mode: 'rate', rateLimit: 5, rateUnit: 'second', maxConcurrency: null, queueLimit: 3 } as const;
  suite.registry.put('destination', destinationRecord({ url: to.url }, { throttle }));
  route({});
  await becomes(await send(), { status: 'delivered' });
  await eventually(async () => expect(await suite.redis.client.hget(`${prefix}{s0}:l:dst_a`, hashFields.limiter.maxQueued)).toBe('3'));
  const events = Array.from({ length: 20 }, () => newEvent());
  await Promise.all(events.map((event) => suite.acceptor.accept(event)));
  await eventually(async () => {
    const { items } = await suite.reader.deliveries('org_a', {}, { limit: 100 });
    expect(items.filter(({ status }) => status === 'delivered').length + (await dead()).length).toBe(21);
  });
  expect((await dead()).length).toBeGreaterThanOrEqual(10);
  expect(new Set((await dead()).map(({ deadLetterReason }) => deadLetterReason))).toEqual(new Set(['queue_limit_exceeded']));
});

async function dead() {
  return (await suite.reader.deliveries('org_a', { statuses: ['dlq'] }, { limit: 100 })).items;
}
