import { beforeEach, describe, expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { Receiver } from '../../../test/support/receiver.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import type { RouteRecord, ThrottleRecord } from '../../core/records.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';
import { shardBase } from '../../data/shard/shard-keys.ts';
import type { Delivery } from '../start-delivery.ts';

const off: ThrottleRecord = { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null };
const hourly: ThrottleRecord = { ...off, mode: 'rate', rateLimit: 1, rateUnit: 'hour' };
const suite = deliverySuite();
const { becomes, prefix, send } = suite;
let generation = 1;

let worker: Delivery;

beforeEach(() => {
  worker = suite.worker();
});

function throttled(url: string, throttle: ThrottleRecord, enabled = true): void {
  suite.registry.put('destination', destinationRecord({ url }, { throttle, enabled, generation: generation++ }));
}
function route(circuit: Partial<RouteRecord['circuit']> = {}, failover: string[] = []): void {
  const destinations = failover.map((id) => ({ id, shard: 0 }));
  suite.registry.put(
    'route',
    routeRecord({
      circuit: { failureThreshold: 1, cooldownSeconds: 3600, probeSuccessThreshold: 1, ...circuit },
      failover: { destinations, afterAttempts: 10 },
      generation: generation++,
    }),
  );
}
const waitsUnderLimit = () => eventually(async () => expect(await suite.redis.client.zcard(`${shardBase(prefix, 0)}waiting`)).toBe(1));

/** A receiver that has got the first of so many messages; the others wait. */
async function waitingUnderLimit(messages: number): Promise<Receiver> {
  const to = await suite.receiver();
  throttled(to.url, hourly);
  suite.registry.put('route', routeRecord());
  for (let k = 0; k < messages; k++) await send();
  await to.arrived(1);
  await waitsUnderLimit();
  return to;
}

const whileWorkersRun = async (change: () => unknown): Promise<void> => void (await change());
const whileNoneRuns = async (change: () => unknown): Promise<void> => {
  await worker.stop(1000);
  await change();
  suite.worker();
};

describe('what waits by an earlier setting', () => {
  test.each([
    ['a higher one', { ...hourly, rateLimit: 1000, rateUnit: 'second' }],
    ['one of attempts at a time', { ...off, mode: 'concurrency', maxConcurrency: 4 }],
  ] as const)('what waits by an earlier setting of a rate goes out at once when it becomes %s', async (_, throttle) => {
    const to = await waitingUnderLimit(3);
    throttled(to.url, throttle);
    await to.arrived(3);
  });

  test('what waits by an earlier setting of a rate goes out at once when the destination is enabled again without it', async () => {
    const to = await waitingUnderLimit(2);
    throttled(to.url, hourly, false);
    await eventually(async () => expect(await suite.redis.client.scard(`${shardBase(prefix, 0)}paused`)).toBe(1));
    throttled(to.url, off);
    await to.arrived(2);
  });
});

describe.each([
  ['an earlier setting', whileWorkersRun],
  ['a setting that changed while no worker ran', whileNoneRuns],
])('what waits by %s', (_, changing) => {
  test('of a rate goes out when it becomes no limit', async () => {
    const to = await waitingUnderLimit(3);
    await changing(() => throttled(to.url, off));
    await to.arrived(3);
  });

  test('of an open circuit is tried after the new cooldown', async () => {
    let status = 500;
    const to = await suite.receiver((response) => response.writeHead(status).end());
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    route();
    const id = await send();
    await becomes(id, { status: 'circuit_open' });
    await changing(() => {
      status = 200;
      route({ cooldownSeconds: 1 });
    });
    await becomes(id, { status: 'delivered', attempts: 2 });
  });

  test('of an open circuit moves to the destinations that it gets for its failure', async () => {
    const broken = await suite.receiver((response) => response.writeHead(500).end());
    const spare = await suite.receiver();
    suite.registry.put('destination', destinationRecord({ url: broken.url }));
    suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_spare' }));
    route();
    const id = await send();
    await becomes(id, { status: 'circuit_open' });
    await changing(() => route({}, ['dst_spare']));
    await becomes(id, { status: 'delivered', destinationId: 'dst_spare' });
  });
});

describe('what comes by a setting that changed while no worker ran', () => {
  test('of an hourly rate that was used up goes out when it comes after that', async () => {
    const to = await suite.receiver();
    throttled(to.url, hourly);
    suite.registry.put('route', routeRecord());
    await send();
    await to.arrived(1);
    await whileNoneRuns(async () => {
      throttled(to.url, { ...hourly, rateLimit: 1000, rateUnit: 'second' });
      await send();
    });
    await to.arrived(2);
  });
});

describe('a new setting', () => {
  test('a new setting holds for what comes after an hourly one was used up, also where nothing waited', async () => {
    const to = await suite.receiver();
    throttled(to.url, hourly);
    suite.registry.put('route', routeRecord());
    await send();
    await to.arrived(1);
    throttled(to.url, { ...hourly, rateLimit: 1000, rateUnit: 'second' });
    await send();
    await to.arrived(2);
  });

  test('a new setting that limits a destination is in force before its next message', async () => {
    const to = await suite.receiver();
    throttled(to.url, off);
    suite.registry.put('route', routeRecord());
    await send();
    await to.arrived(1);
    throttled(to.url, hourly);
    await eventually(async () =>
      expect(await suite.redis.client.hget(`${shardBase(prefix, 0)}l:dst_a`, hashFields.limiter.emissionUs)).toBe('3600000000'),
    );
    for (let k = 0; k < 5; k++) await send();
    await waitsUnderLimit();
    expect(to.requests.length).toBeLessThanOrEqual(2);
  });
});
