import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { startS3Server } from '../../../test/support/object-stores.ts';
import type { Program } from '../../../test/support/program.ts';
import { organizationRecord, warehouseRecord } from '../../../test/support/records.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { slowAnswers } from '../../../test/support/slow-answers.ts';
import { sealedBucket, startWarehouseWorker } from '../../../test/support/warehouse-worker.ts';
import { checkShards } from '../../data/check/shard-check.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { resultId } from '../../data/shard/packed-results.ts';
import { shardBase } from '../../data/shard/shard-keys.ts';

const prefix = 'posthorn:';
const base = shardBase(prefix, 0);
const kills = 3;
const answerDelayMs = 400;

test('workers that are killed while they write an archive lose no message and write none twice, although pruning is due', async () => {
  const redis = await startRedis();
  const store = await startS3Server();
  const proxy = await slowAnswers(store.url, answerDelayMs);
  const programs: Program[] = [];
  const startWorker = async (): Promise<Program> => {
    const program = await startWarehouseWorker(redis.url, proxy.url, { POSTHORN_ARCHIVE_BATCH_SECONDS: '1' });
    programs.push(program);
    return program;
  };
  try {
    const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    const publisher = new RedisRegistryPublisher(redis.client, prefix);
    const epoch = await publisher.mintEpoch();
    const s3 = sealedBucket(store.bucket, 'dst_w');
    await publisher.publish(epoch, 'organization', organizationRecord({ archive: { destinationId: 'dst_w' } }));
    await publisher.publish(epoch, 'destination', warehouseRecord({ type: 's3', s3 }, {}, { id: 'dst_w' }));
    await publisher.markComplete();
    const prune = async (): Promise<void> => {
      let hasMore = true;
      while (hasMore) {
        const pruned = await queue.prune({ finishedMs: -1000, deadLettersMs: -1000 });
        expect(pruned.lost).toBe(0);
        hasMore = pruned.hasMore;
      }
    };
    /** Leases of a dead worker would end after 150 s. */
    const holdEnds = () => redis.client.zadd(`${base}az`, 'XX', 0, 'org_a');
    let worker = await startWorker();
    await eventually(async () => expect(await redis.client.exists(`${base}arc`)).toBe(1), 60_000);
    const sent: string[] = [];
    const send = async (): Promise<void> => {
      const events = Array.from({ length: 50 }, () => newEvent({ destinations: [], filteredRoutes: ['rte_a'] }));
      await Promise.all(events.map((event) => acceptor.accept(event)));
      sent.push(...events.map(({ id }) => resultId(id, 0)));
    };
    for (let kill = 0; kill < kills; kill++) {
      const before = proxy.uploads();
      while (proxy.uploads() === before) {
        await send();
        await prune();
        await pause(100);
      }
      worker.signal('SIGKILL');
      await worker.ended;
      await send();
      await prune();
      await holdEnds();
      worker = await startWorker();
    }
    await eventually(async () => {
      await prune();
      expect(await redis.client.exists(`${base}fin`, `${base}fin:org_a`)).toBe(0);
    }, 120_000);
    const lines = [...(await store.objects()).values()].flatMap((content) => content.toString().trim().split('\n'));
    const stored = lines.map((line) => String(JSON.parse(line).id));
    expect(stored.length).toBe(sent.length);
    expect(new Set(stored)).toEqual(new Set(sent));
    expect((await checkShards({ redis: redis.client, prefix })).findings).toEqual([]);
  } finally {
    for (const program of programs) await program.stop();
    proxy.stop();
    await store.stop();
    await redis.stop();
  }
}, 300_000);
