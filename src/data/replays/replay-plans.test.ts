import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered } from '../../../test/support/queue-worker.ts';
import { replayRecord, startReplayWorld } from '../../../test/support/replays.ts';
import { newTimedId } from '../../core/ids.ts';

/** Findings of a plan, and the following replay. */
let world: Awaited<ReturnType<typeof startReplayWorld>>;
beforeAll(async () => {
  world = await startReplayWorld('test:');
});
afterAll(() => world.redis.stop());
beforeEach(() => world.empty());

test('a replay of two destinations and two routes replays what its dry run counts, each original once', async () => {
  const targets = [
    { shard: 0, destinationId: 'dst_a', routeId: 'rte_a' },
    { shard: 1, destinationId: 'dst_b', routeId: 'rte_b' },
    { shard: 0, destinationId: 'dst_c', routeId: 'rte_a' },
    { shard: 1, destinationId: 'dst_a', routeId: 'rte_c' },
    { shard: 0, destinationId: 'dst_b', routeId: 'rte_a' },
  ].map((target) => ({ ...target, messageId: newTimedId('msg_', target.shard, Date.now()), maxAttempts: 3 }));
  for (const target of targets)
    await world.acceptor.accept(newEvent({ id: newTimedId('evt_', target.shard, Date.now()), targets: [target] }));
  await world.endAll(dead);
  const filter = { statuses: ['dlq'], destinationId: ['dst_a', 'dst_b'], routeId: ['rte_a', 'rte_b'] };
  const wanted = targets.filter(({ destinationId, routeId }) => destinationId !== 'dst_c' && routeId !== 'rte_c');
  const counted = replayRecord({ filter, isDryRun: true, identity: 'counted' });
  await world.toTheEnd(counted);
  expect(await world.runOf(counted)).toMatchObject({
    phase: 'Succeeded',
    plan: { candidates: 3, isEstimate: false, targets: 3 },
    queued: 0,
  });
  const record = replayRecord({ filter });
  await world.toTheEnd(record, delivered, { most: 2 });
  expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', plan: { candidates: 3 }, queued: 3, delivered: 3, skipped: {} });
  expect((await world.replays()).map(({ replayedFrom }) => replayedFrom).sort()).toEqual(wanted.map(({ messageId }) => messageId).sort());
});

test('a plan that reaches 100,000 candidates before its end is an estimate, and all that there are is replayed', async () => {
  const originals = await world.endedMessages(Array.from({ length: 120 }, (_, i) => i % 2));
  const record = replayRecord();
  const { runs, steps } = world.parts();
  // Its first step makes it run; it continues with a plan that has found nearly as many as are counted.
  await steps.advance(record, { most: 100, monthlyMessages: null });
  const known = await runs.read(record.org, record.identity);
  if (known === null) throw new Error('the replay has not begun');
  const state = { ...known.state, plan: { ...known.state.plan, candidates: 99_950 } };
  expect(await runs.save(record.org, record.identity, { version: known.version, state })).toBe('saved');
  await world.toTheEnd(record);
  expect(await world.runOf(record)).toMatchObject({
    phase: 'Succeeded',
    plan: { candidates: 100_050, isEstimate: true },
    queued: 120,
    delivered: 120,
  });
  expect((await world.replays()).map(({ replayedFrom }) => replayedFrom).sort()).toEqual(originals.sort());
});
