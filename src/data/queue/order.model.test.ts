import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { endCooldowns } from '../../../test/support/end-cooldowns.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { delivered, failure } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { checkShards } from '../check/shard-check.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Job, Outcome, TargetSetting } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const workers = ['w1', 'w2'];
const ordered = 'dst_ordered';
const beside = 'dst_beside';
const never = 3_600_000;
const slots = 64;
/** How many attempts at a time `dequeue.lua` allows a target at first, and how many while its attempts are fast; the last success is a proof for so long. */
const caps = { atFirst: 8, whileFast: slots / 2, fastForMs: 10_000 };
const outcomes = {
  delivered,
  retry: { type: 'retry', attempt: failure, delayMs: never },
  dead: { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' },
  unsent: { type: 'unsent', status: 'transform_failed', reason: 'x is not a function', tookMs: 5 },
  back: { type: 'back' },
} satisfies Record<Outcome['type'], Outcome>;

type Step =
  | { do: 'accept'; count: number }
  | { do: 'dequeue'; worker: string; count: number }
  | { do: 'settle'; pick: number; outcome: Outcome['type']; times: number }
  | { do: 'crash'; worker: string; isSilent: boolean }
  | { do: 'order'; inOrder: boolean }
  | { do: 'pause'; isPaused: boolean }
  | { do: 'throttle'; mode: TargetSetting['throttle']['mode'] }
  | { do: 'becomeDue' | 'promote' | 'endCooldown' };

const worker = fc.constantFrom(...workers);
const outcome = fc.constantFrom<Outcome['type'][]>('delivered', 'retry', 'retry', 'dead', 'unsent', 'back');
const common: fc.MaybeWeightedArbitrary<Step>[] = [
  { weight: 4, arbitrary: fc.record({ do: fc.constant('accept' as const), count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('dequeue' as const), worker, count: fc.integer({ min: 1, max: 8 }) }) },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      pick: fc.nat({ max: 1000 }),
      outcome,
      times: fc.integer({ min: 1, max: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), worker, isSilent: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pause' as const), isPaused: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('throttle' as const), mode: fc.constantFrom('off', 'rate', 'concurrency') }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('becomeDue' as const, 'promote' as const, 'promote' as const, 'endCooldown' as const) }),
  },
];
const step: fc.Arbitrary<Step> = fc.oneof(...common);
const stepWithSwitch: fc.Arbitrary<Step> = fc.oneof(...common, {
  weight: 2,
  arbitrary: fc.record({ do: fc.constant('order' as const), inOrder: fc.boolean() }),
});

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

async function redisNowMs(): Promise<number> {
  const [seconds, microseconds] = await redis.client.time();
  return 1000 * Number(seconds) + Number(microseconds) / 1000;
}

/** The scripts of one target whose messages go out in order, and of one beside it, with a model of the lanes of the first. */
class Run {
  readonly #queue = new RedisDeliveryQueue({ redis: redis.client, prefix, tallyMs: 0 });
  readonly #acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  readonly #setting: { inOrder: boolean; paused: boolean; mode: TargetSetting['throttle']['mode'] };
  #revision = 1;
  /** Keys of messages that were never leased, or came back to this lane, in its order. */
  #fresh: string[] = [];
  /** First messages: in the lane of retries, or in `due`. */
  readonly #retries = new Set<string>();
  readonly #due = new Set<string>();
  readonly #held = new Map<string, { worker: string; job: Job }>();
  readonly #ended = new Set<string>();
  readonly #besideWaiting = new Set<string>();
  /** In the order of acceptance, and of their first attempts. */
  readonly accepted: string[] = [];
  readonly begun: string[] = [];

  constructor(inOrder: boolean) {
    this.#setting = { inOrder, paused: false, mode: 'off' };
  }

  async take(action: Step): Promise<void> {
    switch (action.do) {
      case 'accept':
        return await this.#accept(action.count);
      case 'dequeue':
        return await this.#dequeue(action.worker, action.count);
      case 'settle': {
        const all = [...this.#held.values()];
        const chosen = all[action.pick % Math.max(1, all.length)];
        if (chosen !== undefined) await this.#settle(chosen.worker, chosen.job, action.outcome, action.times);
        return;
      }
      case 'crash':
        return await this.#crash(action.worker, action.isSilent);
      case 'order':
        return await this.#configure({ inOrder: action.inOrder });
      case 'pause':
        return await this.#configure({ paused: action.isPaused });
      case 'throttle':
        return await this.#configure({ mode: action.mode });
      case 'becomeDue': {
        for (const member of await redis.client.zrange(`${base}due`, '0', '-1')) await redis.client.zadd(`${base}due`, 'XX', 1, member);
        return;
      }
      case 'promote': {
        const due = await redis.client.zrangebyscore(`${base}due`, '-inf', 1);
        while ((await this.#queue.promote()).nextDueMs === 0);
        for (const key of due.map((member) => member.split(' ')[1] ?? '')) if (this.#due.delete(key)) this.#retries.add(key);
        return;
      }
      case 'endCooldown':
        return await endCooldowns(redis.client, prefix);
      default:
        action satisfies never;
    }
  }

  /** Nothing waits for what never comes. */
  async check(): Promise<void> {
    expect((await checkShards({ redis: redis.client, prefix })).findings).toEqual([]);
  }

  /** Whatever happened, everything ends once the target may be served. */
  async finish(): Promise<void> {
    await this.#configure({ paused: false, mode: 'off' });
    for (let round = 0; this.#ended.size < this.accepted.length || this.#besideWaiting.size > 0; round++) {
      expect(round).toBeLessThan(300);
      await redis.client.hdel(`${base}t:1`, hashFields.target.rampBeganMs);
      for (const action of ['becomeDue', 'endCooldown', 'promote'] as const) await this.take({ do: action });
      await this.#dequeue('w1', slots);
      for (const { worker: name, job } of [...this.#held.values()]) await this.#settle(name, job, 'delivered', 1);
    }
    await this.check();
    expect(await this.#placesTaken()).toEqual([]);
  }

  /** Leases, and places among slow attempts, probes and the concurrency of a limiter. */
  async #placesTaken(): Promise<string[]> {
    const keys = await redis.client.keys(`${base}*`);
    return keys.filter((key) => /^(held|slow|probe:|lease:)/.test(key.slice(base.length)));
  }

  async #accept(count: number): Promise<void> {
    // One call of the acceptor has all of them: the events of one tick share a script.
    const events = Array.from({ length: count }, () => newEvent({ destinations: [ordered, beside] }));
    await Promise.all(events.map((event) => this.#acceptor.accept(event)));
    for (const { targets } of events) {
      for (const { messageId, destinationId } of targets) {
        const key = messageId.slice(6);
        if (destinationId === beside) this.#besideWaiting.add(key);
        else {
          this.#fresh.push(key);
          this.accepted.push(key);
        }
      }
    }
  }

  async #dequeue(name: string, count: number): Promise<void> {
    const waitingBeside = this.#besideWaiting.size;
    const fastUntilMs = await this.#besideIsFastUntilMs();
    const first = await this.#queue.dequeue(name, count);
    for (const target of first.unconfigured) await this.#queue.configure(target, this.#settingOf(target.destinationId));
    const jobs = first.unconfigured.length === 0 ? first.jobs : [...first.jobs, ...(await this.#queue.dequeue(name, count)).jobs];
    const cap = (await redisNowMs()) < fastUntilMs ? caps.whileFast : caps.atFirst;
    for (const job of jobs) {
      if (job.target.destinationId === beside) {
        expect(this.#besideWaiting.delete(job.messageKey)).toBe(true);
        await this.#queue.settle(name, [{ job, outcome: delivered, maxAttempts: null }]);
      } else this.#begin(name, job);
    }
    // Nothing of the target beside was under way, and no other target holds it up.
    if (count === slots) expect(this.#besideWaiting.size).toBeLessThanOrEqual(Math.max(0, waitingBeside - cap));
  }

  async #besideIsFastUntilMs(): Promise<number> {
    return Number(await redis.client.hget(`${base}t:2`, hashFields.target.lastSuccessMs)) + caps.fastForMs;
  }

  #begin(name: string, job: Job): void {
    const key = job.messageKey;
    expect(this.#setting.paused).toBe(false);
    if (this.#setting.inOrder) {
      expect([...this.#held.values()].map((each) => each.job.messageKey)).toEqual([]);
      if (this.#retries.size > 0) expect([...this.#retries]).toContain(key);
      else {
        expect([...this.#due]).toEqual([]);
        expect(key).toBe(this.#fresh[0]);
      }
    }
    expect([...this.#retries, ...this.#fresh]).toContain(key);
    this.#retries.delete(key);
    this.#fresh = this.#fresh.filter((each) => each !== key);
    this.#held.set(job.handle, { worker: name, job });
    if (!this.begun.includes(key)) this.begun.push(key);
  }

  async #settle(name: string, job: Job, how: Outcome['type'], times: number): Promise<void> {
    for (let time = 1; time <= times; time++) {
      const { settled } = await this.#queue.settle(name, [{ job, outcome: outcomes[how], maxAttempts: null }]);
      expect(settled).toEqual([time === 1]);
    }
    this.#held.delete(job.handle);
    if (how === 'retry') this.#due.add(job.messageKey);
    else if (how === 'back') this.#putBack(job);
    else this.#ended.add(job.messageKey);
  }

  #putBack({ handle, messageKey }: Job): void {
    if (this.#setting.inOrder || /^\d+r/.test(handle)) this.#retries.add(messageKey);
    else this.#fresh.push(messageKey);
  }

  /** `isSilent`: its heartbeat continues, but it forgets its leases until they expire. */
  async #crash(name: string, isSilent: boolean): Promise<void> {
    const lost = [...this.#held.values()].filter((each) => each.worker === name).map(({ job }) => job);
    if (isSilent) {
      for (const { handle } of lost) await redis.client.zadd(`${base}held`, 'XX', 1, `${handle}/${name}`);
    }
    while ((await this.#queue.reclaim(isSilent ? [] : [name])).hasMore);
    // In their current order in their lanes: several are lost together only without order.
    for (const job of await this.#inOrderOfLanes(lost)) {
      this.#held.delete(job.handle);
      this.#putBack(job);
    }
    for (const job of lost) {
      const { settled } = await this.#queue.settle(name, [{ job, outcome: delivered, maxAttempts: null }]);
      expect(settled).toEqual([false]);
    }
    await this.#queue.refreshShard(name, slots);
  }

  async #inOrderOfLanes(jobs: readonly Job[]): Promise<Job[]> {
    const lane = (await redis.client.xrange(`${base}w:1`, '-', '+')).map(([, [, key = '']]) => key);
    return [...jobs].sort((one, other) => lane.indexOf(one.messageKey) - lane.indexOf(other.messageKey));
  }

  async #configure(change: Partial<{ inOrder: boolean; paused: boolean; mode: TargetSetting['throttle']['mode'] }>): Promise<void> {
    Object.assign(this.#setting, change);
    this.#revision++;
    const target = (await this.#queue.targets(1)).targets.find(({ destinationId }) => destinationId === ordered);
    if (target !== undefined) await this.#queue.configure(target, this.#settingOf(ordered));
  }

  #settingOf(destinationId: string): TargetSetting {
    if (destinationId === beside) return targetSetting();
    const { inOrder, paused, mode } = this.#setting;
    return targetSetting({
      revision: String(this.#revision),
      inOrder,
      paused,
      circuit: { failureThreshold: 3, cooldownSeconds: 3600, probeSuccessThreshold: 2 },
      throttle: { mode, rateLimit: 1, rateUnit: 'second', maxConcurrency: 1, queueLimit: null },
    });
  }
}

async function runOf(inOrder: boolean, steps: readonly Step[]): Promise<Run> {
  await redis.client.flushall();
  const run = new Run(inOrder);
  const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  for (const name of workers) await queue.refreshShard(name, slots);
  for (const action of steps) {
    await run.take(action);
    await run.check();
  }
  await run.finish();
  return run;
}

test('whatever happens in whatever order, the messages of a target with order begin in the order of their acceptance, one at a time', async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }), async (steps) => {
      const { accepted, begun } = await runOf(true, steps);
      expect(begun).toEqual(accepted);
    }),
    60,
  );
});

test('whenever order is switched on, it holds from then on for what has not begun, after what was under way or waits for a retry', async () => {
  await assertProperty(
    fc.asyncProperty(fc.boolean(), fc.array(stepWithSwitch, { minLength: 1, maxLength: 40, size: 'max' }), async (inOrder, steps) => {
      await runOf(inOrder, steps);
    }),
    60,
  );
});
