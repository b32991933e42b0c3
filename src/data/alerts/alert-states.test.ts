import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { endAlertWindows } from '../../../test/support/end-alert-windows.ts';
import { endCooldowns } from '../../../test/support/end-cooldowns.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { Circuits } from '../queue/circuits.ts';
import type { TargetSetting } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import type { NewAttempt } from '../shard/attempt-record.ts';
import { type AlertRules, AlertStates, type DueAlert } from './alert-states.ts';

const prefix = 'test:';
const windowMs = 600_000;
let redis: RedisServer;
let queue: RedisDeliveryQueue;
let states: AlertStates;
let acceptor: RedisMessageAcceptor;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  states = new AlertStates({ redis: redis.client, prefix, windowMs });
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  await queue.refreshShard('w', 64);
});

const rules = (overrides: Partial<AlertRules> = {}): AlertRules => ({
  org: 'org_a',
  routeId: 'rte_a',
  wanted: ['failed', 'succeeded', 'recovered', 'opened', 'closed'],
  failureThreshold: 3,
  destinationIds: ['dst_a', 'dst_b', 'dst_c'],
  pagers: [],
  ...overrides,
});
const attempt = (isOk: boolean): NewAttempt => ({
  startedAtMs: 1,
  durationMs: 5,
  responseStatus: isOk ? 200 : 500,
  responseBody: '',
  errorType: isOk ? null : 'http_error',
  errorMessage: null,
});

/** Sends one event to a destination of the route and lets it end so. Returns the id of its message. */
async function end(isOk: boolean, destination = 'dst_a', setting: Partial<TargetSetting> = {}): Promise<string> {
  const event = newEvent({ destinations: [destination] });
  const [target] = event.targets;
  await acceptor.accept({ ...event, targets: event.targets.map((each) => ({ ...each, routeId: 'rte_a' })) });
  for (const each of (await queue.targets(1)).targets) await queue.configure(each, targetSetting({ hasAlerts: true, ...setting }));
  const { jobs } = await queue.dequeue('w', 10);
  expect(jobs).toHaveLength(1);
  const { settled } = await queue.settle(
    'w',
    jobs.map((job) => ({
      job,
      outcome: isOk
        ? { type: 'delivered', attempt: attempt(true) }
        : { type: 'dead', attempt: attempt(false), reason: 'max_retries_exceeded' },
      maxAttempts: null,
    })),
  );
  expect(settled).toEqual([true]);
  return target?.messageId ?? '';
}

/** Acts as a notifier on the log: alerts that are to be sent, confirmed at once. */
async function alerts(overrides: Partial<AlertRules> = {}): Promise<DueAlert[]> {
  const log = await states.read(0, 'reader');
  if (log === null) throw new Error('somebody else reads');
  const decided = await states.decide(0, rules(overrides), { shard: 0, ...log });
  await states.forget(0, log.entries);
  await states.decide(0, rules(overrides), undefined, decided);
  return decided.alerts;
}
const subjectsOf = (found: readonly DueAlert[]): string[] => found.map(({ subject, count }) => `${subject} ${count}`);
const windowEnds = () => endAlertWindows(redis.client, prefix);

describe('the log', () => {
  test('the log has nothing of targets whose route has no alerts', async () => {
    await end(false, 'dst_a', { hasAlerts: false });
    await end(true, 'dst_a', { hasAlerts: false });
    expect(await redis.client.exists(`${prefix}{s0}:ends`)).toBe(0);
  });

  test('the log has dead letters, and deliveries in a row as one', async () => {
    const events = Array.from({ length: 3 }, () => newEvent({ destinations: ['dst_a'] }));
    for (const event of events) await acceptor.accept({ ...event, targets: event.targets.map((each) => ({ ...each, routeId: 'rte_a' })) });
    const [target] = (await queue.targets(1)).targets;
    if (target === undefined) throw new Error('there is no target');
    await queue.configure(target, targetSetting({ hasAlerts: true }));
    const { jobs } = await queue.dequeue('w', 10);
    const answer = await queue.settle(
      'w',
      jobs.map((job) => ({ job, outcome: { type: 'delivered', attempt: attempt(true) }, maxAttempts: null })),
    );
    expect(answer.hasEnds).toBe(true);
    expect((await queue.refreshShard('w', 64)).hasEnds).toBe(true);
    const { entries = [] } = (await states.read(0, 'reader')) ?? {};
    expect(entries).toEqual([expect.objectContaining({ kind: 's', count: 3, routeId: 'rte_a', destinationId: 'dst_a' })]);
    await states.forget(0, entries);
    expect((await queue.refreshShard('w', 64)).hasEnds).toBe(false);
  });

  test('the log is read by one reader at a time, and by another when that one is gone', async () => {
    await end(false);
    const [one, two] = await Promise.all([states.read(0, 'one'), states.read(0, 'two')]);
    expect(one).not.toBeNull();
    expect(two).toBeNull();
    await redis.client.del(`${prefix}{s0}:ends-reader`);
    expect((await states.read(0, 'two'))?.entries).toHaveLength(1);
  });
});

describe('a failure alert', () => {
  test('a failure alert comes with the third failed message in a row, and names the last', async () => {
    await end(false);
    await end(false);
    expect(await alerts()).toEqual([]);
    const messageId = await end(false);
    const [alert] = await alerts();
    expect(alert).toMatchObject({ subject: 'failed', count: 3, destinationId: 'dst_a', messageId, isBroken: true });
    expect(alert?.firstAtMs).toBeLessThanOrEqual(alert?.lastAtMs ?? 0);
  });

  test('a failure alert does not come when a delivery is between the failures', async () => {
    for (const isOk of [false, false, true, false, false]) await end(isOk);
    expect(await alerts({ wanted: ['failed'] })).toEqual([]);
  });

  test('a failure alert comes although another destination of the route is healthy', async () => {
    for (let i = 0; i < 3; i++) {
      await end(false, 'dst_a');
      await end(true, 'dst_b');
    }
    expect(subjectsOf(await alerts({ wanted: ['failed'] }))).toEqual(['failed 3']);
  });

  test('a failure alert has a window of five minutes', async () => {
    states = new AlertStates({ redis: redis.client, prefix });
    const wanted = { wanted: ['failed'] as const, failureThreshold: 1 };
    await end(false);
    expect(subjectsOf(await alerts(wanted))).toEqual(['failed 1']);
    await end(false);
    expect(await alerts(wanted)).toEqual([]);
    const { nextMs } = await states.decide(0, rules(wanted));
    expect(nextMs).toBeGreaterThan(290_000);
    expect(nextMs).toBeLessThanOrEqual(300_000);
  });

  test('a failure alert is followed by one with the count of the rest at the end of the window, and by no other', async () => {
    const wanted = { wanted: ['failed'] as const, failureThreshold: 1 };
    await end(false);
    expect(subjectsOf(await alerts(wanted))).toEqual(['failed 1']);
    await end(false);
    await end(false);
    expect(await alerts(wanted)).toEqual([]);
    expect((await states.due(0)).routeIds).toEqual([]);
    await windowEnds();
    expect((await states.due(0)).routeIds).toEqual(['rte_a']);
    expect(subjectsOf(await alerts(wanted))).toEqual(['failed 2']);
    await windowEnds();
    expect((await states.due(0)).routeIds).toEqual([]);
    expect(await alerts(wanted)).toEqual([]);
  });

  test('a failure alert is not lost while nobody confirms it, and is the same one again', async () => {
    for (let i = 0; i < 3; i++) await end(false);
    const log = await states.read(0, 'reader');
    if (log === null) throw new Error('somebody else reads');
    const first = await states.decide(0, rules(), { shard: 0, ...log });
    expect(first.nextMs).toBeGreaterThan(0);
    expect(await states.decide(0, rules())).toMatchObject({ alerts: first.alerts });
    await states.decide(0, rules(), undefined, first);
    expect(await states.decide(0, rules())).toMatchObject({ alerts: [] });
  });

  test('a failure alert counts entries once, however often they are given', async () => {
    for (let i = 0; i < 2; i++) await end(false);
    const log = await states.read(0, 'reader');
    if (log === null) throw new Error('somebody else reads');
    for (let i = 0; i < 3; i++) expect((await states.decide(0, rules(), { shard: 0, ...log })).alerts).toEqual([]);
  });

  test('a failure alert counts entries of another shard and of an emptied one for themselves', async () => {
    await end(false);
    const log = await states.read(0, 'reader');
    if (log === null) throw new Error('somebody else reads');
    await states.decide(0, rules(), { shard: 0, ...log });
    await states.decide(0, rules(), { shard: 1, ...log });
    expect(subjectsOf((await states.decide(0, rules(), { shard: 0, ...log, marker: 'another' })).alerts)).toEqual(['failed 3']);
  });

  test('a failure alert comes for what was dropped because the queue is full', async () => {
    const full = { throttle: { mode: 'concurrency', rateLimit: null, rateUnit: null, maxConcurrency: 9, queueLimit: 1 } as const };
    await end(true, 'dst_a', full);
    for (let i = 0; i < 2; i++) {
      const event = newEvent({ destinations: ['dst_a'] });
      await acceptor.accept({ ...event, targets: event.targets.map((each) => ({ ...each, routeId: 'rte_a' })) });
    }
    expect(subjectsOf(await alerts({ wanted: ['failed'], failureThreshold: 1 }))).toEqual(['failed 1']);
  });
});

describe('a recovery', () => {
  test('a recovery is the first delivery after a failure alert', async () => {
    await end(true);
    expect(await alerts({ wanted: ['recovered'] })).toEqual([]);
    for (let i = 0; i < 3; i++) await end(false);
    await end(true);
    await end(true);
    expect(subjectsOf(await alerts({ wanted: ['failed', 'recovered'] }))).toEqual(['failed 3', 'recovered 1']);
  });

  test('a recovery is not announced after failures that were worth no alert', async () => {
    for (const isOk of [false, false, true]) await end(isOk);
    expect(await alerts({ wanted: ['recovered'] })).toEqual([]);
  });

  test('a recovery waits for the last of the destinations that fail', async () => {
    for (let i = 0; i < 3; i++) for (const each of ['dst_a', 'dst_b']) await end(false, each);
    await end(true, 'dst_a');
    expect(subjectsOf(await alerts({ wanted: ['recovered'] }))).toEqual([]);
    await end(true, 'dst_b');
    expect(await alerts({ wanted: ['recovered'] })).toMatchObject([{ subject: 'recovered', isBroken: false }]);
  });

  test('a recovery does not wait for a destination that has left the route', async () => {
    for (let i = 0; i < 3; i++) for (const each of ['dst_a', 'dst_b']) await end(false, each);
    await alerts({ wanted: ['recovered'], destinationIds: ['dst_a'] });
    await end(true, 'dst_a');
    expect(subjectsOf(await alerts({ wanted: ['recovered'], destinationIds: ['dst_a'] }))).toEqual(['recovered 1']);
  });

  test('a recovery is announced with the first delivery after the only destination that failed has left the route, and once', async () => {
    const wanted = ['failed', 'recovered'] as const;
    for (let i = 0; i < 3; i++) await end(false, 'dst_a');
    expect(await alerts({ wanted })).toMatchObject([{ subject: 'failed', isBroken: true }]);
    await end(false, 'dst_b');
    expect(await alerts({ wanted, destinationIds: ['dst_b'] })).toEqual([]);
    for (let i = 0; i < 3; i++) await end(true, 'dst_b');
    expect(await alerts({ wanted, destinationIds: ['dst_b'] })).toMatchObject([
      { subject: 'recovered', count: 1, destinationId: 'dst_b', isBroken: false },
    ]);
    await windowEnds();
    await end(true, 'dst_b');
    expect(await alerts({ wanted, destinationIds: ['dst_b'] })).toEqual([]);
  });

  test('a recovery waits for a destination that still fails when another that failed has left the route', async () => {
    for (let i = 0; i < 3; i++) for (const each of ['dst_a', 'dst_b']) await end(false, each);
    await alerts({ wanted: ['recovered'] });
    const left = { wanted: ['recovered'] as const, destinationIds: ['dst_b', 'dst_c'] };
    await end(true, 'dst_c');
    expect(await alerts(left)).toEqual([]);
    await end(true, 'dst_b');
    await end(true, 'dst_c');
    expect(subjectsOf(await alerts(left))).toEqual(['recovered 1']);
  });

  test('a recovery is announced after a destination with an open circuit has left the route', async () => {
    const circuit = { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 };
    await end(false, 'dst_a', { circuit });
    expect(subjectsOf(await alerts({ wanted: ['opened', 'recovered'] }))).toEqual(['opened 1']);
    await end(true, 'dst_b');
    expect(await alerts({ wanted: ['opened', 'recovered', 'closed'], destinationIds: ['dst_b'] })).toMatchObject([
      { subject: 'recovered', count: 1, isBroken: false },
    ]);
  });

  test('a recovery of messages that failed over counts for where they were sent first', async () => {
    const spare = { failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: null } };
    const fail = async () => {
      const event = newEvent({ destinations: ['dst_a'] });
      await acceptor.accept({ ...event, targets: event.targets.map((each) => ({ ...each, routeId: 'rte_a' })) });
      for (const each of (await queue.targets(1)).targets)
        await queue.configure(each, targetSetting({ hasAlerts: true, ...(each.destinationId === 'dst_a' ? spare : {}) }));
      for (let hop = 0; hop < 2; hop++) {
        const { jobs } = await queue.dequeue('w', 10);
        await queue.settle(
          'w',
          jobs.map((job) => ({
            job,
            outcome: { type: 'dead', attempt: attempt(false), reason: 'max_retries_exceeded' },
            maxAttempts: null,
          })),
        );
        for (const each of (await queue.targets(1)).targets)
          if (each.destinationId === 'dst_b') await queue.configure(each, targetSetting({ hasAlerts: true }));
      }
    };
    for (let i = 0; i < 3; i++) await fail();
    await end(true, 'dst_a', { hasAlerts: true });
    const found = await alerts({ wanted: ['failed', 'recovered'] });
    expect(found.map(({ subject, destinationId }) => [subject, destinationId])).toEqual([
      ['failed', 'dst_a'],
      ['recovered', 'dst_a'],
    ]);
  });
});

test('an alert about a success counts the deliveries', async () => {
  await end(true);
  expect(subjectsOf(await alerts({ wanted: ['succeeded'] }))).toEqual(['succeeded 1']);
  for (let i = 0; i < 5; i++) await end(true);
  await windowEnds();
  expect(subjectsOf(await alerts({ wanted: ['succeeded'] }))).toEqual(['succeeded 5']);
});

test('every message of a batch counts', async () => {
  const setting = { hasAlerts: true, batch: { layout: '{}', records: 3, bytes: 1_000_000, ageMs: 60_000 } };
  for (const outcome of [delivered, dead]) {
    for (let i = 0; i < 3; i++) await acceptor.accept(newEvent());
    await settleAll(queue, 'w', await takeFrom(queue, 'w', 10, setting), outcome);
    expect((await queue.endBatches()).hasEnds).toBe(true);
  }
  expect(subjectsOf(await alerts({ wanted: ['failed', 'succeeded'] }))).toEqual(['failed 3', 'succeeded 3']);
});

test('a circuit is announced when it opens and when it closes, not when a probe fails', async () => {
  const circuit = { failureThreshold: 2, cooldownSeconds: 60, probeSuccessThreshold: 1 };
  await end(false, 'dst_a', { circuit });
  await end(false, 'dst_a', { circuit });
  expect(await alerts({ wanted: ['opened', 'closed'], failureThreshold: 100 })).toMatchObject([
    { subject: 'opened', isBroken: true, destinationId: 'dst_a' },
  ]);
  await endCooldowns(redis.client, prefix);
  await queue.promote();
  await end(false, 'dst_a', { circuit });
  expect(await alerts({ wanted: ['opened', 'closed'], failureThreshold: 100 })).toEqual([]);
  await new Circuits({ redis: redis.client, prefix }).reset('org_a', 'rte_a', ['dst_a']);
  expect(await alerts({ wanted: ['opened', 'closed'], failureThreshold: 100 })).toMatchObject([{ subject: 'closed', isBroken: false }]);
});

test('a route whose alerts are switched off leaves nothing behind', async () => {
  for (let i = 0; i < 3; i++) await end(false);
  await alerts();
  await alerts({ wanted: [] });
  expect((await redis.client.keys('*')).filter((key) => /:(?:al|alr|alerts)(?::|$)/.test(key))).toEqual([]);
});

test('nothing of a purged organization is left', async () => {
  for (let i = 0; i < 3; i++) await end(false);
  await alerts({ pagers: [{ channelId: 'nch_a', routingKey: 'sealed' }] });
  expect((await redis.client.keys('*')).filter((key) => /:(?:al|alr|incidents)(?::|$)/.test(key))).toHaveLength(3);
  await new RedisMessagePurger({ redis: redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
  expect((await redis.client.keys('*')).filter((key) => /:(?:al|alr|alerts|incidents)(?::|$)/.test(key))).toEqual([]);
});
