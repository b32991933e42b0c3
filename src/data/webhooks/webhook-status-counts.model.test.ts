import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { Job, Outcome } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { WebhookFigures } from './webhook-figures.ts';
import { type FiguresSubject, WebhookStatistics } from './webhook-statistics.ts';
import { webhookStatusCounts } from './webhook-status-counts.ts';

const prefix = 'test:';
const owner = webhookOrganization('org_a');
const endpoints = ['ep_a', 'ep_b'];
const outcomes = {
  delivered,
  dead,
  retry: { type: 'retry', attempt: failure, delayMs: 0 },
  back: { type: 'back' },
  filtered: { type: 'unsent', status: 'filtered', reason: null, tookMs: 1 },
  failed: { type: 'unsent', status: 'transform_failed', reason: 'no', tookMs: 1 },
} satisfies Record<string, Outcome>;

type Step =
  | { do: 'accept' | 'promote' | 'crash' | 'prune' | 'replay' | 'archive' | 'cancel' | 'drop' | 'fold' }
  | { do: 'dequeue'; count: number }
  | { do: 'settle' | 'zombie'; outcome: keyof typeof outcomes };

const outcome = fc.constantFrom(...(Object.keys(outcomes) as (keyof typeof outcomes)[]));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ do: 'accept' as const }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('dequeue' as const), count: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('settle' as const), outcome }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('zombie' as const), outcome }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom<'promote' | 'crash' | 'prune' | 'replay' | 'archive' | 'cancel' | 'drop' | 'fold'>(
        'promote',
        'crash',
        'prune',
        'replay',
        'archive',
        'cancel',
        'drop',
        'fold',
      ),
    }),
  },
);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** What the hashes of the messages say. */
async function counted(): Promise<Record<string, number>> {
  const letters: Record<string, string> = {
    p: 'pending',
    a: 'processing',
    r: 'failed',
    d: 'success',
    q: 'dlq',
    x: 'exhausted',
    t: 'exhausted',
    f: 'exhausted',
  };
  const counts: Record<string, number> = { pending: 0, processing: 0, failed: 0, success: 0, dlq: 0, exhausted: 0 };
  for (const key of await redis.client.keys(`${prefix}{s0}:m:*`)) {
    const status = letters[(await redis.client.hget(key, hashFields.message.status)) ?? ''] ?? 'unknown';
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

function totals(all: readonly WebhookFigures[]) {
  const sum = (of: (figures: WebhookFigures) => number): number => all.reduce((total, each) => total + of(each), 0);
  return {
    unfinished: sum(({ unfinished }) => unfinished),
    underWay: sum(({ underWay }) => underWay),
    ended: sum(({ statistics: { delivered: ok, failed } }) => ok + failed),
    inPeriods: sum(({ periods }) => periods.reduce((count, period) => count + period.delivered + period.failed, 0)),
    attempts: sum(({ statistics }) => statistics.latencies.total),
    errors: sum(({ errors }) => [...errors.values()].reduce((count, each) => count + each, 0)),
    failing: sum(({ failing }) => failing.reduce((count, { failedAttempts }) => count + failedAttempts, 0)),
  };
}

async function run(steps: readonly Step[]): Promise<void> {
  await redis.client.flushall();
  const shared = { redis: redis.client, prefix, clock: systemClock };
  const queue = new RedisDeliveryQueue({ ...shared, tallyMs: 0 });
  const statistics = new WebhookStatistics(shared);
  const acceptor = new RedisMessageAcceptor({ ...shared, clock: lenientClock });
  const replayer = new RedisMessageReplayer(shared);
  const canceller = new RedisMessageCanceller(shared);
  const reader = new RedisMessageReader(shared);
  const held: Job[] = [];
  const zombies: Job[] = [];
  const any = async (): Promise<string> => (await reader.deliveries(owner, {}, { limit: 100 })).items.at(-1)?.id ?? 'msg_none';
  const act: Record<Step['do'], (action: Step) => Promise<unknown>> = {
    accept: () => acceptor.accept({ ...newEvent({ destinations: endpoints }), org: owner }),
    dequeue: async (action) => held.push(...(await takeFrom(queue, 'w1', 'count' in action ? action.count : 1))),
    settle: async (action) => {
      const job = held.shift();
      if (job === undefined || !('outcome' in action)) return;
      zombies.push(job);
      await settleAll(queue, 'w1', [job], outcomes[action.outcome]);
    },
    zombie: async (action) =>
      zombies[0] !== undefined && 'outcome' in action && settleAll(queue, 'w1', [zombies[0]], outcomes[action.outcome]),
    promote: async () => {
      await sleep(2);
      await queue.promote();
    },
    crash: async () => {
      zombies.push(...held.splice(0));
      await queue.reclaim(['w1']);
    },
    prune: async () => {
      await queue.prune({ finishedMs: -1000, deadLettersMs: -1000 });
    },
    replay: async () => replayer.replay(owner, await any()).catch(() => null),
    archive: async () => replayer.archive(owner, await any()).catch(() => null),
    cancel: async () => canceller.cancel(owner, [await any()], 'ann'),
    drop: async () => {
      for (const target of (await queue.targets(1)).targets) {
        const gone = { target, reason: 'destination_not_found' as const, failover: null };
        await queue.drop(gone);
        await queue.dropRetries([gone], '0');
        await queue.configure(target, targetSetting());
      }
    },
    fold: () => queue.foldTallies(),
  };
  const figures = (subject: FiguresSubject) => statistics.figures('org_a', subject, '7d');
  await queue.refreshShard('w1', 1000);
  for (const action of steps) {
    await act[action.do](action);
    const counts = await webhookStatusCounts({ redis: redis.client, prefix, shards: 1 }, 'org_a');
    expect(counts).toEqual(await counted());
    const { unfinished, underWay } = await figures({ type: 'organization' });
    expect({ unfinished, underWay }).toEqual({
      unfinished: counts.pending + counts.processing + counts.failed,
      underWay: counts.processing,
    });
  }
  const all = await figures({ type: 'organization' });
  const ofEndpoints = await Promise.all(endpoints.map((id) => figures({ type: 'endpoint', id, applicationId: 'rte_a', shard: 0 })));
  expect(await figures({ type: 'application', id: 'rte_a', shard: 0 })).toEqual(all);
  expect(totals(ofEndpoints)).toEqual(totals([all]));
  expect(totals([all]).ended).toBe(totals([all]).inPeriods);
  await new RedisMessagePurger({ redis: redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
  expect(await redis.client.keys(`${prefix}{s0}:ms:*`)).toEqual([]);
}

test('the counts of messages by status are those of the messages, and the analytics say the same, whatever happens to them', async () => {
  await assertProperty(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), run), 25);
});
