// How late the messages of one organization move that are due together with many of another one, in one shard:
//   node hack/bench/due.ts [messages of the other] [report 0/1]
// Both are scheduled for one instant, and then again with those of the one a millisecond later. What counts is the time until the last of its 100
// is in its lane; a worker's calls of promote.lua follow one another while there is more. No receiver and no worker is part of it.
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { startRedis } from '../../test/support/redis.ts';
import { ms, report } from './lib/report.ts';

const [messages = 50_000, isKept = 1] = process.argv.slice(2).map(Number);
const ofOne = 100;
const prefix = 'bench:';
const base = `${prefix}{s0}:`;
/** For accepting all of them before. */
const leadMs = 5000 + messages / 2;

const redis = await startRedis();
const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: systemClock });

async function schedule(org: string, count: number, notBeforeMs: number): Promise<void> {
  for (let done = 0; done < count; done += 500)
    await Promise.all(
      Array.from({ length: Math.min(500, count - done) }, () => {
        const event = newEvent({ org, destinations: [`dst_${org}`] });
        return acceptor.accept({ ...event, notBeforeMs, targets: event.targets.map((target) => ({ ...target, notBeforeMs })) });
      }),
    );
  if (Date.now() >= notBeforeMs) throw new Error('their time came before all of them were accepted');
}

async function queued(org: string): Promise<number> {
  return await redis.client.xlen(`${base}w:${await redis.client.hget(`${base}tn:${org}`, `rte_a dst_${org}`)}`);
}

async function measure(laterMs: number): Promise<readonly (readonly [string, string])[]> {
  await redis.client.flushall();
  await queue.refreshShard('w1', 64);
  const atMs = Date.now() + leadMs;
  await schedule('org_other', messages, atMs);
  await schedule('org_one', ofOne, atMs + laterMs);
  const memory = Number(/^used_memory:(\d+)/m.exec(await redis.client.info('memory'))?.[1]);
  await sleep(atMs + laterMs + 1 - Date.now());
  let calls = 0;
  while ((await queued('org_one')) < ofOne) {
    await queue.promote();
    calls++;
  }
  const tookMs = Date.now() - atMs - laterMs;
  while ((await queue.promote()).nextDueMs === 0);
  const when = laterMs === 0 ? 'at the same instant' : `${laterMs} ms later`;
  return [
    [`the last of ${ofOne} that are due ${when}`, `${ms(tookMs)}, ${calls} calls`],
    [`the last of ${messages} of the other, when those are due ${when}`, ms(Date.now() - atMs)],
    [`memory of Redis for each message that waits, ${when}`, `${Math.round(memory / (messages + ofOne))} bytes`],
  ];
}

try {
  report(isKept === 0 ? null : 'due', `${messages} messages of another organization are due`, [
    ...(await measure(0)),
    ...(await measure(1)),
  ]);
} finally {
  await redis.stop();
}
