import { describe, expect, test } from '@jest/globals';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { dead, delivered, settleAll } from '../../../test/support/queue-worker.ts';
import { namedArgument } from '../../redis/script.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

const batch = { layout: '{}', records: 3, bytes: 1_000_000, ageMs: 3_600_000 };
const forgetTargets = new ShardScript(new URL('../history/forget-targets.lua', import.meta.url));

const suite = failoverSuite();
const { prefix } = suite;

/** Three messages whose batch has failed for good, and whose failover destination dst_b has been deleted before they followed it. */
async function failedBatch(others: { id: string; shard: number }[]): Promise<string[]> {
  const ids = [await suite.queues.send('dst_w', 0), await suite.queues.send('dst_w', 0), await suite.queues.send('dst_w', 0)];
  const failover = { destinations: [{ id: 'dst_b', shard: 0 }, ...others], afterAttempts: null };
  const jobs = await suite.queues.take(0, { batch, failover });
  expect(jobs).toMatchObject([{ isBatch: true }]);
  await settleAll(suite.queues.of(0), 'w1', jobs, dead);
  expect(
    await forgetTargets.run(suite.redis.client, shardKeys(prefix, 0).declared, [
      namedArgument({ org: 'org_a', targets: [{ route: 'rte_a', destination: 'dst_b', isRouteGone: false, isDestinationGone: true }] }),
    ]),
  ).toBe(1);
  while ((await suite.queues.of(0).endBatches()).hasEndedBatches);
  return ids;
}

const destinationsOf = async (ids: readonly string[]) =>
  await Promise.all(ids.map(async (id) => (await suite.reader.delivery('org_a', id))?.destinationId));

describe('members of a batch whose failover destination was deleted meanwhile', () => {
  test.each([
    ['the same shard', 0],
    ['another shard', 1],
  ])('members of a batch whose failover destination was deleted meanwhile go to the next one, in %s', async (_, shard) => {
    const ids = await failedBatch([{ id: 'dst_c', shard }]);
    await suite.queues.carry(0);
    const jobs = await suite.queues.take(shard);
    expect(jobs.map(({ messageId }) => messageId).sort()).toEqual([...ids].sort());
    expect(jobs[0]).toMatchObject({ attempts: 1, failover: { originalDestinationId: 'dst_w', reason: 'max_retries_exceeded' } });
    expect(await destinationsOf(ids)).toEqual(['dst_c', 'dst_c', 'dst_c']);
  });

  test('members of a batch whose failover destination was deleted meanwhile are queued again, with the attempts of the batch, where there is no other', async () => {
    const ids = await failedBatch([]);
    expect(await destinationsOf(ids)).toEqual(['dst_w', 'dst_w', 'dst_w']);
    for (const id of ids) expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'retrying', attempts: 1 });
    const jobs = await suite.queues.take(0);
    expect(jobs).toMatchObject([{ isBatch: true }]);
    await settleAll(suite.queues.of(0), 'w1', jobs, delivered);
    while ((await suite.queues.of(0).endBatches()).hasEndedBatches);
    for (const id of ids) expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'delivered', attempts: 2 });
  });
});
