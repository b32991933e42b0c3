import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { forgetStaleNames } from '../../../test/support/make-due.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { attempt, failure } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisStatisticsReader } from '../analytics/redis-statistics-reader.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { Circuits } from './circuits.ts';
import type { BatchMember, Job, Outcome, Target } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const base = 'test:{s0}:';
const workers = ['w1', 'w2'];
/** The first two are warehouses; messages fail over from left to right. */
const chain = ['dst_a', 'dst_b', 'dst_http'];
const longMs = 3_600_000;
const long = 'x'.repeat(100);
/** A batch has left before it comes to nothing. */
type BatchOutcome = Exclude<Outcome['type'], 'unsent'>;
const outcomes = {
  delivered: { type: 'delivered', attempt },
  retry: { type: 'retry', attempt: { ...failure, errorMessage: long }, delayMs: 0 },
  dead: { type: 'dead', attempt: { ...failure, errorMessage: long }, reason: 'max_retries_exceeded' },
  back: { type: 'back' },
} satisfies Record<BatchOutcome, Outcome>;

type Step =
  | { do: 'accept'; count: number; size: number }
  | { do: 'dequeue'; worker: string; count: number; isReplyLost: boolean }
  | { do: 'settle'; pick: number; outcome: BatchOutcome; isStored: boolean }
  | { do: 'zombie'; pick: number; outcome: BatchOutcome }
  | { do: 'cut'; pick: number; at: number; times: number }
  | { do: 'cancel'; pick: number; times: number }
  | { do: 'crash' | 'adopt'; worker: string }
  | { do: 'promote' | 'age' | 'cooldown' | 'reset' | 'end' | 'dropRoute' };

const worker = fc.constantFrom(...workers);
const outcome = fc.constantFrom<BatchOutcome[]>('delivered', 'retry', 'dead', 'back');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('accept' as const),
      count: fc.integer({ min: 1, max: 4 }),
      size: fc.integer({ min: 1, max: 300 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('dequeue' as const), worker, count: fc.integer({ min: 1, max: 4 }), isReplyLost: fc.boolean() }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('settle' as const), pick: fc.nat({ max: 1000 }), outcome, isStored: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('zombie' as const), pick: fc.nat({ max: 1000 }), outcome }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('cut' as const),
      pick: fc.nat({ max: 1000 }),
      at: fc.integer({ min: 1, max: 2 }),
      times: fc.integer({ min: 1, max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('cancel' as const), pick: fc.nat({ max: 1000 }), times: fc.integer({ min: 1, max: 2 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('crash' as const, 'adopt' as const), worker }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('promote' as const, 'age' as const, 'cooldown' as const, 'reset' as const, 'end' as const, 'dropRoute' as const),
    }),
  },
);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Runs steps on the real scripts; beside them it keeps the objects that uploads would have made. */
class Run {
  readonly #queue = new RedisDeliveryQueue({ redis: redis.client, prefix, tallyMs: 0 });
  readonly #acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  readonly #reader = new RedisMessageReader({ redis: redis.client, prefix });
  readonly #canceller = new RedisMessageCanceller({ redis: redis.client, prefix });
  readonly #known = new Map<string, Map<string, Job>>(workers.map((name) => [name, new Map()]));
  readonly #zombies: { worker: string; job: Job }[] = [];
  /** Destination → object → its messages. */
  readonly #buckets = new Map<string, Map<string, string[]>>(chain.map((id) => [id, new Map()]));
  readonly #accepted: string[] = [];
  readonly #batches = new Map<string, string[]>();
  readonly #membersOf = new Map<string, BatchMember[]>();

  async take(action: Step): Promise<void> {
    switch (action.do) {
      case 'accept':
        for (let i = 0; i < action.count; i++) {
          const event = newEvent({ payload: Buffer.alloc(action.size, 'a') });
          await this.#acceptor.accept(event);
          this.#accepted.push(event.targets[0]?.messageId ?? '');
        }
        return;
      case 'dequeue':
        for (const job of await this.#dequeue(action.worker, action.count)) {
          if (job.isBatch) await this.#read(job);
          if (!action.isReplyLost) this.#known.get(action.worker)?.set(job.handle, job);
        }
        return;
      case 'settle':
        return await this.#settle(action.pick, outcomes[action.outcome], action.isStored);
      case 'zombie': {
        const zombie = this.#zombies[action.pick % Math.max(1, this.#zombies.length)];
        if (zombie === undefined) return;
        const settlement = { job: zombie.job, outcome: outcomes[action.outcome], maxAttempts: null };
        expect((await this.#queue.settle(zombie.worker, [settlement])).settled).toEqual([false]);
        return;
      }
      case 'cut':
        return await this.#cut(action.pick, action.at, action.times);
      case 'cancel': {
        const id = this.#accepted[action.pick % Math.max(1, this.#accepted.length)];
        if (id === undefined) return;
        const results = new Set<string | undefined>();
        for (let time = 0; time < action.times; time++) results.add((await this.#canceller.cancel('org_a', [id], 'me')).get(id));
        expect(['cancelled', 'cancelling', 'ended']).toEqual(expect.arrayContaining([...results]));
        expect(results.size).toBe(1);
        if (results.has('cancelled')) expect(await this.#reader.delivery('org_a', id)).toMatchObject({ deadLetterReason: 'cancelled' });
        return;
      }
      case 'crash':
        while ((await this.#queue.reclaim([action.worker])).hasMore);
        await this.#queue.refreshShard(action.worker, 64);
        for (const job of this.#known.get(action.worker)?.values() ?? []) this.#zombies.push({ worker: action.worker, job });
        this.#known.get(action.worker)?.clear();
        return;
      case 'adopt': {
        const known = this.#known.get(action.worker) ?? new Map<string, Job>();
        for (const job of await this.#queue.adopt(action.worker, [...known.keys()])) known.set(job.handle, job);
        return;
      }
      case 'promote':
        while ((await this.#queue.promote()).nextDueMs === 0);
        return;
      case 'age':
        await this.#setAges(-1);
        await this.take({ do: 'dequeue', worker: 'w1', count: 2, isReplyLost: false });
        return await this.#setAges(longMs);
      case 'cooldown':
        for (const n of await redis.client.smembers(`${base}broken`)) {
          await redis.client.hset(`${base}t:${n}`, hashFields.target.cooldownEndMs, 1);
          await redis.client.zadd(`${base}waiting`, 1, `!${n}`);
        }
        return await this.take({ do: 'promote' });
      case 'reset':
        return await new Circuits({ redis: redis.client, prefix }).reset('org_a', 'rte_a', chain);
      case 'end':
        await this.#queue.endBatches();
        return;
      case 'dropRoute':
        for (const target of (await this.#queue.targets(1)).targets)
          while ((await this.#queue.drop({ target, reason: 'route_deleted', failover: null })).hasMore);
        return;
      default:
        action satisfies never;
    }
  }

  async check(): Promise<void> {
    const { messages, findings } = await checkShards({ redis: redis.client, prefix });
    expect(findings).toEqual([]);
    expect(messages).toBe(this.#accepted.length);
    for (const objects of this.#buckets.values()) {
      const stored = [...objects.values()].flat();
      expect(new Set(stored).size).toBe(stored.length);
    }
  }

  /** Whatever happened, all that is unfinished is delivered into one object each, and nothing but history stays behind. */
  async finish(): Promise<void> {
    for (const name of workers) await this.take({ do: 'crash', worker: name });
    for (let round = 0; (await checkShards({ redis: redis.client, prefix })).unfinished > 0; round++) {
      expect(round).toBeLessThan(300);
      await this.take({ do: 'reset' });
      await this.take({ do: 'promote' });
      await this.take({ do: 'age' });
      while ((this.#known.get('w1')?.size ?? 0) > 0) await this.#settle(0, outcomes.delivered, true);
      while ((await this.#queue.endBatches()).hasEndedBatches);
    }
    expect(await this.#dequeue('w1', 64)).toEqual([]);
    await this.check();
    for (const id of this.#accepted) await this.#checkDelivery(id);
    expect((await this.#queue.figures()).unfinished).toBe(0);
    const { total } = await new RedisStatisticsReader({ redis: redis.client, prefix, clock: systemClock }).ofOrganization('org_a', '1h');
    const { byReason } = await new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock }).deadLetterStats('org_a');
    expect(total.delivered + total.failed + (byReason.cancelled ?? 0)).toBe(this.#accepted.length);
    while ((await this.#queue.prune({ finishedMs: -1000, deadLettersMs: -1000 })).hasMore);
    while (await this.#queue.foldTallies());
    await forgetStaleNames(redis.client, base, this.#queue);
    // A target whose messages were all cancelled still waits for its batch to be complete. Once it is woken, a dequeue finds no work and takes it out of `ready`.
    expect(await this.#dequeue('w1', 64)).toEqual([]);
    const left = await redis.client.keys(`${base}*`);
    expect(left.filter((key) => !/:(ctl|bell|workers|slots|circuits|(tn|o|k|st|i:batch):.*|t:\d+)$/.test(key))).toEqual([]);
  }

  async #checkDelivery(id: string): Promise<void> {
    const delivery = await this.#reader.delivery('org_a', id);
    if (delivery?.status === 'delivered' && delivery.destinationId !== 'dst_http') {
      const objects = [...(this.#buckets.get(delivery.destinationId ?? '')?.values() ?? [])];
      expect(objects.filter((messages) => messages.includes(id))).toHaveLength(1);
    }
    const attempts = await this.#reader.attempts('org_a', id);
    expect(attempts.map(({ attemptNumber }) => attemptNumber)).toEqual(Array.from({ length: delivery?.attempts ?? 0 }, (_, i) => i + 1));
  }

  async #dequeue(name: string, count: number): Promise<Job[]> {
    for (;;) {
      const { jobs, unconfigured } = await this.#queue.dequeue(name, count);
      for (const target of unconfigured) await this.#configure(target);
      if (jobs.length > 0 || unconfigured.length === 0) return jobs;
    }
  }

  async #configure(target: Target): Promise<void> {
    const position = chain.indexOf(target.destinationId);
    const failover = { destinations: chain.slice(position + 1).map((id) => ({ id, shard: 0 })), afterAttempts: position === 0 ? 2 : null };
    const circuit = { failureThreshold: 2, cooldownSeconds: 60, probeSuccessThreshold: 1 };
    const batch = target.destinationId === 'dst_http' ? null : { layout: '{"prefix":""}', records: 3, bytes: 800, ageMs: longMs };
    await this.#queue.configure(target, targetSetting({ failover, circuit, batch }));
  }

  /** A batch is the same whenever it is read, and no larger than it may be. */
  async #read(job: Job): Promise<string[]> {
    const batch = await this.#queue.batch(job);
    expect(batch).toMatchObject({ id: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/), layout: '{"prefix":""}' });
    const messages = batch?.members.map(({ messageId }) => messageId) ?? [];
    const bytes = (await this.#queue.events(batch?.members ?? [])).reduce((sum, event) => sum + (event?.payload.length ?? 0), 0);
    expect(messages.length).toBeGreaterThan(0);
    expect(messages.length).toBeLessThanOrEqual(3);
    if (messages.length > 1) expect(bytes).toBeLessThanOrEqual(800);
    expect(messages).toEqual(this.#batches.get(job.messageKey) ?? messages);
    this.#batches.set(job.messageKey, messages);
    this.#membersOf.set(job.messageKey, batch?.members ?? []);
    return messages;
  }

  async #settle(at: number, how: Outcome, isStored: boolean): Promise<void> {
    const all = [...this.#known].flatMap(([name, jobs]) => [...jobs.values()].map((job) => ({ name, job })));
    const chosen = all[at % Math.max(1, all.length)];
    if (chosen === undefined) return;
    const { name, job } = chosen;
    const bucket = this.#buckets.get(job.target.destinationId);
    if (job.isBatch && (isStored || how.type === 'delivered')) bucket?.set(job.messageKey, await this.#read(job));
    expect((await this.#queue.settle(name, [{ job, outcome: how, maxAttempts: 3 }])).settled).toEqual([true]);
    this.#known.get(name)?.delete(job.handle);
    this.#zombies.push({ worker: name, job });
  }

  /** Cuts a batch that was not written yet; the call may be sent again, and a worker that lost the batch changes nothing. */
  async #cut(pick: number, at: number, times: number): Promise<void> {
    for (const { worker: name, job } of this.#zombies) {
      const [last, first] = this.#membersOf.get(job.messageKey) ?? [];
      if (last && first) expect(await this.#queue.cut(name, job, { last, first })).toBe(false);
    }
    const all = [...this.#known]
      .flatMap(([name, jobs]) => [...jobs.values()].map((job) => ({ name, job })))
      .filter(({ job }) => job.isBatch);
    const { name = '', job } = all[pick % Math.max(1, all.length)] ?? {};
    if (job === undefined || this.#buckets.get(job.target.destinationId)?.has(job.messageKey) === true) return;
    const members = (await this.#queue.batch(job))?.members ?? [];
    const [last, first] = [members[at - 1], members[at]];
    if (last === undefined || first === undefined) return;
    for (let time = 0; time < times; time++) expect(await this.#queue.cut(name, job, { last, first })).toBe(true);
    this.#batches.delete(job.messageKey);
    expect(await this.#read(job)).toEqual(members.slice(0, at).map(({ messageId }) => messageId));
  }

  async #setAges(ms: number): Promise<void> {
    for (const key of await redis.client.keys(`${base}t:*`))
      if ((await redis.client.hexists(key, hashFields.target.batchLayout)) === 1)
        await redis.client.hset(key, hashFields.target.batchAgeMs, ms);
    for (const limiter of await redis.client.zrange(`${base}waiting`, '0', '-1'))
      if (limiter.startsWith('~b')) await redis.client.zadd(`${base}waiting`, 1, limiter);
    await this.take({ do: 'promote' });
  }
}

test('whatever happens to batches, each message is in exactly one place, and twice in no bucket', async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 50, size: 'max' }), async (steps) => {
      await redis.client.flushall();
      const run = new Run();
      for (const name of workers) await run.take({ do: 'crash', worker: name });
      for (const action of steps) {
        await run.take(action);
        await run.check();
      }
      await run.finish();
    }),
    80,
  );
});
