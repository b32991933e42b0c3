// What a message costs in Redis, all indexes included:
//   node hack/bench/memory.ts [messages] [targets]
// Payload 1 KiB. Queued in a backlog; finished; and one message on each of many targets.

import { checkShards } from '../../src/data/check/shard-check.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { startRedis } from '../../test/support/redis.ts';
import { targetSetting } from '../../test/support/target-setting.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { report } from './lib/report.ts';

const [messages = 20_000, targets = 100_000] = process.argv.slice(2).map(Number);
const prefix = 'posthorn:';
const payload = Buffer.alloc(1024, 'x');
const atATime = 64;
const attempt = { startedAtMs: Date.now(), durationMs: 12, responseStatus: 200, responseBody: 'ok', errorType: null, errorMessage: null };

const redis = await startRedis(['--save', '', '--appendonly', 'no']);
const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: systemClock });
const used = async (): Promise<number> => Number(/used_memory_dataset:(\d+)/.exec(await redis.client.info('memory'))?.[1]);

async function accept(count: number, destinationOf: (i: number) => string): Promise<void> {
  for (let done = 0; done < count; done += atATime) {
    const size = Math.min(atATime, count - done);
    await Promise.all(
      Array.from({ length: size }, (_, i) => acceptor.accept(newEvent({ payload, destinations: [destinationOf(done + i)] }))),
    );
  }
}

/** Delivers everything; answers how many. */
async function deliver(): Promise<number> {
  let delivered = 0;
  for (;;) {
    const { jobs, unconfigured } = await queue.dequeue('w1', atATime);
    for (const target of unconfigured) await queue.configure(target, targetSetting());
    if (jobs.length === 0 && unconfigured.length === 0) return delivered;
    await queue.settle(
      'w1',
      jobs.map((job) => ({ job, outcome: { type: 'delivered', attempt }, maxAttempts: null })),
    );
    delivered += jobs.length;
  }
}

try {
  await queue.tend('w1', 1000);
  const empty = await used();
  await accept(messages, () => 'dst_a');
  const queued = ((await used()) - empty) / messages;
  const delivered = await deliver();
  const finished = ((await used()) - empty) / messages;
  const { findings, unfinished } = await checkShards({ redis: redis.client, prefix });
  await redis.client.flushall();
  await queue.tend('w1', 1000);
  const emptyAgain = await used();
  await accept(targets, (i) => `dst_${String(i).padStart(26, '0')}`);
  const each = ((await used()) - emptyAgain) / targets;
  report('memory', `payload 1 KiB, ${messages} messages of one target; ${targets} targets`, [
    ['bytes per message queued in a backlog', queued.toFixed(0)],
    ['bytes per finished message', finished.toFixed(0)],
    ['bytes per target with one message', each.toFixed(0)],
    redisCeilingRow(await bareRedisPipeline()),
    ['delivered, unfinished, findings of the check', `${delivered}, ${unfinished}, ${findings.length}`],
  ]);
} finally {
  await redis.stop();
}
