import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { makeDue } from '../../../test/support/make-due.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const hourMs = 3_600_000;
const organizations = ['org_a', 'org_b', 'org_c', 'org_d'];
/** Messages that one call moves as the organizations' shares, in order. */
const sharedPerCall = 90;

type Step =
  | { do: 'schedule'; org: string; count: number; byOlder: boolean }
  | { do: 'come'; org: string; count: number }
  | { do: 'cancel' | 'olderTakes' | 'olderPlansAnew'; pick: number }
  | { do: 'promote' };

const org = fc.constantFrom(...organizations);
const pick = fc.nat({ max: 1000 });
const steps = (hasOlder: boolean): fc.Arbitrary<Step[]> => {
  const ofThis: fc.Arbitrary<Step>[] = [
    fc.record({
      do: fc.constant('schedule' as const),
      org,
      count: fc.integer({ min: 1, max: 150 }),
      byOlder: hasOlder ? fc.boolean() : fc.constant(false),
    }),
    fc.record({ do: fc.constant('come' as const), org, count: fc.integer({ min: 1, max: 200 }) }),
    fc.record({ do: fc.constant('cancel' as const), pick }),
    fc.record({ do: fc.constant('promote' as const) }),
  ];
  const ofOlder = fc.record({ do: fc.constantFrom('olderTakes' as const, 'olderPlansAnew' as const), pick });
  return fc.array(fc.oneof(...ofThis, ...(hasOlder ? [ofOlder] : [])), { minLength: 1, maxLength: 20, size: 'max' });
};

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Runs steps on the real scripts and, beside them, on a model of what waits for its time. */
class Run {
  readonly #queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  readonly #acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  readonly #canceller = new RedisMessageCanceller({ redis: redis.client, prefix });
  /** Whether the time of a message has come, by organization, and by its member in `due`. */
  readonly #waiting = new Map(organizations.map((name) => [name, new Map<string, boolean>()] as const));
  readonly #numbers = new Map<string, string>();

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'schedule':
        return await this.#schedule(step.org, step.count, step.byOlder);
      case 'come': {
        const coming = [...this.#of(step.org)].filter(([, isDue]) => !isDue).slice(0, step.count);
        for (const [member] of coming) this.#of(step.org).set(member, true);
        return await makeDue(
          redis.client,
          base,
          'due',
          coming.map(([member]) => member),
        );
      }
      case 'cancel': {
        const [name, member] = this.#pick(step.pick);
        if (name === undefined || member === undefined) return;
        const id = `msg_00${member.split(' ')[1]}`;
        expect([...(await this.#canceller.cancel(name, [id], 'somebody')).values()]).toEqual(['cancelled']);
        this.#of(name).delete(member);
        return;
      }
      case 'olderTakes': {
        const [name, member] = this.#pick(step.pick);
        if (name === undefined || member === undefined) return;
        await redis.client.zrem(`${base}due`, member);
        this.#of(name).delete(member);
        return;
      }
      case 'olderPlansAnew': {
        const [name, member] = this.#pick(step.pick, (isDue) => isDue);
        if (name === undefined || member === undefined) return;
        await redis.client.zadd(`${base}due`, Date.now() + hourMs, member);
        this.#of(name).set(member, false);
        return;
      }
      case 'promote':
        await this.promote();
        return;
      default:
        step satisfies never;
    }
  }

  /** Nothing moves before its time, each organization with due messages gets its share, and the call is a full one while there is enough. Returns how many moved. */
  async promote(isShared = false): Promise<number> {
    const due = new Map([...this.#waiting].map(([name, of]) => [name, [...of.values()].filter(Boolean).length] as const));
    await this.#queue.promote();
    const left = new Set(await redis.client.zrange(`${base}due`, '0', '-1'));
    const sharers = [...due.values()].filter((count) => count > 0).length;
    let moved = 0;
    for (const [name, of] of this.#waiting) {
      const gone = [...of.keys()].filter((member) => !left.has(member));
      for (const member of gone) {
        expect(of.get(member)).toBe(true);
        of.delete(member);
      }
      moved += gone.length;
      if (isShared) expect(gone.length).toBeGreaterThanOrEqual(Math.min(due.get(name) ?? 0, Math.floor(sharedPerCall / sharers)));
    }
    expect(moved).toBe(
      Math.min(
        100,
        [...due.values()].reduce((sum, count) => sum + count, 0),
      ),
    );
    return moved;
  }

  /** The set and the indexes agree. */
  async check(): Promise<void> {
    const set = await redis.client.zrange(`${base}due`, '0', '-1', 'WITHSCORES');
    const scores = new Map<string, string>();
    for (let i = 0; i < set.length; i += 2) scores.set(set[i] ?? '', set[i + 1] ?? '');
    const indexed = new Map<string, string>();
    const withIndex: string[] = [];
    for (const name of organizations) {
      const index = await redis.client.zrange(`${base}due:${name}`, '0', '-1', 'WITHSCORES');
      if (index.length > 0) withIndex.push(name);
      for (let i = 0; i < index.length; i += 2) indexed.set(index[i] ?? '', index[i + 1] ?? '');
    }
    expect(indexed).toEqual(scores);
    expect((await redis.client.zrange(`${base}turns:due`, '0', '-1')).sort()).toEqual(withIndex);
  }

  /** Whatever happened, all that waits moves at its time, and nothing is left. */
  async finish(): Promise<void> {
    for (const [name, of] of this.#waiting) {
      await this.take({ do: 'come', org: name, count: of.size });
      expect([...of.values()].every(Boolean)).toBe(true);
    }
    // What the previous release has taken is in an index until its time.
    for (const name of organizations) await makeDue(redis.client, base, 'due', await redis.client.zrange(`${base}due:${name}`, '0', '-1'));
    for (let round = 0; round === 0 || (await this.#hasLeft()); round++) {
      expect(round).toBeLessThan(300);
      await this.promote();
    }
    expect([...this.#waiting.values()].map(({ size }) => size)).toEqual(organizations.map(() => 0));
    expect((await redis.client.keys(`${base}*`)).filter((key) => /:(due|turns)(:|$)/.test(key))).toEqual([]);
  }

  async #hasLeft(): Promise<boolean> {
    return [...this.#waiting.values()].some(({ size }) => size > 0) || (await redis.client.exists(`${base}turns:due`)) === 1;
  }

  async #schedule(name: string, count: number, byOlder: boolean): Promise<void> {
    const notBeforeMs = Date.now() + hourMs;
    const events = Array.from({ length: count }, () => newEvent({ org: name, destinations: [`dst_${name}`] }));
    await Promise.all(
      events.map((event) =>
        this.#acceptor.accept({ ...event, notBeforeMs, targets: event.targets.map((target) => ({ ...target, notBeforeMs })) }),
      ),
    );
    const number = this.#numbers.get(name) ?? (await redis.client.hget(`${base}tn:${name}`, `rte_a dst_${name}`)) ?? '';
    this.#numbers.set(name, number);
    const members = events.map(({ targets: [target] }) => `${number} ${target?.messageId.slice('msg_00'.length)}`);
    for (const member of members) this.#of(name).set(member, false);
    if (!byOlder) return;
    await redis.client.zrem(`${base}due:${name}`, ...members);
    // The previous release gives nobody a turn.
    if ((await redis.client.exists(`${base}due:${name}`)) === 0) await redis.client.zrem(`${base}turns:due`, name);
  }

  #of(name: string): Map<string, boolean> {
    const of = this.#waiting.get(name);
    if (of === undefined) throw new Error(`there is no organization ${name}`);
    return of;
  }

  #pick(number: number, is = (_isDue: boolean): boolean => true): [name?: string, member?: string] {
    const all = [...this.#waiting].flatMap(([name, of]) =>
      [...of].filter(([, isDue]) => is(isDue)).map(([member]) => [name, member] as [string, string]),
    );
    return all[number % Math.max(1, all.length)] ?? [];
  }
}

test('whatever is planned, cancelled and due, each organization gets its share of each call', async () => {
  await assertProperty(
    fc.asyncProperty(steps(false), async (taken) => {
      await redis.client.flushall();
      const run = new Run();
      // Nothing lacks in the index.
      await run.promote();
      for (const step of taken) {
        if (step.do === 'promote') await run.promote(true);
        else await run.take(step);
        await run.check();
      }
      await run.finish();
    }),
    60,
  );
});

test('whatever the release before does meanwhile, nothing moves before its time and nothing stays', async () => {
  await assertProperty(
    fc.asyncProperty(steps(true), async (taken) => {
      await redis.client.flushall();
      const run = new Run();
      // Nothing lacks in the index.
      await run.promote();
      for (const step of taken) await run.take(step);
      await run.finish();
    }),
    60,
  );
});
