// What a message costs in Redis, all indexes included:
//   node hack/bench/memory.ts [messages] [targets]
// Payload 1 KiB. Queued in a backlog; finished; one message on each of many targets; and a tenth as many dead letters of 10 attempts.

import { checkShards } from '../../src/data/check/shard-check.ts';
import type { Outcome } from '../../src/data/queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { startRedis } from '../../test/support/redis.ts';
import { targetSetting } from '../../test/support/target-setting.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { report } from './lib/report.ts';

const [messages = 20_000, targets = 100_000] = process.argv.slice(2).map(Number);
const prefix = 'posthorn:';
const payload = Buffer.alloc(1024, 'x');
const atATime = 64;
const neverOpens = { failureThreshold: 1_000_000, cooldownSeconds: 300, probeSuccessThreshold: 2 };
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

const attemptsOfDeadLetter = 10;
const names = [
  'host',
  'content-type',
  'user-agent',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
  'x-posthorn-event-id',
  'x-request-id',
];
const headers = names.map((name): [string, string] => [name, name.padEnd(40, '.')]);
const failure = {
  ...attempt,
  responseStatus: 500,
  responseBody: 'e'.repeat(500),
  errorType: 'http_error' as const,
  errorMessage: 'the receiver answered 500',
  detail: {
    requestHeaders: headers,
    responseHeaders: headers,
    isTruncated: false,
    peerAddress: '192.0.2.1:443',
    reusedConnection: true,
    requestBytes: 1024,
    responseBytes: 500,
    phases: { dnsMs: 0, connectMs: 0, tlsMs: 0, firstByteMs: 12, totalMs: 12 },
  },
};

/** Ends every attempt as a success or as a failure. Returns the number of attempts. */
async function deliver(fails = false): Promise<number> {
  let delivered = 0;
  for (;;) {
    const { jobs, unconfigured } = await queue.dequeue('w1', atATime);
    for (const target of unconfigured) await queue.configure(target, targetSetting({ circuit: neverOpens }));
    const moved = jobs.length === 0 && unconfigured.length === 0 ? (await queue.promote()).moved : 1;
    if (moved === 0) return delivered;
    await queue.settle(
      'w1',
      jobs.map((job) => ({ job, outcome: outcomeOf(job.attempts + 1, fails), maxAttempts: null })),
    );
    delivered += jobs.length;
  }
}

function outcomeOf(number: number, fails: boolean): Outcome {
  if (!fails) return { type: 'delivered', attempt };
  if (number < attemptsOfDeadLetter) return { type: 'retry', attempt: failure, delayMs: 0 };
  return { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' };
}

try {
  await queue.refreshShard('w1', 1000);
  const empty = await used();
  await accept(messages, () => 'dst_a');
  const queued = ((await used()) - empty) / messages;
  const delivered = await deliver();
  const finished = ((await used()) - empty) / messages;
  const { findings, unfinished } = await checkShards({ redis: redis.client, prefix });
  await redis.client.flushall();
  await queue.refreshShard('w1', 1000);
  const emptyAgain = await used();
  await accept(targets, (i) => `dst_${String(i).padStart(26, '0')}`);
  const each = ((await used()) - emptyAgain) / targets;
  await redis.client.flushall();
  await queue.refreshShard('w1', 1000);
  const emptyOfDead = await used();
  const deadLetters = Math.ceil(messages / 10);
  await accept(deadLetters, () => 'dst_a');
  await deliver(true);
  const dead = ((await used()) - emptyOfDead) / deadLetters;
  report('memory', `payload 1 KiB, ${messages} messages of one target; ${targets} targets`, [
    ['bytes per message queued in a backlog', queued.toFixed(0)],
    ['bytes per finished message', finished.toFixed(0)],
    ['bytes per target with one message', each.toFixed(0)],
    [`bytes per dead letter after ${attemptsOfDeadLetter} attempts`, dead.toFixed(0)],
    ['of these per attempt', ((dead - finished) / attemptsOfDeadLetter).toFixed(0)],
    redisCeilingRow(await bareRedisPipeline()),
    ['delivered, unfinished, findings of the check', `${delivered}, ${unfinished}, ${findings.length}`],
  ]);
} finally {
  await redis.stop();
}
