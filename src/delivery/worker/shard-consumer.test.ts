import { afterAll, afterEach, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { MemoryDirectory } from '../../../test/support/memory-directory.ts';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, settleEverything } from '../../../test/support/queue-worker.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { RecentOrganizations } from '../../core/recent-organizations.ts';
import type { Job, ShardState } from '../../data/queue/delivery-queue.ts';
import { OutboxCarrier } from '../../data/queue/outbox-carrier.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { EventTransformer } from '../attempts/transformed-event.ts';
import { RedisBackoffs } from '../loops/redis-backoff.ts';
import { deliveryMetrics } from '../metrics.ts';
import type { DeliveryPlan } from '../plans/delivery-plan.ts';
import { OutboxTransfer } from './duties/outbox-transfer.ts';
import { EndpointConfigSync } from './endpoint-config-sync.ts';
import { ShardConsumer } from './shard-consumer.ts';
import { ShardSignals } from './shard-signals.ts';
import { SlotShares } from './slot-shares.ts';
import { TargetConfigSync } from './target-config-sync.ts';
import { WorkerContext } from './worker-context.ts';

const prefix = 'test:';
const slots = 64;
const noSlow = { slots, held: 0, byAccount: new Map<string, number>() };
const sandbox = new Sandbox({ clock: systemClock, processes: 1 });
const world = messageQueueSuite(prefix);
let consumer: ShardConsumer;
/** Behaviour of the next dequeues instead of a reply. */
let faults: ('fails' | 'loses its answer')[];

afterAll(() => sandbox.close());
beforeEach(async () => {
  await world.acceptor.accept(newEvent());
  await settleEverything(world.queue, 'w1');
  faults = [];
  consumer = newConsumer(systemClock);
});
afterEach(async () => {
  if (consumer.mode !== 'stopped') await stop();
});

/** A check of the shard that finds nothing. */
const nothing: ShardState = {
  hasReadyWork: false,
  hasWorkOfOthers: false,
  nextDueMs: null,
  hasOutbox: false,
  hasEndedBatches: false,
  hasEnds: false,
  marker: 'm',
  held: 0,
  hasOverdueWork: false,
  pausedTargets: 0,
  memoryShare: null,
  hasTallies: false,
  isSampleDue: false,
};

function newConsumer(clock: Clock): ShardConsumer {
  const { queue: real, redis } = world;
  const queue = new Proxy<RedisDeliveryQueue>(real, {
    get: (target, name) => {
      if (name === 'refreshShard') return () => Promise.resolve(nothing);
      const original: unknown = Reflect.get(target, name);
      if (typeof original !== 'function') return original;
      return async (...args: unknown[]): Promise<unknown> => {
        const fault = name === 'dequeue' ? faults.shift() : undefined;
        if (fault === 'fails') throw new PosthornError('UNAVAILABLE', 'injected');
        const answer: unknown = await original.apply(target, args);
        if (fault === undefined) return answer;
        throw new PosthornError('UNAVAILABLE', 'injected');
      };
    },
  });
  const metrics = deliveryMetrics(new Registry(), {
    queues: [],
    now: () => clock.now(),
    inFlight: () => 0,
    bytes: async () => ({ byAccount: new Map(), over: 0 }),
  });
  const context = new WorkerContext({
    id: 'w1',
    slots,
    shares: new SlotShares(slots),
    organizations: new RecentOrganizations(clock),
    clock,
    logger: silentLogger,
    metrics,
    backoffs: new RedisBackoffs(silentLogger),
    retention: { finishedMs: 86_400_000, deadLettersMs: 86_400_000 },
  });
  const signals = new ShardSignals();
  const registry = new RecordRegistry();
  const planOf = (): Promise<DeliveryPlan> => Promise.resolve({ state: 'paused', setting: targetSetting() });
  const keeper = new TargetConfigSync({ queue, registry, clock, logger: silentLogger, planOf, signals });
  const { directory } = new MemoryDirectory().sources();
  return new ShardConsumer({
    context,
    shard: 0,
    queue,
    transformer: new EventTransformer({ sandbox, clock }),
    signals,
    keeper,
    webhookKeeper: new EndpointConfigSync({ shard: 0, queue, keeper, directory, clock, signals }),
    outboxTransfer: new OutboxTransfer({ carrier: new OutboxCarrier({ redis: redis.client, prefix }), shard: 0, logger: silentLogger }),
    reviewAlerts: () => undefined,
  });
}

const accept = () => world.acceptor.accept(newEvent());
const take = () => consumer.take(1, noSlow, {});
const stop = () => consumer.stop(AbortSignal.timeout(10_000));
const settle = (jobs: readonly Job[]): void => {
  for (const job of jobs) consumer.settle({ job, outcome: delivered, maxAttempts: null });
};

test('a consumer takes nothing before its start, and work that was recorded until then afterwards', async () => {
  await accept();
  consumer.wake();
  expect([consumer.mode, consumer.wantsToTake]).toEqual(['starting', false]);
  await expect(take()).rejects.toThrow('while it is starting');
  consumer.start();
  expect(consumer.mode).toBe('ready');
  expect(await take()).toHaveLength(1);
});

test('a consumer dequeues until the shard has no more, one call at a time', async () => {
  consumer.start();
  expect(consumer.mode).toBe('idle');
  for (let k = 0; k < 2; k++) await accept();
  consumer.wake();
  const taking = take();
  expect([consumer.mode, consumer.wantsToTake]).toEqual(['dequeuing', false]);
  await expect(take()).rejects.toThrow('while it is dequeuing');
  const jobs = await taking;
  expect([jobs.length, consumer.mode]).toEqual([1, 'ready']);
  while (consumer.wantsToTake) jobs.push(...(await take()));
  expect([jobs.length, consumer.mode, consumer.holdsWork]).toEqual([2, 'idle', true]);
  settle(jobs);
  await eventually(() => expect(consumer.holdsWork).toBe(false));
  await stop();
  expect(consumer.mode).toBe('stopped');
});

test.each([
  ['fails', 0],
  ['loses its answer', 1],
] as const)('after a dequeue that %s the consumer backs off, dequeues again, and adopts what it does not know', async (fault, lost) => {
  consumer.start();
  for (let k = 0; k < 2; k++) await accept();
  consumer.wake({ isPressing: true });
  faults.push(fault);
  const taking = take();
  expect(consumer.isPressing).toBe(false);
  expect(await taking).toEqual([]);
  expect([consumer.mode, consumer.isPressing]).toEqual(['backing-off', true]);
  await expect(take()).rejects.toThrow('while it is backing-off');
  await eventually(() => expect(consumer.mode).toBe('ready'));
  const dequeued = await take();
  expect([dequeued.length, consumer.mode]).toEqual([1, 'recovering']);
  const adopting = take();
  expect(consumer.mode).toBe('adopting');
  expect(await adopting).toHaveLength(lost);
  const jobs = [...dequeued, ...(await adopting)];
  while (consumer.wantsToTake) jobs.push(...(await take()));
  expect([jobs.length, consumer.mode]).toEqual([2, 'idle']);
});

test.each(['starting', 'idle', 'ready', 'backing-off'] as const)('a consumer that is stopped while it is %s stays so', async (mode) => {
  const clock = new FakeClock();
  consumer = newConsumer(clock);
  if (mode !== 'starting') consumer.start();
  if (mode === 'ready' || mode === 'backing-off') consumer.wake();
  if (mode === 'backing-off') {
    faults.push('fails');
    await take();
  }
  expect(consumer.mode).toBe(mode);
  await stop();
  consumer.start();
  consumer.wake();
  // Longer than its back-off.
  await clock.advance(5000);
  expect([consumer.mode, consumer.wantsToTake]).toEqual(['stopped', false]);
});
