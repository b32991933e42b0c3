import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { eventually } from '../../../../test/support/eventually.ts';
import { lenientClock } from '../../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../../test/support/new-event.ts';
import { startS3Server } from '../../../../test/support/object-stores.ts';
import type { Program } from '../../../../test/support/program.ts';
import { organizationRecord, routeRecord, sourceRecord, warehouseRecord } from '../../../../test/support/records.ts';
import { startRedis } from '../../../../test/support/redis.ts';
import { slowAnswers } from '../../../../test/support/slow-answers.ts';
import { sealedBucket, startWarehouseWorker } from '../../../../test/support/warehouse-worker.ts';
import { checkShards } from '../../../data/check/shard-check.ts';
import { RedisMessageAcceptor } from '../../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../../data/queue/redis-delivery-queue.ts';
import { RedisRegistryPublisher } from '../../../data/registry/registry-publisher.ts';

const prefix = 'posthorn:';
const kills = 4;
const answerDelayMs = 400;

test('workers that are killed while they upload lose no record and write none twice, and no credential is in Redis or a log', async () => {
  const redis = await startRedis();
  const store = await startS3Server();
  const proxy = await slowAnswers(store.url, answerDelayMs);
  const programs: Program[] = [];
  const startWorker = async (): Promise<Program> => {
    const program = await startWarehouseWorker(redis.url, proxy.url, {
      POSTHORN_WAREHOUSE_BATCH_SECONDS: '1',
      POSTHORN_LOG_LEVEL: 'debug',
    });
    programs.push(program);
    return program;
  };
  try {
    const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    const publisher = new RedisRegistryPublisher(redis.client, prefix);
    const epoch = await publisher.mintEpoch();
    const s3 = sealedBucket(store.bucket, 'dst_a');
    await publisher.publish(epoch, 'organization', organizationRecord());
    await publisher.publish(epoch, 'source', sourceRecord());
    await publisher.publish(epoch, 'route', routeRecord());
    await publisher.publish(epoch, 'destination', warehouseRecord({ type: 's3', s3 }));
    const workers = [await startWorker(), await startWorker()];
    const sent: string[] = [];
    for (let kill = 0; kill < kills; kill++) {
      const before = proxy.uploads();
      // A machine on which two uploads take longer gets hardly more to do for it.
      for (let times = 0; proxy.uploads() < before + 2; times++) {
        const events = Array.from({ length: times < 10 ? 100 : 1 }, () => newEvent());
        await Promise.all(events.map((event) => acceptor.accept(event)));
        sent.push(...events.map(({ id }) => id));
        await pause(50);
      }
      const [victim] = workers.splice(0, 1);
      victim?.signal('SIGKILL');
      workers.push(await startWorker());
    }
    await eventually(async () => expect((await queue.figures()).unfinished).toBe(0), 120_000);
    const lines = [...(await store.objects()).values()].flatMap((content) => content.toString().trim().split('\n'));
    const stored = lines.map((line) => String(JSON.parse(line).id));
    expect(stored.length).toBe(sent.length);
    expect(new Set(stored)).toEqual(new Set(sent));
    expect((await checkShards({ redis: redis.client, prefix })).findings).toEqual([]);
    // The workers still run: a key may be gone when it is read.
    for (const name of await redis.client.keys('*')) expect((await redis.client.dumpBuffer(name))?.includes('canary') ?? false).toBe(false);
    for (const program of programs) expect(program.output()).not.toContain('canary');
  } finally {
    for (const program of programs) await program.stop();
    proxy.stop();
    await store.stop();
    await redis.stop();
  }
}, 300_000);
