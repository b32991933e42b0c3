import { describe, expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { inBatches } from '../../../test/support/in-batches.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { type Receiver, startReceiver } from '../../../test/support/receiver.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import type { HttpDestinationRecord, RouteRecord } from '../../core/records.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';

const noRetry = { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
const twoRetries = { ...noRetry, maxRetries: 2 };
const rareRetries = { maxRetries: 5, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000, backoffMultiplier: 1 };
const onlyOne = { mode: 'concurrency', rateLimit: null, rateUnit: null, maxConcurrency: 1, queueLimit: 1 } as const;

const suite = deliverySuite({ shards: 2 });
const { becomes, ends, prefix, send } = suite;

/** Responds with the current `health`; 0: not before it is closed. */
async function receiver(health: { status: number }): Promise<Receiver> {
  const started = await startReceiver((response) => {
    if (health.status === 0) return;
    response.statusCode = health.status;
    response.end();
  });
  ends.push(() => started.close());
  return started;
}

type Place = 'same' | 'other';
const shardOf = (place: Place): number => (place === 'same' ? 0 : 1);

interface World {
  first: Receiver;
  /** The failover destinations dst_b and dst_c. */
  spares: [Receiver, Receiver];
  health: [{ status: number }, { status: number }, { status: number }];
  /** Puts a destination: 0 the first one, 1 and 2 the failover destinations. */
  put: (number: 0 | 1 | 2, changes?: Partial<HttpDestinationRecord>) => void;
  route: (spares: readonly string[], changes?: Partial<RouteRecord>) => void;
  counts: () => number[];
}

const ids = ['dst_a', 'dst_b', 'dst_c'] as const;

async function world(place: Place, statuses: readonly [number, number, number]): Promise<World> {
  const health: World['health'] = [{ status: statuses[0] }, { status: statuses[1] }, { status: statuses[2] }];
  const receivers = [await receiver(health[0]), await receiver(health[1]), await receiver(health[2])] as const;
  let generation = 1;
  const put: World['put'] = (number, changes = {}) => {
    const common = { id: ids[number], shard: number === 0 ? 0 : shardOf(place), generation: generation++ };
    suite.registry.put(
      'destination',
      destinationRecord({ url: receivers[number].url }, { ...common, retryPolicy: twoRetries, ...changes }),
    );
  };
  for (const number of [0, 1, 2] as const) put(number);
  const route: World['route'] = (spares, changes = {}) =>
    suite.registry.put(
      'route',
      routeRecord({
        circuit: { failureThreshold: 1000, cooldownSeconds: 3600, probeSuccessThreshold: 1 },
        failover: { destinations: spares.map((id) => ({ id, shard: shardOf(place) })), afterAttempts: 1 },
        generation: generation++,
        ...changes,
      }),
    );
  route(['dst_b', 'dst_c']);
  const counts = () => receivers.map(({ requests }) => requests.length);
  return { first: receivers[0], spares: [receivers[1], receivers[2]], health, put, route, counts };
}

/** Failures of a failover destination, by its number; how many requests it has had by then. */
const obstacles: Record<string, (there: World, number: 1 | 2, place: Place) => Promise<number>> = {
  disabled: async ({ put }, number) => {
    put(number, { enabled: false });
    return 0;
  },
  suspended: async ({ put }, number) => {
    put(number, { enabled: false, suspended: true });
    return 0;
  },
  deleted: async (_, number) => {
    suite.registry.remove('destination', ids[number]);
    return 0;
  },
  'held back by an open circuit': async (there, number, place) => {
    await known(there, number, place);
    const base = `${prefix}{s${shardOf(place)}}:`;
    const n = await suite.redis.client.hget(`${base}tn:org_a`, `rte_a ${ids[number]}`);
    const endMs = Date.now() + 3_600_000;
    await suite.redis.client.hset(`${base}t:${n}`, { [hashFields.target.circuitState]: 'o', [hashFields.target.cooldownEndMs]: endMs });
    return 1;
  },
  'full to its queueLimit': async (there, number, place) => {
    there.put(number, { throttle: onlyOne });
    await known(there, number, place);
    there.health[number].status = 0;
    suite.registry.put('route', routeRecord({ id: 'rte_full', destinations: [{ id: ids[number], shard: shardOf(place) }] }));
    await suite.acceptor.accept(eventTo('rte_full', ids[number], shardOf(place)));
    await eventually(() => expect(there.counts()[number]).toBe(2));
    return 2;
  },
};

function eventTo(routeId: string, destinationId: string, shard: number) {
  const event = newEvent();
  return {
    ...event,
    targets: event.targets.map((target) => ({
      ...target,
      routeId,
      destinationId,
      shard,
      messageId: `msg_0${shard}${target.messageId.slice('msg_00'.length)}`,
    })),
  };
}

/** Registers a failover destination as a target of the route in Redis. */
async function known({ health, counts }: World, number: 1 | 2, place: Place): Promise<void> {
  const before = health[number].status;
  health[number].status = 200;
  const event = eventTo('rte_a', ids[number], shardOf(place));
  await suite.acceptor.accept(event);
  await becomes(event.targets[0]?.messageId ?? '', { status: 'delivered' });
  expect(counts()[number]).toBe(1);
  health[number].status = before;
}

describe.each<Place>(['same', 'other'])('in the %s shard', (place) => {
  describe.each(Object.entries(obstacles))('a failover destination that is %s', (_, obstruct) => {
    test('is passed over for the next one', async () => {
      suite.worker();
      const there = await world(place, [500, 200, 200]);
      const before = await obstruct(there, 1, place);
      const id = await send();
      await becomes(id, { status: 'delivered', attempts: 2, destinationId: 'dst_c', failedOverFrom: 'dst_a' });
      expect(there.counts()).toEqual([1, before, 1]);
      expect(there.spares[1].requests[0]?.headers).toMatchObject({ 'x-posthorn-failure-reason': 'failed_attempts' });
    });

    test('as the last one leaves the message to the retries of its first destination', async () => {
      suite.worker();
      const there = await world(place, [500, 200, 200]);
      there.route(['dst_b']);
      const before = await obstruct(there, 1, place);
      const id = await send();
      const end =
        obstruct === obstacles['held back by an open circuit'] ? { status: 'circuit_open' } : { status: 'dlq', destinationId: 'dst_a' };
      await becomes(id, { ...end, attempts: 3 });
      expect(there.counts()).toEqual([3, before, 0]);
    });

    test('as the second one is passed over where the first one has failed', async () => {
      suite.worker();
      const there = await world(place, [500, 500, 200]);
      there.put(1, { retryPolicy: noRetry });
      const before = await obstruct(there, 2, place);
      const id = await send();
      const waits = obstruct === obstacles['held back by an open circuit'];
      await becomes(
        id,
        waits ? { status: 'circuit_open', destinationId: 'dst_c' } : { status: 'dlq', deadLetterReason: 'max_retries_exceeded' },
      );
      expect(there.counts()).toEqual([1, 1, before]);
    });
  });

  const stops: Record<string, (there: World) => void> = {
    'is disabled': ({ put }) => put(1, { enabled: false }),
    'is disabled and leaves the list': ({ put, route }) => {
      put(1, { enabled: false });
      route(['dst_c'], {});
    },
    'is suspended': ({ put }) => put(1, { enabled: false, suspended: true }),
    'is deleted': ({ route }) => {
      suite.registry.remove('destination', 'dst_b');
      route(['dst_c']);
    },
    'is deleted while the route names it': () => suite.registry.remove('destination', 'dst_b'),
    'is taken out of the route': ({ route }) => route(['dst_c']),
  };
  describe.each(Object.entries(stops))('a message whose failover destination %s', (_, stop) => {
    async function waiting(statuses: readonly [number, number, number]): Promise<{ there: World; id: string }> {
      suite.worker();
      const there = await world(place, statuses);
      there.put(1, { retryPolicy: rareRetries });
      const id = await send();
      await becomes(id, { status: 'retrying', attempts: 2, destinationId: 'dst_b' });
      return { there, id };
    }

    test('goes to the next one without waiting for its next attempt', async () => {
      const { there, id } = await waiting([500, 500, 200]);
      stop(there);
      await becomes(id, { status: 'delivered', attempts: 3, destinationId: 'dst_c', failedOverFrom: 'dst_a' });
      expect(there.counts()).toEqual([1, 1, 1]);
      expect(there.spares[1].requests[0]?.headers).toMatchObject({
        'x-posthorn-failover': 'true',
        'x-posthorn-original-destination': 'dst_a',
      });
    });

    test('goes back to its first one when there is no other, and has the retries left there', async () => {
      const { there, id } = await waiting([500, 500, 200]);
      there.put(2, { enabled: false });
      stop(there);
      await becomes(id, {
        status: 'dlq',
        attempts: 4,
        destinationId: 'dst_a',
        failedOverFrom: null,
        deadLetterReason: 'max_retries_exceeded',
      });
      expect(there.counts()).toEqual([3, 1, 0]);
      expect(there.first.requests[2]?.headers).not.toHaveProperty('x-posthorn-failover');
      const { items } = await suite.reader.deliveries('org_a', { destinationId: 'dst_a' }, { limit: 10 });
      expect(items.map((each) => each.id)).toEqual([id]);
      expect((await suite.reader.deliveries('org_a', { destinationId: 'dst_b' }, { limit: 10 })).items).toEqual([]);
    });

    test('is delivered by its first one when that is well again', async () => {
      const { there, id } = await waiting([500, 500, 200]);
      there.put(2, { enabled: false });
      there.health[0].status = 200;
      stop(there);
      await becomes(id, { status: 'delivered', attempts: 3, destinationId: 'dst_a' });
      expect(there.counts()).toEqual([2, 1, 0]);
    });
  });

  test('a message that has used up the retries of its first destination makes no further attempt there', async () => {
    suite.worker();
    const there = await world(place, [500, 500, 200]);
    there.put(0, { retryPolicy: noRetry });
    there.put(1, { retryPolicy: rareRetries });
    there.route(['dst_b'], { failover: { destinations: [{ id: 'dst_b', shard: shardOf(place) }], afterAttempts: 5 } });
    const id = await send();
    await becomes(id, { status: 'retrying', attempts: 2, destinationId: 'dst_b' });
    there.put(1, { enabled: false });
    await becomes(id, { status: 'dlq', attempts: 2, destinationId: 'dst_a', deadLetterReason: 'max_retries_exceeded' });
    expect(there.counts()).toEqual([1, 1, 0]);
  });

  describe('a first destination', () => {
    test('a first destination that is disabled holds its messages until it is enabled again', async () => {
      suite.worker();
      const there = await world(place, [200, 200, 200]);
      there.put(0, { enabled: false });
      const id = await send();
      await eventually(async () => expect(await suite.redis.client.scard(`${prefix}{s0}:paused`)).toBe(1));
      await becomes(id, { status: 'pending', attempts: 0, destinationId: 'dst_a', waitingFor: 'destination_disabled' });
      there.put(0);
      await becomes(id, { status: 'delivered', attempts: 1, destinationId: 'dst_a' });
      expect(there.counts()).toEqual([1, 0, 0]);
    });

    test.each([
      ['hands its messages to a failover destination', true, { status: 'delivered', attempts: 2, destinationId: 'dst_b' }],
      ['makes them dead letters when none is free', false, { status: 'dlq', attempts: 1, deadLetterReason: 'destination_not_found' }],
    ])('a first destination that is deleted %s', async (_, isFree, end) => {
      suite.worker();
      const there = await world(place, [500, 200, 200]);
      there.put(0, { retryPolicy: rareRetries });
      const later = { failover: { destinations: [{ id: 'dst_b', shard: shardOf(place) }], afterAttempts: 9 } };
      there.route([], later);
      const id = await send();
      await becomes(id, { status: 'retrying', attempts: 1 });
      if (!isFree) there.put(1, { enabled: false });
      suite.registry.remove('destination', 'dst_a');
      there.route([], { ...later, ...(isFree ? {} : { failover: { destinations: [], afterAttempts: 9 } }), destinations: [] });
      await becomes(id, end);
      expect(there.counts()).toEqual([1, isFree ? 1 : 0, 0]);
    });
  });

  test('what exceeds the queue limit of a destination goes to a failover destination that is free, else to the dead letters', async () => {
    suite.worker();
    const there = await world(place, [200, 200, 200]);
    there.put(0, { throttle: { ...onlyOne, queueLimit: 2 } });
    there.put(1, { throttle: { ...onlyOne, queueLimit: 3 } });
    there.route(['dst_b']);
    for (const to of [eventTo('rte_a', 'dst_a', 0), eventTo('rte_a', 'dst_b', shardOf(place))]) {
      await suite.acceptor.accept(to);
      await becomes(to.targets[0]?.messageId ?? '', { status: 'delivered' });
    }
    there.health[0].status = 0;
    there.health[1].status = 0;
    const sent: string[] = [];
    for (let k = 0; k < 7; k++) sent.push(await send());
    const placesOf = async () => {
      const views = await Promise.all(sent.map((id) => suite.reader.delivery('org_a', id)));
      return views.map((view) => view?.deadLetterReason ?? view?.destinationId);
    };
    await eventually(async () =>
      expect(await placesOf()).toEqual(['dst_a', 'dst_a', 'dst_b', 'dst_b', 'dst_b', 'queue_limit_exceeded', 'queue_limit_exceeded']),
    );
    await eventually(() => expect(there.counts()).toEqual([2, 2, 0]));
    expect(there.spares[0].requests[1]?.headers).toMatchObject({ 'x-posthorn-failure-reason': 'queue_limit_exceeded' });
  });

  const hasFailover = (): Promise<unknown> =>
    eventually(async () => {
      const n = await suite.redis.client.hget(`${prefix}{s0}:tn:org_a`, 'rte_a dst_a');
      expect(await suite.redis.client.hget(`${prefix}{s0}:t:${n}`, hashFields.target.failoverTargets)).not.toBeNull();
    });

  test('what exceeds the queue limit goes to a failover destination whose record comes after the first message', async () => {
    suite.worker();
    const there = await world(place, [0, 200, 200]);
    there.put(0, { throttle: onlyOne });
    suite.registry.remove('destination', 'dst_b');
    there.route(['dst_b']);
    await send();
    await eventually(() => expect(there.counts()[0]).toBe(1));
    there.put(1);
    await hasFailover();
    await becomes(await send(), { status: 'delivered', destinationId: 'dst_b' });
  });

  test('the first messages of a route fail over, too, when other routes have filled their destination', async () => {
    suite.worker();
    const there = await world(place, [0, 200, 200]);
    there.put(0, { throttle: onlyOne });
    suite.registry.put('route', routeRecord({ id: 'rte_b' }));
    await suite.acceptor.accept(eventTo('rte_b', 'dst_a', 0));
    await eventually(() => expect(there.counts()[0]).toBe(1));
    for (const id of [await send(), await send()]) await becomes(id, { status: 'delivered', destinationId: 'dst_b' });
  });

  test('what exceeds the queue limits of destinations that have had no message yet goes to the next ones that are free', async () => {
    const there = await world(place, [0, 0, 0]);
    there.put(0, { throttle: { ...onlyOne, queueLimit: 2 } });
    there.put(1, { throttle: { ...onlyOne, queueLimit: 3 } });
    there.put(2, { throttle: { ...onlyOne, queueLimit: 1 } });
    const sent: string[] = [];
    for (let k = 0; k < 7; k++) sent.push(await send());
    suite.worker();
    const placesOf = async () =>
      (await Promise.all(sent.map((id) => suite.reader.delivery('org_a', id)))).map((view) => view?.destinationId);
    await eventually(async () => expect(await placesOf()).toEqual(['dst_a', 'dst_a', 'dst_b', 'dst_b', 'dst_b', 'dst_c', 'dst_c']));
    await eventually(() => expect(there.counts()).toEqual([1, 1, 1]));
  });

  test('of a first burst beyond what one script sends on, no more than the limit stays', async () => {
    const there = await world(place, [0, 200, 200]);
    there.put(0, { throttle: { ...onlyOne, queueLimit: 5 } });
    there.route(['dst_b']);
    const sent = await inBatches(505, send);
    suite.worker();
    await eventually(async () => {
      const views = await Promise.all(sent.map((id) => suite.reader.delivery('org_a', id)));
      expect(views.filter((view) => view?.destinationId === 'dst_a')).toHaveLength(5);
      expect(views.filter((view) => view?.status === 'delivered')).toHaveLength(500);
    });
  });

  test('what an earlier release left at a disabled failover destination is freed when a worker starts', async () => {
    const there = await world(place, [500, 500, 200]);
    there.put(1, { retryPolicy: rareRetries });
    const first = suite.worker();
    const id = await send();
    await becomes(id, { status: 'retrying', attempts: 2, destinationId: 'dst_b' });
    await first.stop(1000);
    await asEarlierRelease(shardOf(place));
    there.put(1, { enabled: false });
    suite.worker();
    await becomes(id, { status: 'delivered', destinationId: 'dst_c' });
    expect(there.counts()).toEqual([1, 1, 1]);
  });
});

/** The only moved message is in a lane of its target, which is paused; its move has no record. */
async function asEarlierRelease(shard: number): Promise<void> {
  const { client } = suite.redis;
  const base = `${prefix}{s${shard}}:`;
  const [due = ''] = await client.zrange(`${base}due`, '0', '-1');
  const [n = '', id = ''] = due.split(' ');
  await client.del(`${base}due`, `${base}retries`);
  const { dueMs, moves, left, attemptsAtFirst } = hashFields.message;
  await client.hdel(`${base}m:${id}`, dueMs, left, attemptsAtFirst, ...(shard === 0 ? [moves] : []));
  await client.xgroup('CREATE', `${base}w:${n}`, 'g', '0', 'MKSTREAM').catch(() => {});
  await client.xadd(`${base}w:${n}`, `${Date.now()}-1`, hashFields.entry.message, id);
  await client.hset(`${base}t:${n}`, { [hashFields.target.pausedSinceMs]: Date.now() });
  await client.sadd(`${base}paused`, n);
}
