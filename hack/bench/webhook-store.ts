// The webhook store with many customers: bytes of Redis per endpoint, lists, matching, and what a worker keeps.
//   node hack/bench/webhook-store.ts [endpoints]
// Each application has 10 endpoints, each endpoint 3 subscriptions of 100 event types. Redis has no persistence; it shares the cores.

import { RedisMessagePurger } from '../../src/data/purge/message-purger.ts';
import { changeStreamBlockMs } from '../../src/data/registry/change-stream.ts';
import type { PageQuery, ViewPage } from '../../src/data/shard/messages.ts';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import { WebhookCandidates } from '../../src/data/webhooks/webhook-candidates.ts';
import { WebhookDirectory } from '../../src/data/webhooks/webhook-directory.ts';
import { blockingConnection, commandConnection } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { startRedis } from '../../test/support/redis.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { fillCustomers } from './lib/customers.ts';
import { ms, percentile, report } from './lib/report.ts';

const [endpoints = 1_000_000] = process.argv.slice(2).map(Number);
const atOnce = 100;
const slowMs = 5;
const org = `org_${'o'.repeat(26)}`;
const prefix = 'posthorn:';
const eventTypes = Array.from({ length: 100 }, (_, i) => `etp_${String(i).padStart(26, 'e')}`);

async function main(): Promise<void> {
  const server = await startRedis();
  // On a machine that is busy otherwise the last figure must not be lost with one slow answer.
  const redis = commandConnection(server.url, { commandTimeoutMs: 60_000 });
  await redis.connect();
  const options = { redis, prefix, clock: systemClock, logger: silentLogger };
  const store = new RedisWebhookStore(options);
  const candidates = new WebhookCandidates(options);
  const blocking = blockingConnection(server.url, { blockMs: changeStreamBlockMs });
  const directory = new WebhookDirectory({ ...options, blocking });
  const usedBytes = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  try {
    const emptyBytes = await usedBytes();
    await redis.config('SET', 'slowlog-log-slower-than', String(slowMs * 1000));
    const startedAt = performance.now();
    const made = await fillCustomers(store, {
      org,
      endpoints,
      eventTypes,
      shards: 16,
      encryptionKey: Buffer.alloc(32, 1),
      url: (application, endpoint) => `https://hooks.customer-${application}.example.com/webhooks/incoming/${endpoint}`,
    });
    const filledMs = performance.now() - startedAt;
    const filledBytes = await usedBytes();
    const bytesPerEndpoint = (filledBytes - emptyBytes) / endpoints;
    const any = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] ?? throwEmpty();
    const anyType = (): string => any(eventTypes);
    const rows: [string, string][] = [
      ['bytes of Redis per endpoint with 3 subscriptions', bytesPerEndpoint.toFixed(0)],
      [`made, ${atOnce} at a time`, `${((endpoints / filledMs) * 1000).toFixed(0)} endpoints/s`],
    ];
    const pages: [string, (page: PageQuery) => Promise<ViewPage<unknown>>][] = [
      ['endpoints', (page) => store.endpoints(org, {}, page)],
      ['subscriptions', (page) => store.subscriptions(org, {}, page)],
      ['subscriptions of an event type', (page) => store.subscriptions(org, { eventTypeId: eventTypes[0] }, page)],
      ['applications by name', (page) => store.applications(org, { orderBy: 'name' }, page)],
    ];
    for (const [what, list] of pages) rows.push([`page of 100 ${what}, p99`, ms(percentile(await pageTimes(list), 0.99))]);
    const times: [string, () => Promise<unknown>][] = [
      [
        'page of the endpoints of an application, p99',
        () => store.endpoints(org, { applicationId: any(made.applications) }, { limit: 100 }),
      ],
      ['single read of an endpoint, p99', () => store.endpoint(org, any(made.endpoints))],
      ['search that finds nothing, until its page ends, p99', () => store.applications(org, { search: 'nowhere' }, { limit: 100 })],
      ['match: version, p99', () => candidates.version(org, anyType())],
      ['match: candidates of an application, p99', () => candidates.ofApplication(org, anyType(), any(made.applications), 0, 100)],
      ['match: 100 candidates of all, p99', () => candidates.ofEventType(org, anyType(), Math.floor(Math.random() * 20_000), 100)],
    ];
    for (const [what, action] of times)
      rows.push([what, ms(percentile(await timesOf(action, what.startsWith('search') ? 50 : 1000), 0.99))]);
    directory.start();
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 100_000; i += atOnce)
      await Promise.all(
        Array.from({ length: atOnce }, (_, k) => directory.endpoint(org, made.endpoints[(i + k) % made.endpoints.length] ?? '')),
      );
    rows.push([
      'a worker that has read 100,000 endpoints grows by',
      `${((process.memoryUsage().rss - before) / 1024 / 1024).toFixed(0)} MiB`,
    ]);
    rows.push([
      'deletion of an application, p99',
      ms(percentile(await timesOf(() => store.deleteApplication(org, made.applications.pop() ?? ''), 200), 0.99)),
    ]);
    rows.push([`commands of Redis above ${slowMs} ms`, String((await redis.slowlog('LEN')) as number)]);
    const purging = performance.now();
    await new RedisMessagePurger({ redis: redis, prefix }).purgeOrganization(org, new AbortController().signal);
    rows.push(['purge of the organization', ms(performance.now() - purging)]);
    rows.push(redisCeilingRow(await bareRedisPipeline()));
    report('webhook-store', `${endpoints} webhook endpoints of an organization`, rows);
  } finally {
    await directory.stop();
    blocking.disconnect();
    redis.disconnect();
    await server.stop();
  }
}

/** Pages one after the other, from the newest on. */
async function pageTimes(list: (page: PageQuery) => Promise<ViewPage<unknown>>): Promise<number[]> {
  let cursor: string | undefined;
  return await timesOf(async () => {
    const page = await list({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    cursor = page.nextCursor ?? undefined;
  }, 1000);
}

async function timesOf(action: () => Promise<unknown>, times: number): Promise<number[]> {
  for (let i = 0; i < 20; i++) await action();
  const taken: number[] = [];
  for (let i = 0; i < times; i++) {
    const startedAt = performance.now();
    await action();
    taken.push(performance.now() - startedAt);
  }
  return taken;
}

function throwEmpty(): never {
  throw new Error('nothing was made');
}

await main();
