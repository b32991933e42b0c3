import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { alertOrganization } from '../../core/alert.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import type { Outcome, Retention } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { recordKey } from '../shard/record-key.ts';
import { shardBase } from '../shard/shard-keys.ts';
import { MessageArchive } from './message-archive.ts';
import { RedisMessageReplayer } from './message-replayer.ts';

const prefix = 'test:';
const base = shardBase(prefix, 0);
const org = 'org_a';
const owners = [org, webhookOrganization(org), alertOrganization(org), 'org_b'];
const archived = new Set([org, webhookOrganization(org)]);
const outcomes = {
  delivered,
  dead,
  filtered: { type: 'unsent', status: 'filtered', reason: null, tookMs: 1 },
} satisfies Record<string, Outcome>;
const everything = { finishedMs: -1000, deadLettersMs: -1000 };

type Step =
  | { do: 'finish'; owner: number; outcome: keyof typeof outcomes }
  | { do: 'gather' | 'toggle' | 'archiveDeadLetter' | 'timePasses' }
  | { do: 'write'; ends: 'done' | 'killed' | 'failed' }
  | { do: 'prune'; unwritten: NonNullable<Retention['unwritten']> };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      owner: fc.integer({ min: 0, max: owners.length - 1 }),
      outcome: fc.constantFrom(...(Object.keys(outcomes) as (keyof typeof outcomes)[])),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('gather' as const, 'gather' as const, 'timePasses' as const, 'archiveDeadLetter' as const, 'toggle' as const),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      ends: fc.constantFrom('done' as const, 'done' as const, 'killed' as const, 'failed' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('prune' as const),
      unwritten: fc.constantFrom('stays' as const, 'stays' as const, 'goes where the archive fails' as const, 'goes' as const),
    }),
  },
);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** An archive, the content of its bucket, and what Redis still has. */
class World {
  readonly #queue: RedisDeliveryQueue;
  readonly #acceptor: RedisMessageAcceptor;
  readonly #replayer: RedisMessageReplayer;
  readonly #archive: MessageArchive;
  /** Messages of the organization, whose archive it is. */
  readonly #messages = new Set<string>();
  readonly #deadLetters: { owner: string; id: string }[] = [];
  readonly #objects = new Map<string, ReadonlySet<string>>();
  readonly #acknowledged = new Set<string>();
  /** Removed without the archive, and reported; or while there was none. */
  readonly #excused = new Set<string>();
  #isOn = true;
  #hasLost = false;

  constructor() {
    const shared = { redis: redis.client, prefix, clock: systemClock };
    this.#queue = new RedisDeliveryQueue(shared);
    this.#acceptor = new RedisMessageAcceptor({ ...shared, clock: lenientClock });
    this.#replayer = new RedisMessageReplayer(shared);
    this.#archive = new MessageArchive({ ...shared, limits: { records: 3, bytes: 1_000_000, ageMs: 0 } });
  }

  async begin(): Promise<void> {
    await this.#queue.refreshShard('w1', 1000);
    await this.#archive.set(org, 'dst_w');
    // One that is never written, and holds up no other.
    await this.#archive.set('org_b', 'dst_w');
  }

  async take(action: Step): Promise<void> {
    switch (action.do) {
      case 'finish':
        return await this.#finish(owners[action.owner] ?? org, action.outcome);
      case 'gather':
        await this.#archive.gather();
        return;
      case 'toggle':
        this.#isOn = !this.#isOn;
        await (this.#isOn ? this.#archive.set(org, 'dst_w') : this.#archive.end(org));
        return;
      case 'archiveDeadLetter': {
        const letter = this.#deadLetters.shift();
        if (letter !== undefined) await this.#replayer.archive(letter.owner, letter.id).catch(() => null);
        return;
      }
      case 'timePasses':
        return await this.#timePasses();
      case 'write':
        await this.#write(action.ends);
        return;
      case 'prune':
        return await this.#prune(action.unwritten);
    }
  }

  /** Everything that was not lost is written once, and then goes. */
  async end(): Promise<void> {
    if (!this.#isOn) await this.take({ do: 'toggle' });
    for (let round = 0; round < 4; round++) {
      await this.#prune('stays');
      while (await this.#archive.gather());
      await this.#timePasses();
      while (await this.#write('done'));
    }
    await this.#archive.end('org_b');
    await this.#prune('stays');
    const written = [...this.#objects.values()].flatMap((ids) => [...ids]);
    expect(new Set(written).size).toBe(written.length);
    for (const id of this.#messages) expect(written.includes(id) || this.#excused.has(id)).toBe(true);
    expect(await redis.client.keys(`${base}m:*`)).toEqual([]);
    expect(await redis.client.keys(`${base}fin*`)).toEqual([]);
    expect((await checkShards({ redis: redis.client, prefix })).findings).toEqual([]);
  }

  async #finish(owner: string, outcome: keyof typeof outcomes): Promise<void> {
    const event = newEvent();
    await this.#acceptor.accept({ ...event, org: owner });
    await settleAll(this.#queue, 'w1', await takeFrom(this.#queue, 'w1', 1), outcomes[outcome]);
    const id = event.targets[0]?.messageId ?? '';
    if (archived.has(owner)) this.#messages.add(id);
    if (outcome === 'dead') this.#deadLetters.push({ owner, id });
  }

  /** Until work that is leased, or that waits after a failure, may be taken again. */
  async #timePasses(): Promise<void> {
    await redis.client.hdel(`${base}ar:${org}`, hashFields.archive.leaseEndMs);
    await redis.client.zadd(`${base}az`, 'XX', 0, org);
  }

  async #write(ends: 'done' | 'killed' | 'failed'): Promise<boolean> {
    const taken = await this.#archive.take(['org_b']);
    if (taken === null) return false;
    expect(await this.#archive.take(['org_b'])).toBeNull();
    const batch = await this.#archive.batch(org, 'w1', { layout: '{}', destinationId: 'dst_w' });
    if (batch === null) return false;
    const ids = new Set<string>();
    for await (const { view } of this.#archive.messages(org, batch)) ids.add(view.id);
    const before = this.#objects.get(batch.id);
    if (before !== undefined && !this.#hasLost) expect(ids).toEqual(before);
    this.#objects.set(batch.id, new Set([...(before ?? []), ...ids]));
    if (ends === 'failed') await this.#archive.failed(org, 'no', { firstMs: 1000, maxMs: 1000 });
    if (ends !== 'done') return true;
    expect(await this.#archive.done(org, batch.id, ids.size)).toBe(true);
    expect(await this.#archive.done(org, batch.id, ids.size)).toBe(false);
    for (const id of ids) this.#acknowledged.add(id);
    return true;
  }

  async #prune(unwritten: NonNullable<Retention['unwritten']>): Promise<void> {
    const before = await this.#inRedis();
    const others = await this.#lostOfOther();
    let lost = 0;
    for (let hasMore = true; hasMore; ) {
      const pruned = await this.#queue.prune({ ...everything, unwritten });
      lost += pruned.lost;
      hasMore = pruned.hasMore;
    }
    const after = await this.#inRedis();
    const ofOther = (await this.#lostOfOther()) - others;
    const unacknowledged = [...before].filter((id) => !after.has(id) && !this.#acknowledged.has(id));
    for (const id of unacknowledged) this.#excused.add(id);
    if (this.#isOn) expect(lost - ofOther).toBe(unacknowledged.length);
    if (lost > 0) this.#hasLost = true;
    if (unwritten === 'stays') expect(lost).toBe(0);
  }

  async #lostOfOther(): Promise<number> {
    return Number((await redis.client.hget(`${base}ar:org_b`, hashFields.archive.lost)) ?? '0');
  }

  async #inRedis(): Promise<Set<string>> {
    const found = new Set<string>();
    for (const id of this.#messages) if ((await redis.client.exists(`${base}m:${recordKey(id, 0)}`)) === 1) found.add(id);
    return found;
  }
}

test('what an organization with an archive has finished is written once before it goes, or counted as lost, whatever happens', async () => {
  await assertProperty(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      await redis.client.flushall();
      const world = new World();
      await world.begin();
      for (const action of steps) await world.take(action);
      await world.end();
    }),
    40,
  );
});
