import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { eventForShards } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { Clock } from '../../core/clock.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import { MessageArchive } from '../history/message-archive.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent } from '../shard/messages.ts';
import { Circuits } from './circuits.ts';
import type { BatchMember, Job, Outcome, TargetSetting } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const shards = 2;
const hourMs = 3_600_000;
const retried: Outcome = { type: 'retry', attempt: failure, delayMs: 0 };
const later: Outcome = { type: 'retry', attempt: failure, delayMs: hourMs };
/** A process that has died reaches no deadline. */
const noDeadlines: Clock = { ...systemClock, after: () => () => {} };

let redis: RedisServer;
let reader: RedisMessageReader;
beforeAll(async () => {
  redis = await startRedis();
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
});
afterAll(() => redis.stop());

/** `<class>.<operation>` of what was called through `ports`. */
const called = new Set<string>();

function noted<T extends object>(port: T): T {
  return new Proxy(port, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      called.add(`${port.constructor.name}.${String(name)}`);
      return member.bind(target);
    },
  });
}

/** The ways of a process to the shards. */
function ports(client: RedisClient) {
  const shared = { redis: client, prefix };
  return {
    queue: (shard: number) => noted(new RedisDeliveryQueue({ ...shared, shard, tallyMs: 0 })),
    carrier: noted(new OutboxCarrier(shared)),
    circuits: noted(new Circuits({ ...shared, shards: () => shards })),
    archive: noted(new MessageArchive({ ...shared, limits: { records: 2, bytes: 1_000_000, ageMs: 0 } })),
    acceptor: noted(new RedisMessageAcceptor({ ...shared, clock: noDeadlines })),
  };
}

async function accepted(events: NewEvent[]): Promise<NewEvent[]> {
  for (const event of events) await acceptOnly(redis.client, prefix, event);
  return events;
}

/** State that a process finds, and that it leaves behind. */
interface World {
  events: NewEvent[];
  /** Those whose sender got a response. */
  acknowledged: Set<NewEvent>;
  /** The content of the warehouse's store: the messages of each batch. */
  objects: Map<string, readonly string[]>;
}

interface Life {
  name: string;
  /** The events of the world. Redis is empty before. */
  prepare(): Promise<NewEvent[]>;
  work(client: RedisClient, world: World): Promise<unknown>;
  /** The next process does it again before the rest is delivered. */
  again?: (world: World) => Promise<void>;
}

const deliver: Life = {
  name: 'that accepts, carries and delivers',
  prepare: async () => [eventForShards([0, 1, 1]), eventForShards([0])],
  work: async (client, { events: [first, second], acknowledged }) => {
    const { acceptor, carrier, queue: queueOf } = ports(client);
    if (first === undefined || second === undefined) throw new Error('there are no events');
    await acceptOnly(client, prefix, first);
    acknowledged.add(first);
    await carrier.carry(0);
    await acceptor.accept(second);
    acknowledged.add(second);
    for (const shard of [0, 1]) {
      const queue = queueOf(shard);
      await queue.refreshShard('w1', 1000);
      await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), retried);
      await queue.promote();
      await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), shard === 0 ? delivered : dead);
      await queue.payload({ token: 'none', bytes: 1 });
      await queue.foldTallies();
      await queue.sampleBacklogs();
      await queue.prune({ finishedMs: hourMs, deadLettersMs: hourMs });
    }
  },
};

const carry: Life = {
  name: 'that carries messages to other shards, new ones and one that fails over',
  prepare: async () => {
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    const events = await accepted([eventForShards([0]), eventForShards([0, 1, 1])]);
    const failover = { destinations: [{ id: 'dst_spare', shard: 1 }], afterAttempts: null };
    const jobs = await takeFrom(queue, 'w1', 64, { failover });
    await settleAll(queue, 'w1', jobs.slice(0, 1), dead);
    await settleAll(queue, 'w1', jobs.slice(1), { type: 'back' });
    return events;
  },
  work: async (client) => {
    const entries = await client.xrange(`${prefix}{s0}:out`, '-', '+');
    await ports(client).carrier.carryEntries(
      0,
      entries.map(([id]) => id),
    );
  },
};

const remove: Life = {
  name: 'that drops what a deleted route has left, and what was paused for too long',
  prepare: async () => {
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    const due = await accepted([eventForShards([0, 0])]);
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), later);
    const again = await accepted([eventForShards([0, 0])]);
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), retried);
    while ((await queue.promote()).nextDueMs === 0);
    return [...due, ...again, ...(await accepted([eventForShards([0, 0]), eventForShards([0, 0])]))];
  },
  work: async (client) => {
    const queue = ports(client).queue(0);
    const names = ['rte_0', 'rte_1'].map((routeId) => ({ org: 'org_a', routeId, destinationId: 'dst_0' }));
    await queue.targets(1);
    await queue.targetsOf('org_a', ['rte_0'], '0');
    await queue.targetsOfRoutes('org_a', ['rte_0'], '0');
    for (const target of await queue.targetsWithWork(names)) {
      if (target.routeId === 'rte_1') await queue.configure(target, targetSetting({ paused: true, revision: '2' }));
      else while ((await queue.drop({ target, reason: 'route_deleted', failover: null })).hasMore);
    }
    await queue.pausedTargets('0');
    while ((await queue.expirePaused(-1)).hasMore);
    const gone = (await queue.targets(1)).targets.map((target) => ({ target, reason: 'route_deleted' as const, failover: null }));
    for (let next: string | null = '0'; next !== null; ) ({ next } = await queue.dropRetries(gone, next));
  },
  again: async (world) => {
    await remove.work(redis.client, world);
    expect(new Set((await endedOf(world.events)).values())).toEqual(new Set(['dlq']));
  },
};

const reclaim: Life = {
  name: 'that comes back, or finds the work of a dead one',
  prepare: async () => {
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    const events = await accepted(Array.from({ length: 4 }, () => eventForShards([0])));
    await takeFrom(queue, 'w0', 2);
    await takeFrom(queue, 'w1', 2);
    return events;
  },
  work: async (client) => {
    const queue = ports(client).queue(0);
    const [first, ...others] = await queue.adopt('w1', []);
    expect(await settleAll(queue, 'w1', first === undefined ? [] : [first], delivered)).toEqual([true]);
    await settleAll(queue, 'w1', others, { type: 'back' });
    while ((await queue.reclaim(['w0'])).hasMore);
    await queue.figures();
  },
};

const fragile: Partial<TargetSetting> = { circuit: { failureThreshold: 1, cooldownSeconds: 3600, probeSuccessThreshold: 1 } };
const limiter = (revision: number, most: number) => ({ id: 'app_a', revision, windows: [{ ms: hourMs, most }] });
const release: Life = {
  name: 'that closes a circuit and lifts a shared limit',
  prepare: async () => {
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    const events = await accepted([eventForShards([0]), eventForShards([0]), eventForShards([0])]);
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1, fragile), retried);
    expect(await takeFrom(queue, 'w1', 64)).toEqual([]);
    return events;
  },
  work: async (client) => {
    const { circuits, queue: queueOf } = ports(client);
    const queue = queueOf(0);
    await circuits.ofTargets('org_a', [{ routeId: 'rte_0', destinationId: 'dst_0' }]);
    await circuits.ofTarget(0, 'org_a', { routeId: 'rte_0', destinationId: 'dst_0' });
    await circuits.reset('org_a', 'rte_0', ['dst_0']);
    const { targets } = await queue.targets(1);
    await queue.endWaits(targets, '0');
    for (const target of targets) await queue.configure(target, targetSetting({ ...fragile, sharedLimiter: limiter(1, 1) }));
    const jobs = await takeFrom(queue, 'w1', 64);
    await queue.configureShared('app_a', limiter(2, 2));
    await queue.promote();
    for (let i = 0; i < 2; i++) jobs.push(...(await takeFrom(queue, 'w1', 64)));
    await queue.configureShared('app_a', null);
    await queue.promote();
    await settleAll(queue, 'w1', jobs, retried);
    await takeFrom(queue, 'w1', 64);
    await circuits.broken();
    await circuits.brokenOf('org_a', 1);
    await circuits.reset('org_a', 'rte_0', ['dst_0']);
    await circuits.ofRoute('org_a', 'rte_0', ['dst_0']);
  },
  again: async (world) => {
    await release.work(redis.client, world);
    expect(await new Circuits({ redis: redis.client, prefix, shards: () => shards }).broken()).toEqual([]);
  },
};

const batch = { layout: '{}', records: 3, bytes: 1_000_000, ageMs: hourMs };
const write: Life = {
  name: 'that writes batches, leaves a member out and cuts one in two',
  prepare: () => accepted(Array.from({ length: 7 }, () => eventForShards([0]))),
  work: async (client, { objects }) => {
    const queue = ports(client).queue(0);
    const [first, second] = await takeFrom(queue, 'w1', 2, { batch });
    if (first === undefined || second === undefined) throw new Error('there are no batches');
    const members = (await queue.batch(first))?.members ?? [];
    await queue.events(members);
    await queue.haveOutputs(first.target, members);
    const [one, other] = members;
    if (one === undefined || other === undefined) throw new Error('there are no members');
    await queue.output({ ...one, target: first.target }, { contentType: 'text/plain', body: Buffer.from('made') });
    await queue.leaveOut(first, [{ messageKey: other.messageKey, status: 'filtered', reason: null }]);
    const [, last, next] = (await queue.batch(second))?.members ?? [];
    if (last !== undefined && next !== undefined) await queue.cut('w1', second, { last, first: next });
    await store(queue, first, objects);
    await settleAll(queue, 'w1', [first], delivered);
    await settleAll(queue, 'w1', [second], retried);
    await queue.endBatches();
    await queue.promote();
    const [third, fourth] = await takeFrom(queue, 'w1', 2);
    if (third !== undefined) await store(queue, third, objects);
    await settleAll(queue, 'w1', third === undefined ? [] : [third], delivered);
    await settleAll(queue, 'w1', fourth === undefined ? [] : [fourth], dead);
    while ((await queue.endBatches()).hasEndedBatches);
  },
};

const archive: Life = {
  name: 'that writes an archive',
  prepare: async () => {
    await ports(redis.client).archive.set('org_a', 'dst_w');
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    const events = await accepted(Array.from({ length: 3 }, () => eventForShards([0])));
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), delivered);
    return events;
  },
  work: async (client, { objects }) => {
    const { archive } = ports(client);
    await archive.set('org_b', 'dst_w');
    await archive.end('org_b');
    await archive.settings();
    while (await archive.gather());
    await archive.take([]);
    await archive.failed('org_a', 'no', { firstMs: 0, maxMs: 0 });
    while ((await archive.take([])) !== null) {
      const batch = await archive.batch('org_a', 'w1', { layout: '{}', destinationId: 'dst_w' });
      if (batch === null) break;
      const messages: string[] = [];
      for await (const { view } of archive.messages('org_a', batch)) messages.push(view.id);
      objects.set(batch.id, messages);
      await archive.done('org_a', batch.id, messages.length);
    }
    await archive.release('org_a');
  },
  again: async (world) => {
    // As after the time for which it is the dead process's.
    await redis.client.hdel(`${prefix}{s0}:ar:org_a`, hashFields.archive.leaseEndMs);
    await redis.client.zadd(`${prefix}{s0}:az`, 'XX', 0, 'org_a');
    await archive.work(redis.client, world);
    expect([...world.objects.values()].flat().sort()).toEqual([...(await endedOf(world.events)).keys()].sort());
  },
};

const lives: readonly Life[] = [deliver, carry, remove, reclaim, release, write, archive];

async function membersOf(queue: RedisDeliveryQueue, job: Job): Promise<BatchMember[]> {
  return (await queue.batch(job))?.members ?? [];
}

/** Writes a batch as a worker does; the same batch again replaces itself. */
async function store(queue: RedisDeliveryQueue, job: Job, objects: World['objects']): Promise<void> {
  const members = await membersOf(queue, job);
  objects.set(
    job.messageKey,
    members.filter(({ isUnsent }) => !isUnsent).map(({ messageId }) => messageId),
  );
}

/** Messages that have ended, and how. */
async function endedOf(events: readonly NewEvent[]): Promise<Map<string, string>> {
  const deliveries = (await Promise.all(events.map(({ id }) => reader.deliveriesOfEvent('org_a', id)))).flat();
  return new Map(deliveries.filter(({ completedAtMs }) => completedAtMs !== null).map(({ id, status }) => [id, status]));
}

async function storedOf(events: readonly NewEvent[]): Promise<NewEvent[]> {
  const stored = await Promise.all(events.map(({ id }) => reader.event('org_a', id)));
  return events.filter((_, i) => stored[i] !== null);
}

async function prepared(life: Life): Promise<World> {
  await redis.client.flushall();
  for (let shard = 0; shard < shards; shard++)
    await new RedisDeliveryQueue({ redis: redis.client, prefix, shard }).refreshShard('w1', 1000);
  const events = await life.prepare();
  return { events, acknowledged: new Set(await storedOf(events)), objects: new Map() };
}

/** Nothing waits: not for a cooldown, nor for the rest of a batch, nor for the dead worker, which was to configure a target. */
async function endWaits(shard: number): Promise<void> {
  const base = `${prefix}{s${shard}}:`;
  for (const key of await redis.client.keys(`${base}t:*`)) {
    if ((await redis.client.hexists(key, hashFields.target.batchAgeMs)) === 1)
      await redis.client.hset(key, hashFields.target.batchAgeMs, -1);
    if ((await redis.client.hexists(key, hashFields.target.cooldownEndMs)) === 1)
      await redis.client.hset(key, hashFields.target.cooldownEndMs, 1);
  }
  for (const target of await redis.client.zrange(`${base}waiting`, '0', '-1')) await redis.client.zadd(`${base}waiting`, 1, target);
}

/** Another worker delivers what has not ended, and nothing that has; returns how many messages have ended then. */
async function finish({ events, objects }: World): Promise<number> {
  const check = () => checkShards({ redis: redis.client, prefix, shards });
  const queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis: redis.client, prefix, shard }));
  const ended = await endedOf(events);
  for (const [shard, queue] of queues.entries()) {
    while ((await queue.reclaim(['w0', 'w1'])).hasMore);
    await queue.refreshShard('w2', 1000);
    await new OutboxCarrier({ redis: redis.client, prefix }).carry(shard);
  }
  for (let round = 0; (await check()).unfinished > 0; round++) {
    expect(round).toBeLessThan(20);
    for (const [shard, queue] of queues.entries()) {
      await endWaits(shard);
      await queue.promote();
      const jobs = await takeFrom(queue, 'w2', 64);
      for (const job of jobs) {
        const messages = job.isBatch ? (await membersOf(queue, job)).map(({ messageId }) => messageId) : [job.messageId];
        expect(messages.filter((id) => ended.has(id))).toEqual([]);
        if (job.isBatch) await store(queue, job, objects);
      }
      await settleAll(queue, 'w2', jobs, delivered);
      while ((await queue.endBatches()).hasEndedBatches);
    }
  }
  expect((await check()).findings).toEqual([]);
  const now = await endedOf(events);
  expect([...ended].map(([id]) => [id, now.get(id)])).toEqual([...ended]);
  const written = [...objects.values()].flat();
  expect(new Set(written).size).toBe(written.length);
  return now.size;
}

describe.each(lives)('what is left by a process $name', (life) => {
  test.each<CrashMoment>(['before', 'after'])('and dies %s any of its commands is in one place, and ends once', async (moment) => {
    let deaths = 0;
    await crashAtEveryCommand(redis.client, moment, {
      prepare: () => prepared(life),
      work: (client, world) => life.work(client, world),
      look: async (world) => {
        expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
        await life.again?.(world);
        const stored = await storedOf(world.events);
        expect(stored).toEqual(expect.arrayContaining([...world.acknowledged]));
        expect(await finish(world)).toBe(stored.flatMap(({ targets }) => targets).length);
        deaths++;
      },
    });
    expect(deaths).toBeGreaterThan(3);
  });
});

test('the processes of this suite call every operation of the queue, the circuits, the archive, and of those that accept and carry', async () => {
  called.clear();
  for (const life of lives) await life.work(redis.client, await prepared(life));
  const operations = [RedisDeliveryQueue, OutboxCarrier, Circuits, MessageArchive, RedisMessageAcceptor].flatMap((port) =>
    Object.getOwnPropertyNames(port.prototype)
      .filter((name) => name !== 'constructor')
      .map((name) => `${port.name}.${name}`),
  );
  expect([...called].sort()).toEqual(operations.sort());
});
