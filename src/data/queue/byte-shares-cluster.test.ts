import { expect, test } from '@jest/globals';
import { clusterSuite } from '../../../test/support/cluster-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { newTimedId } from '../../core/ids.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';

const prefix = 'test:';
const shards = 6;
const suite = clusterSuite();

test('events for the shards of other servers are stored in time while a server of the Cluster does not answer', async () => {
  const { cluster, redis } = suite;
  const [first] = await cluster.masters();
  const isOn = async (shard: number): Promise<boolean> =>
    (await first?.client.exists(shardKeys(prefix, shard).declared[0]).then(
      () => true,
      () => false,
    )) ?? false;
  const places = await Promise.all(Array.from({ length: shards }, (_, shard) => isOn(shard)));
  const healthy = places.flatMap((isSilent, shard) => (isSilent ? [] : [shard]));
  expect(places).toContain(true);
  expect(healthy).not.toHaveLength(0);
  // Little memory: each event triggers a read of the accounts.
  const acceptor = new RedisMessageAcceptor({ redis, prefix, clock: systemClock, shards: () => shards, memoryLimitBytes: 1_000_000 });
  const accept = async (shard: number): Promise<void> => {
    await acceptor.accept({ ...newEvent({ id: newTimedId('evt_', shard, Date.now()) }), payload: Buffer.alloc(6000, 'x') });
  };
  const wake = first?.freeze();
  try {
    const beganAtMs = performance.now();
    for (let i = 0; i < 60; i++) await accept(healthy[i % healthy.length] ?? 0);
    // To wait for the silent server each time would take 60 × 300 ms.
    expect(performance.now() - beganAtMs).toBeLessThan(12_000);
  } finally {
    wake?.();
  }
});
