import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { forgetStaleNames } from '../../../test/support/make-due.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { defaultPool } from '../../core/default-pool.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { AlertStates } from '../alerts/alert-states.ts';
import { RedisStatisticsReader } from '../analytics/redis-statistics-reader.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { OrganizationPools } from '../pools/organization-pools.ts';
import type { NewAttempt } from '../shard/attempt-record.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent } from '../shard/messages.ts';
import type { Job, Outcome, Settlement } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const base = 'test:{s0}:';
const pools = [defaultPool, 'x'];
const workers = ['w1', 'w2', 'w3@x'];
/** A destination whose messages go out in order. */
const ordered = 'dst_c';
const poolOf = (name: string): string => name.split('@')[1] ?? defaultPool;
const attempt: NewAttempt = { startedAtMs: 1, durationMs: 5, responseStatus: 200, responseBody: 'ok', errorType: null, errorMessage: null };
const outcomes = {
  delivered: { type: 'delivered', attempt },
  retry: { type: 'retry', attempt, delayMs: 0 },
  dead: { type: 'dead', attempt, reason: 'max_retries_exceeded' },
  unsent: { type: 'unsent', status: 'transform_failed', reason: 'x is not a function', tookMs: 5 },
  back: { type: 'back' },
} satisfies Record<Outcome['type'], Outcome>;

/** The state of a message in the model. */
type Place = 'queued' | 'held' | 'due' | 'finished' | 'dead' | 'pruned';

type Step =
  | { do: 'accept'; destinations: string[]; again: boolean; expires: boolean }
  | { do: 'dequeue'; worker: string; count: number; isReplyLost: boolean }
  | { do: 'settle'; pick: number; outcome: Outcome['type']; times: number }
  | { do: 'settleAsZombie'; pick: number; outcome: Outcome['type'] }
  | { do: 'crash'; worker: string }
  | { do: 'adopt' | 'heartbeat'; worker: string }
  | { do: 'move'; pool: string }
  | { do: 'cancel'; pick: number; times: number }
  | { do: 'promote' | 'expire' | 'prune' | 'dropRoute' };

const worker = fc.constantFrom(...workers);
const outcome = fc.constantFrom<Outcome['type'][]>('delivered', 'retry', 'dead', 'unsent', 'back');
const pick = fc.nat({ max: 1000 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('accept' as const),
      destinations: fc.subarray(['dst_a', 'dst_b', ordered]),
      again: fc.boolean(),
      expires: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('dequeue' as const), worker, count: fc.integer({ min: 1, max: 8 }), isReplyLost: fc.boolean() }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('settle' as const), pick, outcome, times: fc.integer({ min: 1, max: 2 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settleAsZombie' as const), pick, outcome }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cancel' as const), pick, times: fc.integer({ min: 1, max: 2 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), worker }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('adopt' as const, 'heartbeat' as const), worker }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), pool: fc.constantFrom(...pools) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('promote' as const, 'expire' as const, 'prune' as const, 'dropRoute' as const) }),
  },
);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Runs steps on the real scripts and, beside them, on a model of where each message must be. */
class Run {
  readonly #queues = new Map(
    pools.map((pool) => [pool, new RedisDeliveryQueue({ redis: redis.client, prefix: 'test:', tallyMs: 0, pool })] as const),
  );
  readonly #pools = new OrganizationPools({ redis: redis.client, prefix: 'test:', shards: 1 });
  /** Serves the organization. */
  #pool = defaultPool;
  readonly #acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix: 'test:', clock: lenientClock });
  readonly #canceller = new RedisMessageCanceller({ redis: redis.client, prefix: 'test:' });
  readonly #places = new Map<string, Place>();
  /** Messages cancelled while they were leased. */
  readonly #noted = new Set<string>();
  /** Messages that have ended as cancelled. */
  readonly #cancelled = new Set<string>();
  /** Messages whose time has come. */
  readonly #expired = new Set<string>();
  /** Messages of the ordered destination, in the order of their acceptance. */
  readonly #ordered: string[] = [];
  /** Jobs by their worker. */
  readonly #known = new Map<string, Map<string, Job>>(workers.map((name) => [name, new Map()]));
  readonly #zombies: { worker: string; job: Job }[] = [];
  /** Leases of workers by the model, known to them or not. */
  readonly #held = new Map<string, { worker: string; messageKey: string }>();

  async take(action: Step): Promise<void> {
    switch (action.do) {
      case 'accept':
        return await this.#accept(newEvent({ destinations: action.destinations }), action);
      case 'dequeue':
        return await this.#dequeue(action.worker, action.count, action.isReplyLost);
      case 'settle':
        return await this.#settle(action.pick, outcomes[action.outcome], action.times);
      case 'settleAsZombie': {
        const zombie = this.#zombies[action.pick % Math.max(1, this.#zombies.length)];
        if (zombie !== undefined) expect(await this.#send(zombie.worker, zombie.job, outcomes[action.outcome])).toBe(false);
        return;
      }
      case 'crash':
        return await this.#crash(action.worker);
      case 'adopt':
        return await this.#adopt(action.worker);
      case 'heartbeat': {
        const { held } = await this.#queueOf(action.worker).refreshShard(action.worker, 64);
        expect(held).toBe([...this.#held.values()].filter((each) => each.worker === action.worker).length);
        return;
      }
      case 'move':
        this.#pool = action.pool;
        return await this.#pools.assign('org_a', action.pool);
      case 'cancel':
        return await this.#cancel(action.pick, action.times);
      case 'promote':
        return await this.#promote();
      case 'expire':
        for (const key of await expireMessages(redis.client, base)) this.#expired.add(key);
        return await this.#promote();
      case 'prune':
        while ((await this.#queue.prune({ finishedMs: -1000, deadLettersMs: -1000 })).hasMore);
        while (await this.#queue.foldTallies());
        this.#move('finished', 'pruned');
        return this.#move('dead', 'pruned');
      case 'dropRoute':
        for (const target of (await this.#queue.targets(1)).targets)
          while ((await this.#queue.drop({ target, reason: 'route_deleted', failover: null })).hasMore);
        return this.#move('queued', 'dead');
      default:
        action satisfies never;
    }
  }

  /** Each accepted message is in exactly one state, and it is that of the model. */
  async check(): Promise<void> {
    const found = new Map<string, string[]>();
    const note = (key: string, place: string): void => void found.set(key, [...(found.get(key) ?? []), place]);
    for (const w of await redis.client.keys(`${base}w:*`)) {
      const pending = (await redis.client.xpending(w, 'g', '-', '+', 10_000)) as [string][];
      const unacknowledged = new Set(pending.map(([entry]) => entry));
      for (const [entry, [, key = '']] of await redis.client.xrange(w, '-', '+')) {
        if (!unacknowledged.delete(entry)) note(key, 'queued');
        else if (this.#held.get(`${w.slice(`${base}w:`.length)}/${entry}`)?.messageKey === key) note(key, 'held');
        else note(key, 'pending without a holder');
      }
      expect(unacknowledged.size).toBe(0);
    }
    for (const member of await redis.client.zrange(`${base}due`, '0', '-1')) note(member.split(' ')[1] ?? '', 'due');
    for (const [, [kind, key = '']] of await redis.client.xrange(`${base}fin`, '-', '+'))
      if (kind === hashFields.entry.message) note(key, 'finished');
    for (const [, [kind, key = '']] of await redis.client.xrange(`${base}dead`, '-', '+'))
      if (kind === hashFields.entry.message) note(key, 'dead');
    for (const key of this.#places.keys()) if ((await redis.client.exists(`${base}m:${key}`)) === 0) note(key, 'pruned');
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries([...this.#places].map(([key, place]) => [key, [place]])));

    expect((await checkShards({ redis: redis.client, prefix: 'test:' })).findings).toEqual([]);
    for (const [key, place] of this.#places) {
      const expires = (await redis.client.hexists(`${base}m:${key}`, hashFields.message.expiresMs)) === 1;
      const isWatched = expires && (place === 'held' ? !this.#expired.has(key) : place === 'queued' || place === 'due');
      expect([key, await redis.client.zscore(`${base}exp`, key)]).toEqual([key, isWatched ? expect.any(String) : null]);
    }
    const holders = await redis.client.zrange(`${base}held`, '0', '-1');
    expect(holders.sort()).toEqual([...this.#held].map(([handle, { worker: name }]) => `${handle}/${name}`).sort());
    const open = [...this.#places.values()].filter((place) => ['queued', 'held', 'due'].includes(place)).length;
    expect((await this.#queue.figures()).unfinished).toBe(open);
    const statistics = new RedisStatisticsReader({ redis: redis.client, prefix: 'test:', clock: systemClock });
    const { targets, total, filtered } = await statistics.ofOrganization('org_a', '1h');
    expect(targets.reduce((sum, { fresh, retries }) => sum + fresh + retries, 0)).toBe(open);
    expect(total.delivered + total.failed + [...filtered.values()].reduce((sum, count) => sum + count, 0)).toBe(
      this.#places.size - open - this.#cancelled.size,
    );
  }

  /** Whatever happened, what is unfinished can be delivered, and nothing stays behind but what the shard itself needs. */
  async finish(): Promise<void> {
    for (const name of workers) await this.#crash(name);
    // Served by any worker now.
    const finisher = workers.find((name) => poolOf(name) === this.#pool) ?? '';
    for (let round = 0; this.#count('queued') + this.#count('due') > 0; round++) {
      expect(round).toBeLessThan(100);
      await this.take({ do: 'promote' });
      await this.#dequeue(finisher, 64, false);
      for (const job of [...(this.#known.get(finisher)?.values() ?? [])]) await this.#settleJob(finisher, job, outcomes.delivered, 1);
    }
    await this.take({ do: 'prune' });
    await redis.client.zadd(`${base}waiting`, 'XX', 1, '~x');
    await this.take({ do: 'promote' });
    await this.check();
    // A target whose stream was drained leaves `ready` with the next dequeue.
    await this.#dequeue(finisher, 64, false);
    await this.take({ do: 'move', pool: defaultPool });
    await forgetStaleNames(redis.client, base, this.#queue);
    // The notifier reads the entries of messages that expire before their target is configured.
    const ends = new AlertStates({ redis: redis.client, prefix: 'test:' });
    for (let read = await ends.read(0, 'reader'); read !== null && read.own.length > 0; read = await ends.read(0, 'reader'))
      await ends.forget(0, [...read.entries, ...read.own]);
    const left = await redis.client.keys(`${base}*`);
    expect(left.filter((key) => !/:(ctl|bell|workers|slots|ordered|ends-reader|(tn|o|k|st|oe):.*|t:\d+)$/.test(key))).toEqual([]);
  }

  async #promote(): Promise<void> {
    while ((await this.#queue.promote()).nextDueMs === 0);
    this.#move('due', 'queued');
    for (const key of this.#expired) if (this.#places.get(key) === 'queued') this.#places.set(key, 'dead');
  }

  async #accept({ targets, ...event }: NewEvent, { again, expires }: { again: boolean; expires: boolean }): Promise<void> {
    const expiresAtMs = Date.now() + 3_600_000;
    await this.#acceptEvent({ ...event, targets: expires ? targets.map((target) => ({ ...target, expiresAtMs })) : targets }, again);
  }

  async #acceptEvent(event: NewEvent, again: boolean): Promise<void> {
    await this.#acceptor.accept(event);
    if (again) await this.#acceptor.accept(event);
    for (const { messageId, destinationId } of event.targets) {
      this.#places.set(messageId.slice(6), 'queued');
      if (destinationId === ordered) this.#ordered.push(messageId.slice(6));
    }
  }

  async #dequeue(name: string, count: number, isReplyLost: boolean): Promise<void> {
    const before = [...this.#places].filter(([key, place]) => place === 'queued' && !this.#ordered.includes(key)).length;
    const queue = this.#queueOf(name);
    let reply = await queue.dequeue(name, count);
    for (const target of reply.unconfigured) await queue.configure(target, targetSetting({ inOrder: target.destinationId === ordered }));
    if (reply.jobs.length === 0 && reply.unconfigured.length > 0) reply = await queue.dequeue(name, count);
    if (poolOf(name) !== this.#pool) expect(reply.jobs).toEqual([]);
    else if (this.#held.size === 0 && before > 0) expect(reply.jobs.length).toBeGreaterThan(0);
    for (const job of reply.jobs) {
      expect(this.#places.get(job.messageKey)).toBe('queued');
      // The first that has not ended: no earlier one is queued, held or due.
      if (job.target.destinationId === ordered) expect(job.messageKey).toBe(this.#unendedOfOrdered()[0]);
      this.#places.set(job.messageKey, 'held');
      this.#held.set(job.handle, { worker: name, messageKey: job.messageKey });
      if (!isReplyLost) this.#known.get(name)?.set(job.handle, job);
    }
  }

  async #adopt(name: string): Promise<void> {
    const known = this.#known.get(name);
    const unknown = [...this.#held]
      .filter(([handle, each]) => each.worker === name && known?.has(handle) !== true)
      .map(([handle]) => handle);
    const adopted = await this.#queueOf(name).adopt(name, [...(known?.keys() ?? [])]);
    expect(adopted.map(({ handle }) => handle).sort()).toEqual(unknown.sort());
    for (const job of adopted) known?.set(job.handle, job);
  }

  async #settle(at: number, how: Outcome, times: number): Promise<void> {
    const all = [...this.#known].flatMap(([name, jobs]) => [...jobs.values()].map((job) => ({ name, job })));
    const chosen = all[at % Math.max(1, all.length)];
    if (chosen !== undefined) await this.#settleJob(chosen.name, chosen.job, how, times);
  }

  async #settleJob(name: string, job: Job, how: Outcome, times: number): Promise<void> {
    for (let time = 1; time <= times; time++) expect(await this.#send(name, job, how)).toBe(time === 1);
    this.#known.get(name)?.delete(job.handle);
    this.#held.delete(job.handle);
    this.#zombies.push({ worker: name, job });
    const places = { delivered: 'finished', retry: 'due', dead: 'dead', unsent: 'finished', back: 'queued' } as const;
    const place = places[how.type];
    this.#places.set(job.messageKey, this.#expired.has(job.messageKey) && place !== 'finished' ? 'dead' : place);
    if (place !== 'finished') this.#endNoted(job.messageKey);
  }

  /** A message that waits ends at once, one that is held when it would be queued again. */
  async #cancel(at: number, times: number): Promise<void> {
    const all = [...this.#places].filter(([, place]) => place !== 'pruned');
    const [key, place] = all[at % Math.max(1, all.length)] ?? [];
    if (key === undefined) return;
    const id = `msg_00${key}`;
    const expected =
      place === 'held' ? 'cancelling' : this.#cancelled.has(key) || place === 'queued' || place === 'due' ? 'cancelled' : 'ended';
    for (let time = 1; time <= times; time++) expect([...(await this.#canceller.cancel('org_a', [id], 'me'))]).toEqual([[id, expected]]);
    this.#noted.add(key);
    if (place === 'queued' || place === 'due') this.#endNoted(key);
  }

  #endNoted(key: string): void {
    if (!this.#noted.has(key)) return;
    this.#places.set(key, 'dead');
    this.#cancelled.add(key);
  }

  async #crash(name: string): Promise<void> {
    while ((await this.#queue.reclaim([name])).hasMore);
    for (const job of this.#known.get(name)?.values() ?? []) this.#zombies.push({ worker: name, job });
    this.#known.get(name)?.clear();
    for (const [handle, each] of this.#held) {
      if (each.worker !== name) continue;
      this.#held.delete(handle);
      this.#places.set(each.messageKey, 'queued');
      this.#endNoted(each.messageKey);
    }
    await this.#queueOf(name).refreshShard(name, 64);
    if (this.#expired.size > 0) await this.#promote();
  }

  async #send(name: string, job: Job, how: Outcome): Promise<boolean | undefined> {
    const settlement: Settlement = { job, outcome: how, maxAttempts: null };
    return (await this.#queueOf(name).settle(name, [settlement])).settled[0];
  }

  #move(from: Place, to: Place): void {
    for (const [key, place] of this.#places) if (place === from) this.#places.set(key, to);
  }

  #queueOf(name: string): RedisDeliveryQueue {
    return this.#queues.get(poolOf(name)) ?? this.#queue;
  }

  /** For what any worker does. */
  get #queue(): RedisDeliveryQueue {
    const queue = this.#queues.get(defaultPool);
    if (queue === undefined) throw new Error('there is no default pool');
    return queue;
  }

  #unendedOfOrdered(): string[] {
    return this.#ordered.filter((key) => ['queued', 'held', 'due'].includes(this.#places.get(key) ?? ''));
  }

  #count(place: Place): number {
    return [...this.#places.values()].filter((each) => each === place).length;
  }
}

test('whatever happens in whatever order, each accepted message is in exactly one place', async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }), async (steps) => {
      await redis.client.flushall();
      const run = new Run();
      for (const name of workers) await run.take({ do: 'heartbeat', worker: name });
      for (const action of steps) {
        await run.take(action);
        await run.check();
      }
      await run.finish();
    }),
    60,
  );
});
