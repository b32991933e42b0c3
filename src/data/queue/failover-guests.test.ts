import { describe, expect, test } from '@jest/globals';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { dead, delivered, failure, settleAll } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Job, Outcome, TargetSetting } from './delivery-queue.ts';

const later: Outcome = { type: 'retry', attempt: failure, delayMs: 3_600_000 };
const batch = { layout: '{}', records: 3, bytes: 1_000_000, ageMs: 3_600_000 };

const suite = failoverSuite();

const kinds: [kind: string, setting: Partial<TargetSetting>][] = [
  ['an http destination', {}],
  ['a warehouse', { batch }],
];
const places: [place: string, shard: number][] = [
  ['the same shard', 0],
  ['another shard', 1],
];

/** Where the messages are when the route stops naming the destination; returns those that the worker settles thereafter. */
const states: Record<string, (shard: number, setting: Partial<TargetSetting>) => Promise<readonly Job[]>> = {
  'wait for their turn': async () => [],
  'wait behind an open circuit': async (shard, setting) => {
    await suite.queues.setCircuit(shard, 'dst_w', 'open');
    await suite.queues.take(shard, setting);
    return [];
  },
  'wait for a token of the rate': async (shard, setting) => {
    const rate = { mode: 'rate', rateLimit: 1, rateUnit: 'hour', maxConcurrency: null, queueLimit: null } as const;
    await suite.queues.send('dst_w', shard);
    await suite.queues.send('dst_w', shard);
    await suite.queues.put(shard, 'dst_w', { ...setting, throttle: rate });
    await settleAll(suite.queues.of(shard), 'w1', await suite.queues.take(shard), later);
    await suite.queues.take(shard);
    return [];
  },
  'wait for their next attempt': async (shard, setting) => {
    await settleAll(suite.queues.of(shard), 'w1', await suite.queues.take(shard, setting), later);
    return [];
  },
  'are under way': async (shard, setting) => await suite.queues.take(shard, setting),
};

describe.each(kinds)('messages that failed over to %s', (kind, setting) => {
  describe.each(places)('in %s', (_, shard) => {
    /** Three messages, which are one batch in a warehouse: of the destination itself is one of them, or none; the others came there from dst_a. */
    async function prepare(own: boolean): Promise<{ guests: string[]; own: string | null }> {
      const failover = { destinations: [{ id: 'dst_w', shard }], afterAttempts: null };
      const guests = [await suite.queues.send('dst_a', 0), await suite.queues.send('dst_a', 0)];
      if (!own) guests.push(await suite.queues.send('dst_a', 0));
      await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, { failover }), dead);
      await suite.queues.carry(0);
      const id = own ? await suite.queues.send('dst_w', shard) : null;
      await suite.queues.put(shard, 'dst_w', setting);
      return { guests, own: id };
    }

    describe.each(Object.entries(states))('and %s when it leaves their route', (name, stand) => {
      test.each([
        ['go back to their first destination when there is no other', [], 'dst_a'],
        ['go to the next failover destination', [{ id: 'dst_c', shard: 1 - shard }], 'dst_c'],
      ])('%s, and what was sent to it stays', async (_, destinations, expected) => {
        const { guests, own } = await prepare(true);
        const jobs = await stand(shard, setting);
        await suite.queues.put(shard, 'dst_w', { ...setting, movesOn: 'guests', failover: { destinations, afterAttempts: null } });
        await settleAll(suite.queues.of(shard), 'w1', jobs, later);
        await suite.queues.looks();
        for (const id of guests)
          expect([kind, name, (await suite.reader.delivery('org_a', id))?.destinationId]).toEqual([kind, name, expected]);
        // An open circuit fails everything over.
        const stays = name === 'wait behind an open circuit' ? expected.replace('dst_a', 'dst_w') : 'dst_w';
        expect(await suite.reader.delivery('org_a', own ?? '')).toMatchObject({ destinationId: stays, completedAtMs: null });
      });
    });

    test('are still delivered there when that succeeds meanwhile', async () => {
      const { guests } = await prepare(false);
      const jobs = await suite.queues.take(shard, setting);
      expect(jobs.length).toBeGreaterThan(0);
      await suite.queues.put(shard, 'dst_w', { ...setting, movesOn: 'guests' });
      await settleAll(suite.queues.of(shard), 'w1', jobs, delivered);
      await suite.queues.looks();
      for (const id of guests)
        expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'delivered', destinationId: 'dst_w' });
    });
  });
});

describe('a retry of a destination that its route names no more', () => {
  const due = async (shard: number): Promise<string[]> =>
    (await suite.redis.client.zrange(`${suite.queues.base(shard)}due`, '0', '-1')).map((member) => member.split(' ')[1] ?? '');
  const keyOf = (id: string): string => id.slice('msg_00'.length);

  test.each<[movesOn: TargetSetting['movesOn'], ends: ('guest' | 'own')[]]>([
    ['all', ['guest', 'own']],
    ['guests', ['guest']],
    ['nobody', []],
  ])('a retry of a destination that its route names no more waits no longer where %s move on', async (movesOn, ends) => {
    const failover = { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: null };
    const ids = { guest: await suite.queues.send('dst_a', 0), own: '', other: '' };
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, { failover }), dead);
    ids.own = await suite.queues.send('dst_b', 0);
    ids.other = await suite.queues.send('dst_c', 0);
    for (let jobs = await suite.queues.take(0); jobs.length > 0; jobs = await suite.queues.take(0))
      await settleAll(suite.queues.of(0), 'w1', jobs, later);
    expect((await due(0)).sort()).toEqual(Object.values(ids).map(keyOf).sort());
    const target = (await suite.queues.of(0).targets(1)).targets.filter(({ destinationId }) => destinationId !== 'dst_a');
    for (const each of target.filter(({ destinationId }) => destinationId === 'dst_b'))
      await suite.queues.of(0).configure(each, targetSetting({ movesOn }));
    for (let next: string | null = '0'; next !== null; ) ({ next } = await suite.queues.of(0).endWaits(target, next));
    const left = (['guest', 'own', 'other'] as const).filter((which) => !ends.some((each) => each === which));
    expect((await due(0)).sort()).toEqual(left.map((which) => keyOf(ids[which])).sort());
    const counts = await suite.redis.client.hgetall(`${suite.queues.base(0)}retries`);
    expect(Object.values(counts).reduce((sum, each) => sum + Number(each), 0)).toBe(left.length);
    expect(await suite.redis.client.hexists(`${suite.queues.base(0)}m:${keyOf(ids.other)}`, hashFields.message.dueMs)).toBe(1);
  });
});
