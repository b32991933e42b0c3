import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../../../test/support/eventually.ts';
import { FakeClock } from '../../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../../test/support/logger.ts';
import { messageQueueSuite } from '../../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../../test/support/new-event.ts';
import { takeFrom } from '../../../../test/support/queue-worker.ts';
import { RecentOrganizations } from '../../../core/recent-organizations.ts';
import type { Job, ShardState } from '../../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../../data/queue/redis-delivery-queue.ts';
import { RedisBackoffs } from '../../loops/redis-backoff.ts';
import { deliveryMetrics } from '../../metrics.ts';
import { ConsumerState } from '../consumer-state.ts';
import { HeldJobs } from '../held-jobs.ts';
import { ShardSignals } from '../shard-signals.ts';
import { SlotShares } from '../slot-shares.ts';
import { WorkerContext } from '../worker-context.ts';
import { JobReclaim } from './job-reclaim.ts';
import { ShardMaintenance } from './shard-maintenance.ts';

const suite = messageQueueSuite('test:');

test('what has waited in a disabled route for longer than the retention becomes a dead letter, although nothing happens in its shard', async () => {
  const clock = new FakeClock();
  const maintenance = maintenanceOf(suite.queue, clock, -1000).maintenance;
  try {
    const event = newEvent();
    await suite.acceptor.accept(event);
    expect(await takeFrom(suite.queue, 'w1', 1, { paused: true })).toEqual([]);
    maintenance.start();
    const status = async () => (await suite.reader.delivery('org_a', event.targets[0]?.messageId ?? ''))?.status;
    expect(await status()).toBe('pending');
    await eventually('the message to end', 30_000, async () => {
      await clock.advance(10_000);
      return (await status()) === 'dlq';
    });
  } finally {
    await maintenance.stop();
  }
});

test('retention frees memory again at once when a second was not enough', async () => {
  const clock = new FakeClock();
  let looks = 0;
  let memoryShare = 0.75;
  const state = {
    marker: 'm',
    held: 0,
    hasReadyWork: false,
    hasOverdueWork: false,
    pausedTargets: 0,
    nextDueMs: null,
  } satisfies Partial<ShardState>;
  const queue = {
    refreshShard: async () => {
      looks++;
      return { ...state, memoryShare, hasTallies: false, isSampleDue: false };
    },
    prune: async () => ({ removed: 100, hasMore: true, memoryShare, lost: 0 }),
  } as unknown as RedisDeliveryQueue;
  const { maintenance, held } = maintenanceOf(queue, clock);
  held.add([{ handle: '1/1-1' } as Job]);
  maintenance.start();
  await clock.advance(10_000);
  // Each look prunes for a second; with rests of 3 s between them there would be three.
  expect(looks).toBeGreaterThanOrEqual(8);
  memoryShare = 0.5;
  await clock.advance(3000);
  const before = looks;
  await clock.advance(10_000);
  expect(looks - before).toBeLessThanOrEqual(5);
  await maintenance.stop();
});

function maintenanceOf(
  queue: RedisDeliveryQueue,
  clock: FakeClock,
  finishedMs = 86_400_000,
): { maintenance: ShardMaintenance; held: HeldJobs } {
  const slots = 64;
  const backoffs = new RedisBackoffs(silentLogger);
  const context = new WorkerContext({
    id: 'w1',
    slots,
    shares: new SlotShares(slots),
    organizations: new RecentOrganizations(clock),
    clock,
    logger: silentLogger,
    metrics: deliveryMetrics(new Registry(), {
      queues: [],
      now: () => clock.now(),
      inFlight: () => 0,
      bytes: async () => ({ byAccount: new Map(), over: 0 }),
    }),
    backoffs,
    retention: { finishedMs, deadLettersMs: 86_400_000 },
  });
  const held = new HeldJobs(context);
  const maintenance = new ShardMaintenance({
    context,
    queue,
    backoff: backoffs.watch(),
    state: new ConsumerState(context.wakeup),
    held,
    signals: new ShardSignals(),
    keeper: { review: () => undefined },
    jobReclaim: new JobReclaim({ context, queue }),
  });
  return { maintenance, held };
}
