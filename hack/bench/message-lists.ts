// Lists of deliveries and their events, or of messages to endpoints, with filters, at the readers that the API uses:
//   node hack/bench/message-lists.ts [messages] [pages] [deliveries|messages]
// One message in 200 fails, in one of four ways; a page has 50. Redis shares the cores.

import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import type { Outcome } from '../../src/data/queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import type { NewAttempt } from '../../src/data/shard/attempt-record.ts';
import type { DeliveryFilter, NewEvent, PageQuery, ScannedPage } from '../../src/data/shard/messages.ts';
import type { WebhookMessageFilter } from '../../src/data/webhooks/webhook-message-listing.ts';
import { WebhookMessages } from '../../src/data/webhooks/webhook-messages.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { delivered, settleAll, takeFrom } from '../../test/support/queue-worker.ts';
import { startRedis } from '../../test/support/redis.ts';
import { newWebhookEvent } from '../../test/support/webhook-messages.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { ms, percentile, report } from './lib/report.ts';

const [messages = 200_000, pages = 200] = process.argv.slice(2, 4).map(Number);
const isOfWebhooks = process.argv[4] === 'messages';
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
const webhookMessages = new WebhookMessages(world);

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
  await queue.refreshShard('w1', 1000);
  const payload = (n: number): Buffer => Buffer.from(JSON.stringify({ order: { number: n, total: n % 1000 }, text: 'x'.repeat(900) }));
  for (let done = 0; done < messages; done += atATime) {
    const sent = Array.from({ length: Math.min(atATime, messages - done) }, (_, i) => done + i);
    await Promise.all(sent.map((n) => acceptor.accept(eventOf(n, payload(n)))));
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

/** One of ten destinations or endpoints, the latter of two applications. */
function eventOf(n: number, payload: Buffer): NewEvent {
  if (!isOfWebhooks) return newEvent({ payload, destinations: [`dst_${n % 10}`] });
  const eventType = n % 3 === 0 ? 'order.paid' : 'order.sent';
  return newWebhookEvent(org, [{ id: `ep_${n % 10}`, applicationId: `app_${n % 2}` }], { eventType, payload });
}

type List = (page: PageQuery) => Promise<ScannedPage<{ id: string }>>;

interface Figures {
  times: number[];
  scanned: number[];
}

/** Pages of a list, each behind the one before, from the beginning again at the end. */
async function read(list: List, count = pages): Promise<Figures> {
  const figures: Figures = { times: [], scanned: [] };
  let cursor: string | null = null;
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now();
    const page = await list({ limit: pageSize, ...(cursor !== null && { cursor }) });
    figures.times.push(performance.now() - startedAt);
    figures.scanned.push(page.scanned);
    cursor = page.nextCursor;
  }
  return figures;
}

const outcomes = {
  'errorType=timeout': { errorTypes: ['timeout'] },
  'responseStatus=4xx': { responseStatuses: [{ first: 400, last: 499 }] },
  'responseStatus=503': { responseStatuses: [{ first: 503, last: 503 }] },
  failedFrom: { failedFromMs: attempt.startedAtMs },
  'attemptsMin=2, which nothing meets': { attemptsMin: 2 },
};
const deliveryFilters: Record<string, DeliveryFilter> = {
  'no filter': {},
  'status=delivered': { statuses: ['delivered'] },
  'status=dlq': { statuses: ['dlq'] },
  'status=dlq,retrying': { statuses: ['dlq', 'retrying'] },
  'status=pending, which nothing has': { statuses: ['pending'] },
  'status=filtered, which nothing has': { statuses: ['filtered'] },
  routeId: { routeId: 'rte_a' },
  destinationId: { destinationId: 'dst_3' },
  'destinationId of three': { destinationId: ['dst_1', 'dst_2', 'dst_3'] },
  'destinationId, status=dlq': { destinationId: 'dst_0', statuses: ['dlq'] },
  ...outcomes,
};
const messageFilters: Record<string, WebhookMessageFilter> = {
  'no filter': {},
  'status=success': { statuses: ['success'] },
  'status=dlq': { statuses: ['dlq'] },
  'status=dlq,failed': { statuses: ['dlq', 'failed'] },
  'status=pending, which nothing has': { statuses: ['pending'] },
  applicationId: { applicationId: 'app_1' },
  endpointId: { endpointId: 'ep_3' },
  'endpointId of three': { endpointId: ['ep_1', 'ep_2', 'ep_3'] },
  'endpointId, status=dlq': { endpointId: 'ep_0', statuses: ['dlq'] },
  eventType: { eventType: 'order.paid', eventTypeIds: ['etp_order.paid'] },
  ...outcomes,
};
const searches: Record<string, string> = {
  'where, one in 1,000 meets it': 'event.data.order.total == 7.0',
  'where, nothing meets it': 'event.data.order.total < 0.0',
};

/** With a range of creation and ids, which are known once there are messages. */
async function lists(): Promise<Record<string, List>> {
  const list = (filter: DeliveryFilter & WebhookMessageFilter): List =>
    isOfWebhooks
      ? (page) => webhookMessages.messages(org, filter as WebhookMessageFilter, page)
      : (page) => reader.deliveries(org, filter as DeliveryFilter, page);
  const filters: Record<string, DeliveryFilter | WebhookMessageFilter> = isOfWebhooks ? messageFilters : deliveryFilters;
  const { items } = await list({})({ limit: pageSize });
  const madeMs = Math.floor((attempt.startedAtMs + Date.now()) / 2);
  const more = { 'from and to': { fromMs: attempt.startedAtMs, toMs: madeMs }, 'id, 50 of them': { ids: items.map(({ id }) => id) } };
  const events: Record<string, List> = isOfWebhooks
    ? {
        'webhook events: no filter': (page) => webhookMessages.events(org, {}, page),
        'webhook events: eventType': (page) =>
          webhookMessages.events(org, { eventType: 'order.paid', eventTypeIds: ['etp_order.paid'] }, page),
        'webhook events: applicationId': (page) => webhookMessages.events(org, { applicationId: 'app_1' }, page),
        'dead letters: no filter': (page) => webhookMessages.deadLetters(org, {}, page),
        'dead letters: applicationId': (page) => webhookMessages.deadLetters(org, { applicationId: 'app_0' }, page),
      }
    : {
        'events: no filter': (page) => reader.events(org, {}, page),
        'events: sourceId': (page) => reader.events(org, { sourceId: 'src_a' }, page),
        'events: status=delivered': (page) => reader.events(org, { statuses: ['delivered'] }, page),
        'events: routeId': (page) => reader.events(org, { delivery: { routeId: 'rte_a' } }, page),
        'events: destinationId': (page) => reader.events(org, { delivery: { destinationId: 'dst_3' } }, page),
      };
  const all = Object.entries({ ...filters, ...more });
  return { ...Object.fromEntries(all.map(([name, filter]) => [name, list(filter as DeliveryFilter & WebhookMessageFilter)])), ...events };
}

await fill();
const rows: [string, string][] = [];
for (const [name, list] of Object.entries(await lists())) {
  await read(list, 10);
  const { times } = await read(list);
  rows.push([`${name}: p50 / p99`, `${ms(percentile(times, 0.5))} / ${ms(percentile(times, 0.99))}`]);
}
for (const [name, where] of Object.entries(searches)) {
  const search: List = isOfWebhooks
    ? (page) => webhookMessages.messages(org, { where }, page)
    : (page) => reader.deliveries(org, { where }, page);
  const { times, scanned } = await read(search, Math.min(pages, 20));
  rows.push([`${name}: p50 / p99`, `${ms(percentile(times, 0.5))} / ${ms(percentile(times, 0.99))}`]);
  const total = (all: readonly number[]): number => all.reduce((sum, each) => sum + each, 0);
  rows.push([`${name}: looked at in a page`, String(Math.round(total(scanned) / scanned.length))]);
  rows.push([`${name}: a second`, `${Math.round((1000 * total(scanned)) / total(times))} records`]);
}
const family = isOfWebhooks ? 'messages to endpoints' : 'deliveries';
report(isOfWebhooks ? 'webhook-message-lists' : 'message-lists', `pages of ${pageSize} of ${messages} ${family}, one in ${rare} failed`, [
  ...rows,
  redisCeilingRow(await bareRedisPipeline()),
]);
await redis.stop();
