import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { dead, delivered, failure } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { isPosthornError } from '../../core/errors.ts';
import { newTimedId } from '../../core/ids.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import type { NewEvent } from '../shard/messages.ts';
import type { Job, Outcome, Target } from './delivery-queue.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const shards = 3;
/** Where messages go first, and where they fail over to, in order. */
const first = ['dst_a', 'dst_b', 'dst_c'].map((id, shard) => ({ id, shard }));
const spares = [1, 0, 2].map((shard, i) => ({ id: `dst_spare${i}`, shard }));

/** Limiter of all targets of one of the shards. */
const sharedLimiter = { id: 'app_a', revision: 1, windows: [{ ms: 6, most: 40 }] };

const outcomes = {
  delivered,
  retry: { type: 'retry', attempt: failure, delayMs: 0 },
  dead,
  unsent: { type: 'unsent', status: 'transform_failed', reason: 'x is not a function', tookMs: 5 },
  back: { type: 'back' },
} satisfies Record<Outcome['type'], Outcome>;

type Step =
  | { do: 'accept'; to: typeof first; many: boolean }
  | { do: 'dequeue'; shard: number; count: number }
  | { do: 'settle' | 'zombie'; pick: number; outcome: Outcome['type'] }
  | { do: 'carry' | 'promote' | 'crash'; shard: number }
  | { do: 'breakCarrying'; shard: number; atCall: number; isDone: boolean }
  | { do: 'replay' | 'archive' | 'cancel'; pick: number }
  | { do: 'prune' };

const shard = fc.nat({ max: shards - 1 });
const pick = fc.nat({ max: 1000 });
const outcome = fc.constantFrom<Outcome['type'][]>('delivered', 'retry', 'retry', 'dead', 'unsent', 'back');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('accept' as const),
      to: fc.subarray(first, { minLength: 1 }),
      many: fc.constantFrom(false, false, true),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('dequeue' as const), shard, count: fc.integer({ min: 1, max: 8 }) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('settle' as const), pick, outcome }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('zombie' as const), pick, outcome }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('carry' as const, 'promote' as const, 'crash' as const), shard }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('breakCarrying' as const),
      shard,
      atCall: fc.integer({ min: 1, max: 5 }),
      isDone: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('replay' as const, 'archive' as const, 'cancel' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('prune' as const) }) },
);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** A connection that breaks at its n-th call, before Redis has done it or after. */
function breaking(atCall: number, isDone: boolean): RedisClient {
  let calls = 0;
  return new Proxy(redis.client, {
    get: (client, name) => {
      if (name !== 'callBuffer') return Reflect.get(client, name, client);
      return async (...args: [string, ...string[]]) => {
        calls++;
        if (calls > atCall || (calls === atCall && !isDone)) throw new Error('the connection broke');
        const reply = await client.callBuffer(...args);
        if (calls >= atCall) throw new Error('the connection broke');
        return reply;
      };
    },
  });
}

class Run {
  readonly #queues = Array.from({ length: shards }, (_, i) => new RedisDeliveryQueue({ redis: redis.client, prefix, shard: i }));
  readonly #carrier = new OutboxCarrier({ redis: redis.client, prefix });
  readonly #held: { shard: number; job: Job }[] = [];
  readonly #zombies: { shard: number; job: Job }[] = [];
  readonly #ended = new Map<string, string>();
  readonly #outputs = new Map<string, string>();
  #made = 0;
  readonly #accepted: NewEvent[] = [];
  readonly #replays: string[] = [];
  readonly #replayer = new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock, shards: () => shards });
  readonly #canceller = new RedisMessageCanceller({ redis: redis.client, prefix, shards: () => shards });
  /** Messages cancelled while they were leased. */
  readonly #noted = new Set<string>();
  #hasPruned = false;

  async begin(): Promise<void> {
    for (const queue of this.#queues) await queue.refreshShard('w1', 1000);
  }

  async take(action: Step): Promise<void> {
    switch (action.do) {
      case 'accept':
        return await this.#accept(action.to, action.many);
      case 'dequeue':
        for (const job of await this.#dequeue(action.shard, action.count)) this.#held.push({ shard: action.shard, job });
        return;
      case 'settle': {
        const [held] = this.#held.splice(action.pick % Math.max(1, this.#held.length), 1);
        if (held === undefined) return;
        await this.#settle(held.shard, held.job, outcomes[action.outcome], true);
        this.#zombies.push(held);
        return;
      }
      case 'zombie': {
        const zombie = this.#zombies[action.pick % Math.max(1, this.#zombies.length)];
        if (zombie !== undefined) await this.#settle(zombie.shard, zombie.job, outcomes[action.outcome], false);
        return;
      }
      case 'carry':
        return await this.#carrier.carry(action.shard);
      case 'breakCarrying':
        await new OutboxCarrier({ redis: breaking(action.atCall, action.isDone), prefix }).carry(action.shard).catch(() => undefined);
        return;
      case 'crash': {
        while ((await this.#queue(action.shard).reclaim(['w1'])).hasMore);
        const lost = this.#held.filter((each) => each.shard === action.shard);
        this.#zombies.push(...lost);
        this.#held.splice(0, this.#held.length, ...this.#held.filter((each) => !lost.includes(each)));
        for (const { job } of lost) if (this.#noted.has(job.messageId)) this.#ended.set(job.messageId, 'dead');
        return;
      }
      case 'promote':
        await sleep(2);
        while ((await this.#queue(action.shard).promote()).nextDueMs === 0);
        return;
      case 'replay': {
        const id = [...this.#ended.keys()][action.pick % Math.max(1, this.#ended.size)];
        if (id === undefined) return;
        const replayed = await this.#replayer.replay('org_a', id).catch(missing);
        if (replayed !== null) this.#replays.push(replayed);
        return;
      }
      case 'archive': {
        const dead = [...this.#ended].filter(([, how]) => how === 'dead').map(([id]) => id);
        const id = dead[action.pick % Math.max(1, dead.length)];
        if (id === undefined) return;
        this.#ended.set(id, 'archived');
        return void (await this.#replayer.archive('org_a', id).catch(missing));
      }
      case 'cancel':
        return await this.#cancel(action.pick);
      case 'prune':
        this.#hasPruned = true;
        return await this.prune();
      default:
        action satisfies never;
    }
  }

  async check(): Promise<void> {
    const { findings } = await checkShards({ redis: redis.client, prefix, shards });
    expect(findings).toEqual([]);
  }

  /** Delivers all that is left; then every accepted message has ended once, and can be read unless it was pruned. */
  async finish(): Promise<void> {
    for (let i = 0; i < shards; i++) await this.take({ do: 'crash', shard: i });
    await this.#carryAll();
    for (let round = 0; (await checkShards({ redis: redis.client, prefix, shards })).unfinished > 0; round++) {
      expect(round).toBeLessThan(100);
      for (let i = 0; i < shards; i++) {
        await this.take({ do: 'promote', shard: i });
        for (const job of await this.#dequeue(i, 64)) await this.#settle(i, job, outcomes.delivered, true);
      }
      await this.#carryAll();
    }
    const sent = this.#accepted.flatMap(({ targets }) => targets.map(({ messageId }) => messageId));
    expect([...this.#ended.keys()].sort()).toEqual([...sent, ...this.#replays].sort());
    const dead = [...this.#ended.values()].filter((how) => how === 'dead').length;
    if (!this.#hasPruned) expect((await this.#replayer.deadLetterStats('org_a')).total).toBe(dead);
    if (!this.#hasPruned) await this.#read();
    await this.prune();
    await this.#carryAll();
    await this.prune();
    expect(await recordKeys()).toEqual([]);
    for (const queue of this.#queues) expect((await queue.figures()).unfinished).toBe(0);
  }

  async prune(): Promise<void> {
    for (const queue of this.#queues) while ((await queue.prune({ finishedMs: -1000, deadLettersMs: -1000 })).hasMore);
  }

  async #read(): Promise<void> {
    const reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
    for (const event of this.#accepted) {
      const shown = (await reader.deliveriesOfEvent('org_a', event.id)).filter(({ replayedFrom }) => replayedFrom === null);
      expect(shown.map(({ id }) => id).sort()).toEqual(event.targets.map(({ messageId }) => messageId).sort());
      for (const { messageId } of event.targets.slice(0, 5)) {
        const status = statuses[this.#ended.get(messageId) ?? ''];
        const delivery = await reader.delivery('org_a', messageId);
        expect(delivery).toMatchObject({ id: messageId, eventId: event.id, status });
        expect(await reader.attempts('org_a', messageId)).toHaveLength(delivery?.attempts ?? -1);
      }
    }
    const listed: string[] = [];
    for (let cursor: string | undefined = undefined, more = true; more; ) {
      const page: { items: { id: string }[]; nextCursor: string | null } = await reader.deliveries(
        'org_a',
        {},
        { limit: 7, ...(cursor && { cursor }) },
      );
      listed.push(...page.items.map(({ id }) => id));
      more = page.nextCursor !== null;
      cursor = page.nextCursor ?? undefined;
    }
    expect(listed.sort()).toEqual([...this.#ended.keys()].sort());
  }

  async #accept(to: typeof first, many: boolean): Promise<void> {
    const nowMs = Date.now();
    const home = to[0]?.shard ?? 0;
    const targets = to.flatMap(({ id, shard: at }) =>
      Array.from({ length: many ? 105 : 1 }, (_, i) => ({
        messageId: newTimedId('msg_', at, nowMs),
        routeId: many ? `rte_${i}` : 'rte_a',
        destinationId: id,
        shard: at,
        maxAttempts: 3,
      })),
    );
    const event = newEvent({ id: newTimedId('evt_', home, nowMs), targets });
    this.#accepted.push(event);
    await acceptOnly(redis.client, prefix, event);
  }

  /** A message on its way to another shard, or not made yet, may be cancelled later. */
  async #cancel(at: number): Promise<void> {
    const all = [...this.#accepted.flatMap(({ targets }) => targets.slice(0, 5).map(({ messageId }) => messageId)), ...this.#replays];
    const id = all[at % Math.max(1, all.length)];
    if (id === undefined) return;
    const result = (await this.#canceller.cancel('org_a', [id], 'me')).get(id);
    const isHeld = this.#held.some(({ job }) => job.messageId === id);
    if (isHeld) expect(result).toBe('cancelling');
    if (isHeld) this.#noted.add(id);
    else if (result === 'cancelled') this.#ended.set(id, 'dead');
    else expect(['moving', 'not_found', 'ended']).toContain(result);
  }

  async #dequeue(at: number, count: number): Promise<Job[]> {
    for (;;) {
      const { jobs, unconfigured } = await this.#queue(at).dequeue('w1', count);
      for (const target of unconfigured) await this.#configure(at, target);
      for (const job of jobs) await this.#transform(at, job);
      if (jobs.length > 0 || unconfigured.length === 0) return jobs;
    }
  }

  /** A transform that never makes the same twice: what is kept at first is what every later attempt sends. */
  async #transform(at: number, job: Job): Promise<void> {
    const made = { contentType: 'text/plain', body: Buffer.from(`made ${++this.#made}`) };
    const output = await this.#queue(at).output(job, made);
    const before = this.#outputs.get(job.messageId);
    if (before !== undefined) expect([job.hasOutput, output?.body.toString()]).toEqual([true, before]);
    this.#outputs.set(job.messageId, output?.body.toString() ?? '');
  }

  async #configure(at: number, target: Target): Promise<void> {
    const position = spares.findIndex(({ id }) => id === target.destinationId);
    const failover = { destinations: spares.slice(position + 1), afterAttempts: position < 0 ? 1 : null };
    await this.#queue(at).configure(target, targetSetting({ failover, sharedLimiter: at === 1 ? sharedLimiter : null }));
  }

  async #settle(at: number, job: Job, how: Outcome, isOwn: boolean): Promise<void> {
    const { settled } = await this.#queue(at).settle('w1', [{ job, outcome: how, maxAttempts: null }]);
    expect(settled).toEqual([isOwn]);
    const isLast = job.target.destinationId === spares.at(-1)?.id;
    if (isOwn && this.#noted.has(job.messageId) && how.type !== 'delivered' && how.type !== 'unsent')
      return void this.#ended.set(job.messageId, 'dead');
    if (!isOwn || (how.type !== 'delivered' && how.type !== 'unsent' && !(how.type === 'dead' && isLast))) return;
    expect(this.#ended.has(job.messageId)).toBe(false);
    this.#ended.set(job.messageId, how.type);
  }

  async #carryAll(): Promise<void> {
    for (let round = 0; round < 10; round++) for (let i = 0; i < shards; i++) await this.#carrier.carry(i);
  }

  #queue(at: number): RedisDeliveryQueue {
    const queue = this.#queues[at];
    if (queue === undefined) throw new Error(`there is no shard ${at}`);
    return queue;
  }
}

const statuses: Record<string, string> = { delivered: 'delivered', dead: 'dlq', unsent: 'transform_failed', archived: 'failed' };

/** Pruned already. */
function missing(error: unknown): null {
  if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
  throw error;
}

/** Keys of events and messages. */
async function recordKeys(): Promise<string[]> {
  const keys = await redis.client.keys(`${prefix}*`);
  return keys.filter((key) => /\}:([meaxiwqy]:|out|fin|dead|refs|far|held|due|lease|probe)/.test(key)).sort();
}

test('messages that go to several shards and move between them are in exactly one place, end once, and leave nothing', async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      await redis.client.flushall();
      const run = new Run();
      await run.begin();
      for (const action of steps) {
        await run.take(action);
        await run.check();
      }
      await run.finish();
    }),
    25,
  );
});
