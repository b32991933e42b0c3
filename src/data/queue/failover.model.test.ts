import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { forgetStaleNames } from '../../../test/support/make-due.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisStatisticsReader } from '../analytics/redis-statistics-reader.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import type { NewAttempt } from '../shard/attempt-record.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { Circuits } from './circuits.ts';
import type { Job, Outcome, Target, TargetSetting } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const spares = ['dst_b', 'dst_c'];
const good: NewAttempt = { startedAtMs: 1, durationMs: 5, responseStatus: 200, responseBody: '', errorType: null, errorMessage: null };
const bad: NewAttempt = { ...good, responseStatus: 500, errorType: 'http_error' };
const outcomes = {
  delivered: { type: 'delivered', attempt: good },
  retry: { type: 'retry', attempt: bad, delayMs: 0 },
  dead: { type: 'dead', attempt: bad, reason: 'max_retries_exceeded' },
  unsent: { type: 'unsent', status: 'transform_failed', reason: 'x is not a function', tookMs: 5 },
  back: { type: 'back' },
} satisfies Record<Outcome['type'], Outcome>;

type Step =
  | { do: 'accept' }
  | { do: 'dequeue'; worker: string; count: number }
  | { do: 'settle'; pick: number; outcome: Outcome['type'] }
  | { do: 'cancel'; pick: number }
  | { do: 'crash'; worker: string }
  | { do: 'promote' }
  | { do: 'cooldown' }
  | { do: 'reset' }
  | { do: 'serve'; pick: number; movesOn: TargetSetting['movesOn'] }
  | { do: 'zombie'; pick: number };

const worker = fc.constantFrom('w1', 'w2');
const pick = fc.nat({ max: 1000 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ do: 'accept' }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('dequeue' as const), worker, count: fc.integer({ min: 1, max: 8 }) }) },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      pick,
      outcome: fc.constantFrom<Outcome['type'][]>('delivered', 'retry', 'retry', 'dead', 'unsent', 'back'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), worker }) },
  { weight: 3, arbitrary: fc.constantFrom<Step[]>({ do: 'promote' }, { do: 'cooldown' }, { do: 'reset' }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('serve' as const),
      pick,
      movesOn: fc.constantFrom<TargetSetting['movesOn'][]>('nobody', 'guests', 'all'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('zombie' as const), pick }) },
);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

class Run {
  readonly #queue = new RedisDeliveryQueue({ redis: redis.client, prefix, tallyMs: 0 });
  readonly #acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  readonly #held: { worker: string; job: Job }[] = [];
  readonly #zombies: { worker: string; job: Job }[] = [];
  readonly #movesOn = new Map<string, TargetSetting['movesOn']>();
  readonly #accepted: string[] = [];

  async take(action: Step): Promise<void> {
    switch (action.do) {
      case 'accept':
        return await this.#accept();
      case 'cancel': {
        const id = this.#accepted[action.pick % Math.max(1, this.#accepted.length)] ?? '';
        const result = (await new RedisMessageCanceller({ redis: redis.client, prefix }).cancel('org_a', [id], 'me')).get(id);
        const isHeld = this.#held.some(({ job }) => job.messageId === id);
        expect(result).toBe(id === '' ? 'not_found' : isHeld ? 'cancelling' : result === 'ended' ? 'ended' : 'cancelled');
        return;
      }
      case 'dequeue':
        for (const job of await this.#dequeue(action.worker, action.count)) this.#held.push({ worker: action.worker, job });
        return;
      case 'settle': {
        const [held] = this.#held.splice(action.pick % Math.max(1, this.#held.length), 1);
        if (held === undefined) return;
        expect(await this.#settle(held.worker, held.job, outcomes[action.outcome])).toBe(true);
        this.#zombies.push(held);
        return;
      }
      case 'zombie': {
        const zombie = this.#zombies[action.pick % Math.max(1, this.#zombies.length)];
        if (zombie !== undefined) expect(await this.#settle(zombie.worker, zombie.job, outcomes.dead)).toBe(false);
        return;
      }
      case 'crash':
        while ((await this.#queue.reclaim([action.worker])).hasMore);
        await this.#queue.refreshShard(action.worker, 64);
        this.#zombies.push(...this.#held.filter((each) => each.worker === action.worker));
        this.#held.splice(0, this.#held.length, ...this.#held.filter((each) => each.worker !== action.worker));
        return;
      case 'promote':
        while ((await this.#queue.promote()).nextDueMs === 0);
        return;
      case 'cooldown':
        for (const n of await redis.client.smembers(`${base}broken`)) {
          await redis.client.hset(`${base}t:${n}`, hashFields.target.cooldownEndMs, 1);
          await redis.client.zadd(`${base}waiting`, 1, `!${n}`);
        }
        return await this.take({ do: 'promote' });
      case 'serve':
        return await this.#serve(spares[action.pick % spares.length] ?? '', action.movesOn);
      case 'reset':
        return await new Circuits({ redis: redis.client, prefix }).reset('org_a', 'rte_a', ['dst_a', ...spares]);
      default:
        action satisfies never;
    }
  }

  async check(): Promise<void> {
    const { messages, findings } = await checkShards({ redis: redis.client, prefix });
    expect(findings).toEqual([]);
    expect(messages).toBe(this.#accepted.length);
    expect(await redis.client.zcard(`${base}held`)).toBe(this.#held.length);
  }

  /** Whatever happened, everything can be delivered, and nothing but history stays behind. */
  async finish(): Promise<void> {
    for (const name of ['w1', 'w2']) await this.take({ do: 'crash', worker: name });
    for (const spare of spares) await this.#serve(spare, 'nobody');
    // A circuit stays open though all has been delivered elsewhere.
    await this.take({ do: 'reset' });
    for (let round = 0; (await checkShards({ redis: redis.client, prefix })).unfinished > 0; round++) {
      expect(round).toBeLessThan(200);
      await this.take({ do: 'reset' });
      await this.take({ do: 'promote' });
      for (const job of await this.#dequeue('w1', 64)) await this.#settle('w1', job, outcomes.delivered);
    }
    for (const job of await this.#dequeue('w1', 64)) expect(job).toBeUndefined();
    await this.check();
    const { total } = await new RedisStatisticsReader({ redis: redis.client, prefix, clock: systemClock }).ofOrganization('org_a', '1h');
    const { byReason } = await new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock }).deadLetterStats('org_a');
    expect(total.delivered + total.failed + (byReason.cancelled ?? 0)).toBe(this.#accepted.length);
    while ((await this.#queue.prune({ finishedMs: -1000, deadLettersMs: -1000 })).hasMore);
    while (await this.#queue.foldTallies());
    await forgetStaleNames(redis.client, base, this.#queue);
    const left = await redis.client.keys(`${base}*`);
    expect(left.filter((key) => !/:(ctl|bell|workers|slots|circuits|(tn|o|k|st):.*|t:\d+)$/.test(key))).toEqual([]);
  }

  async #accept(): Promise<void> {
    const event = newEvent();
    this.#accepted.push(event.targets[0]?.messageId ?? '');
    await this.#acceptor.accept(event);
  }

  async #dequeue(name: string, count: number): Promise<Job[]> {
    for (;;) {
      const { jobs, unconfigured } = await this.#queue.dequeue(name, count);
      for (const target of unconfigured) await this.#configure(target);
      if (jobs.length > 0 || unconfigured.length === 0) return jobs;
    }
  }

  /** As a change of the destination, or of the route, does it. */
  async #serve(destinationId: string, movesOn: TargetSetting['movesOn']): Promise<void> {
    this.#movesOn.set(destinationId, movesOn);
    for (const target of (await this.#queue.targets(1)).targets) {
      if (target.destinationId !== destinationId) continue;
      await this.#configure(target);
      for (let cursor: string | null = '0'; cursor !== null; ) cursor = (await this.#queue.endWaits([target], cursor)).next;
    }
  }

  async #configure(target: Target): Promise<void> {
    const position = spares.indexOf(target.destinationId);
    const failover = { destinations: spares.slice(position + 1).map((id) => ({ id, shard: 0 })), afterAttempts: position < 0 ? 2 : null };
    const circuit = { failureThreshold: 2, cooldownSeconds: 60, probeSuccessThreshold: 2 };
    await this.#queue.configure(target, targetSetting({ failover, circuit, movesOn: this.#movesOn.get(target.destinationId) ?? 'nobody' }));
  }

  async #settle(name: string, job: Job, outcome: Outcome): Promise<boolean | undefined> {
    return (await this.#queue.settle(name, [{ job, outcome, maxAttempts: null }])).settled[0];
  }
}

test('each accepted message is in exactly one place and can be delivered, with circuits and failover, too', async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 50, size: 'max' }), async (steps) => {
      await redis.client.flushall();
      const run = new Run();
      for (const name of ['w1', 'w2']) await run.take({ do: 'crash', worker: name });
      for (const action of steps) {
        await run.take(action);
        await run.check();
      }
      await run.finish();
    }),
    60,
  );
});
