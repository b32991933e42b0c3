// Lists of deliveries with filters, at the reader that the API uses:
//   node hack/bench/message-lists.ts [messages] [pages]
// One message in 200 fails, in one of four ways; a page has 50. Redis shares the cores.

import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import type { Outcome } from '../../src/data/queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import type { NewAttempt } from '../../src/data/shard/attempt-record.ts';
import type { DeliveryFilter } from '../../src/data/shard/messages.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { delivered, settleAll, takeFrom } from '../../test/support/queue-worker.ts';
import { startRedis } from '../../test/support/redis.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { ms, percentile, report } from './lib/report.ts';

const [messages = 200_000, pages = 200] = process.argv.slice(2).map(Number);
const prefix = 'posthorn:';
const org = 'org_a';
const atATime = 64;
const rare = 200;
const pageSize = 50;

const redis = await startRedis(['--save', '', '--appendonly', 'no']);
const world = { redis: redis.client, prefix };
const queue = new RedisDeliveryQueue(world);
const acceptor = new RedisMessageAcceptor({ ...world, clock: systemClock });
const reader = new RedisMessageReader(world);

const attempt = { startedAtMs: Date.now(), durationMs: 12, responseBody: null };
const failures: NewAttempt[] = [
  { ...attempt, responseStatus: null, errorType: 'timeout', errorMessage: null },
  { ...attempt, responseStatus: 500, errorType: 'http_error', errorMessage: null },
  { ...attempt, responseStatus: 503, errorType: 'http_error', errorMessage: null },
  { ...attempt, responseStatus: 404, errorType: 'http_error', errorMessage: null },
];
const failed = failures.map((failure): Outcome => ({ type: 'dead', attempt: failure, reason: 'max_retries_exceeded' }));
const retried: Outcome = {
  type: 'retry',
  attempt: failures[1] ?? { ...attempt, responseStatus: 500, errorType: 'http_error', errorMessage: null },
  delayMs: 3_600_000,
};

async function fill(): Promise<void> {
  await queue.tend('w1', 1000);
  const payload = (n: number): Buffer => Buffer.from(JSON.stringify({ order: { number: n, total: n % 1000 }, text: 'x'.repeat(900) }));
  for (let done = 0; done < messages; done += atATime) {
    const sent = Array.from({ length: Math.min(atATime, messages - done) }, (_, i) => done + i);
    await Promise.all(sent.map((n) => acceptor.accept(newEvent({ payload: payload(n), destinations: [`dst_${n % 10}`] }))));
    for (let jobs = await takeFrom(queue, 'w1', atATime); jobs.length > 0; jobs = await takeFrom(queue, 'w1', atATime)) {
      const others = jobs.filter((_, i) => (done + i) % rare !== 0);
      await settleAll(queue, 'w1', others, delivered);
      const failing = jobs.filter((_, i) => (done + i) % rare === 0);
      for (const job of failing) {
        const kind = Math.floor(done / rare) % (failed.length + 1);
        await settleAll(queue, 'w1', [job], failed[kind] ?? retried);
      }
    }
  }
}

interface Figures {
  times: number[];
  scanned: number[];
}

/** Pages of a list, each behind the one before, from the beginning again at the end. */
async function read(filter: DeliveryFilter, count = pages): Promise<Figures> {
  const figures: Figures = { times: [], scanned: [] };
  let cursor: string | null = null;
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now();
    const page = await reader.deliveries(org, filter, { limit: pageSize, ...(cursor !== null && { cursor }) });
    figures.times.push(performance.now() - startedAt);
    figures.scanned.push(page.scanned);
    cursor = page.nextCursor;
  }
  return figures;
}

const indexed: Record<string, DeliveryFilter> = {
  'no filter': {},
  'status=dlq': { statuses: ['dlq'] },
  'status=dlq,retrying': { statuses: ['dlq', 'retrying'] },
  destinationId: { destinationId: 'dst_3' },
  'errorType=timeout': { errorTypes: ['timeout'] },
  'responseStatus=4xx': { responseStatuses: [{ first: 400, last: 499 }] },
  'responseStatus=503': { responseStatuses: [{ first: 503, last: 503 }] },
  failedFrom: { failedFromMs: attempt.startedAtMs },
  'attemptsMin=2, which nothing meets': { attemptsMin: 2 },
  'status=filtered, which nothing has': { statuses: ['filtered'] },
};
const searches: Record<string, string> = {
  'where, one in 1,000 meets it': 'event.data.order.total == 7.0',
  'where, nothing meets it': 'event.data.order.total < 0.0',
};

await fill();
const rows: [string, string][] = [];
for (const [name, filter] of Object.entries(indexed)) {
  await read(filter, 10);
  const { times } = await read(filter);
  rows.push([`${name}: p50 / p99`, `${ms(percentile(times, 0.5))} / ${ms(percentile(times, 0.99))}`]);
}
for (const [name, where] of Object.entries(searches)) {
  const { times, scanned } = await read({ where }, Math.min(pages, 20));
  rows.push([`${name}: p50 / p99`, `${ms(percentile(times, 0.5))} / ${ms(percentile(times, 0.99))}`]);
  const total = (all: readonly number[]): number => all.reduce((sum, each) => sum + each, 0);
  rows.push([`${name}: looked at in a page`, String(Math.round(total(scanned) / scanned.length))]);
  rows.push([`${name}: a second`, `${Math.round((1000 * total(scanned)) / total(times))} records`]);
}
report('message-lists', `pages of ${pageSize} of ${messages} deliveries, one in ${rare} failed`, [
  ...rows,
  redisCeilingRow(await bareRedisPipeline()),
]);
await redis.stop();
