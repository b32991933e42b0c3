import { describe, expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll, settleEverything, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { Job, Outcome, ShardHints, Target, TargetSetting } from './delivery-queue.ts';
import type { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const suite = messageQueueSuite('test:');

const none: ShardHints = {
  hasReadyWork: false,
  hasWorkOfOthers: false,
  nextDueMs: null,
  hasOutbox: false,
  hasEndedBatches: false,
  hasEnds: false,
};
const retry: Outcome = { type: 'retry', attempt: failure, delayMs: 3_600_000 };
const batch = { layout: '{}', records: 2, bytes: 1_000_000, ageMs: 60_000 };
const nothingGone = { reason: 'route_deleted', failover: null } as const;
const unknown: Target = {
  number: '99',
  org: 'org_a',
  routeId: 'rte_a',
  destinationId: 'dst_x',
  revision: null,
  circuitGeneration: 0,
  isSlow: false,
  isInOrder: false,
};

const accept = (org = 'org_a', destinationId = 'dst_a') => suite.acceptor.accept(newEvent({ org, destinations: [destinationId] }));
const targets = async (): Promise<Target[]> => (await suite.queue.targets(1)).targets;
async function taken(setting: Partial<TargetSetting> = {}, messages = 1): Promise<Job[]> {
  for (let k = 0; k < messages; k++) await accept();
  return await takeFrom(suite.queue, 'w1', 64, setting);
}
const settle = (jobs: readonly Job[], outcome: Outcome) =>
  suite.queue.settle(
    'w1',
    jobs.map((job) => ({ job, outcome, maxAttempts: null })),
  );
function only(answer: ShardHints): ShardHints {
  const { hasReadyWork, hasWorkOfOthers, nextDueMs, hasOutbox, hasEndedBatches, hasEnds } = answer;
  return { hasReadyWork, hasWorkOfOthers, nextDueMs, hasOutbox, hasEndedBatches, hasEnds };
}

/** Each call that reports hints. */
const calls: [name: string, call: (of: RedisDeliveryQueue) => Promise<ShardHints>][] = [
  ['dequeue', (of) => of.dequeue('w1', 1)],
  ['settle', (of) => of.settle('w1', [])],
  ['promote', (of) => of.promote()],
  ['refreshShard', (of) => of.refreshShard('w1', 64)],
  ['endBatches', (of) => of.endBatches()],
  ['drop', (of) => of.drop({ target: unknown, ...nothingGone })],
  ['dropRetries', (of) => of.dropRetries([], '0')],
  ['configureShared', (of) => of.configureShared('app_a', null)],
];

test.each(calls)('%s reports all hints, and none of an empty shard', async (_, call) => {
  expect(only(await call(suite.queue))).toEqual(none);
});

describe('ready work is reported', () => {
  test.each(calls.filter(([name]) => !/drop|configure/.test(name)))('ready work is reported by %s', async (_, call) => {
    await taken();
    await accept();
    await accept();
    expect(await call(suite.queue)).toMatchObject({ hasReadyWork: true, hasWorkOfOthers: false });
  });

  test.each([
    ['org_a', false],
    ['org_b', true],
  ])('as that of others by dequeue when it is of %s', async (org, hasWorkOfOthers) => {
    await accept(org);
    await settleEverything(suite.queue, 'w1');
    await accept(org);
    await accept(org);
    expect(await suite.queue.dequeue('w1', 1, undefined, { dominant: 'org_a' })).toMatchObject({ hasReadyWork: true, hasWorkOfOthers });
  });
});

test.each(calls.filter(([name]) => !/drop|endBatches/.test(name)))('%s reports when the next retry is due', async (_, call) => {
  await settleAll(suite.queue, 'w1', await taken(), retry);
  const { nextDueMs } = await call(suite.queue);
  expect(nextDueMs).toBeGreaterThan(3_000_000);
  expect(nextDueMs).toBeLessThanOrEqual(3_600_000);
});

describe('entries of the outbox are reported', () => {
  const failover = [{ id: 'dst_b', shard: 1 }];

  test('entries of the outbox are reported by settle, when a message moves to another shard', async () => {
    const jobs = await taken({ failover: { destinations: failover, afterAttempts: 1 } });
    expect(await settle(jobs, retry)).toMatchObject({ hasOutbox: true });
  });

  test('entries of the outbox are reported by drop, and for the retries by dropRetries', async () => {
    await settleAll(suite.queue, 'w1', await taken(), retry);
    await accept();
    const [target = unknown] = await targets();
    const gone = { target, reason: 'route_deleted' as const, failover };
    expect(await suite.queue.drop(gone)).toMatchObject({ hasOutbox: true, hasRetries: true });
    expect(await suite.queue.dropRetries([gone], '0')).toMatchObject({ hasOutbox: true });
  });

  test('entries of the outbox are reported by dequeue, when the circuit of its target is open', async () => {
    const setting = {
      failover: { destinations: failover, afterAttempts: null },
      circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 },
    };
    const [job] = await taken(setting, 2);
    if (job === undefined) throw new Error('there is no job');
    await settle([job], retry);
    await accept();
    expect(await suite.queue.dequeue('w1', 4)).toMatchObject({ jobs: [], hasOutbox: true });
  });
});

test('an ended batch is reported by settle, by refreshShard, and by endBatches until its members have followed', async () => {
  await taken({}, 1).then((jobs) => settleAll(suite.queue, 'w1', jobs, delivered));
  const [target = unknown] = await targets();
  await suite.queue.configure(target, targetSetting({ revision: '2', batch: { ...batch, records: 201 } }));
  for (let k = 0; k < 201; k++) await accept();
  const { jobs } = await suite.queue.dequeue('w1', 1);
  expect(await settle(jobs, delivered)).toMatchObject({ hasEndedBatches: true });
  expect(await suite.queue.refreshShard('w1', 64)).toMatchObject({ hasEndedBatches: true });
  expect([(await suite.queue.endBatches()).hasEndedBatches, (await suite.queue.endBatches()).hasEndedBatches]).toEqual([true, false]);
});

test('ends for the alerts are reported by settle, by refreshShard, by a dequeue without jobs, and by endBatches', async () => {
  expect(await settle(await taken({ hasAlerts: true }), delivered)).toMatchObject({ hasEnds: true });
  expect(await suite.queue.refreshShard('w1', 64)).toMatchObject({ hasEnds: true });
  expect(await suite.queue.dequeue('w1', 1)).toMatchObject({ jobs: [], hasEnds: true });
  const [target = unknown] = await targets();
  await suite.queue.configure(target, targetSetting({ revision: '2', hasAlerts: true, batch }));
  for (let k = 0; k < 2; k++) await accept();
  await settle((await suite.queue.dequeue('w1', 1)).jobs, delivered);
  expect(await suite.queue.endBatches()).toMatchObject({ hasEnds: true });
});
