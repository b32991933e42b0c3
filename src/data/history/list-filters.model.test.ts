import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { allPages } from '../../../test/support/all-pages.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { settleAll } from '../../../test/support/queue-worker.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { clusterClient, startRedisCluster } from '../../../test/support/redis-group.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import type { Outcome } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import type { NewAttempt } from '../shard/attempt-record.ts';
import type { MessageFilter } from '../shard/message-filter.ts';
import type { AttemptErrorType, AttemptView, DeliveryStatus, EventStatus, PageQuery } from '../shard/messages.ts';
import type { WebhookMessageStatus } from '../webhooks/webhook-message-view.ts';
import { WebhookMessages } from '../webhooks/webhook-messages.ts';
import { RedisMessageReader } from './message-reader.ts';
import { RedisMessageReplayer } from './message-replayer.ts';

const prefix = 'test:';
const shards = 3;
const events = 150;
const org = 'org_a';
const errors = ['timeout', 'http_error', 'network', 'tls'] as const satisfies AttemptErrorType[];
const types = ['order.paid', 'order.sent'];
const beganMs = Date.now();

/** A message with its attempts, as in both families. */
interface Known {
  id: string;
  eventId: string;
  createdAtMs: number;
  status: string;
  attempts: number;
  lastErrorType: string | null;
  lastResponseStatus: number | null;
  one: string;
  other: string | null;
  type: string | null;
  /** Number in the payload. */
  n: number;
  made: readonly AttemptView[];
}

/** Numbers in payloads, by event. */
type Payloads = Map<string, number>;

/** Expressions, and what they mean. */
const searches: Readonly<Record<string, (known: Known) => boolean>> = {
  'event.data.n < 20.0': ({ n }) => n < 20,
  '!has(event.data.missing) && event.data.n >= 140.0': ({ n }) => n >= 140,
  'headers["x-n"].endsWith("7")': ({ n }) => n % 10 === 7,
  'event.data.missing == 1.0': () => false,
};

/** The same numbers in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

/** Messages of both families that had up to three attempts each, of all kinds of errors and times. */
async function fill(redis: RedisClient): Promise<Payloads> {
  const payloads: Payloads = new Map();
  const random = numbers(17);
  const queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis, prefix, shard }));
  const acceptor = new RedisMessageAcceptor({ redis, prefix, clock: lenientClock });
  for (const queue of queues) await queue.refreshShard('w1', 1000);
  const began = (): number => Date.now() + random(100) * 1000;
  const failure = (): NewAttempt => {
    const errorType = errors[random(errors.length)] ?? 'timeout';
    const responseStatus = errorType === 'http_error' ? ([404, 500, 503, 200][random(4)] ?? 500) : null;
    const errorMessage = random(2) === 0 ? null : 'a message that is longer than the short form of an attempt has room for';
    return { startedAtMs: began(), durationMs: 5, responseStatus, responseBody: null, errorType, errorMessage };
  };
  const success = (): NewAttempt => ({
    ...{ startedAtMs: began(), durationMs: 5, errorType: null, errorMessage: null },
    responseStatus: random(5) === 0 ? 404 : 200,
    responseBody: 'ok'.repeat(random(60)),
  });
  const outcome = (): Outcome => {
    const kind = random(10);
    if (kind < 4) return { type: 'delivered', attempt: success() };
    if (kind < 7) return { type: 'retry', attempt: failure(), delayMs: random(3) === 0 ? 3_600_000 : 0 };
    if (kind < 9) return { type: 'dead', attempt: failure(), reason: 'max_retries_exceeded' };
    return { type: 'unsent', status: random(2) === 0 ? 'filtered' : 'transform_failed', reason: null, tookMs: 1 };
  };
  for (const owner of [org, webhookOrganization(org)])
    for (let i = 0; i < events; i++) {
      const shard = random(shards);
      const route = random(3);
      const type = types[random(2)] ?? '';
      const isApart = owner === org && random(6) === 0;
      const targetOf = (routeId: string) => ({
        messageId: newTimedId('msg_', shard, Date.now()),
        routeId,
        destinationId: random(8) === 0 ? `dst_paused${shard}` : `dst_${shard}`,
        shard,
        maxAttempts: 3,
      });
      const target = targetOf(`rte_${route}`);
      const hasTwo = owner === org && random(3) === 0;
      const webhook = { labels: {}, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [] };
      const id = newTimedId('evt_', shard, Date.now());
      payloads.set(id, i);
      await acceptor.accept(
        newEvent({
          id,
          org: owner,
          payload: Buffer.from(JSON.stringify({ n: i, more: 'x'.repeat(random(30) === 0 ? 200_000 : 10) })),
          headers: [['x-n', String(i)]],
          sourceId: `etp_${type}`,
          sourceSlug: type,
          targets: isApart ? [] : hasTwo ? [target, { ...targetOf(`rte_${(route + 1) % 3}`), destinationId: 'dst_1' }] : [target],
          filtered: isApart ? [{ routeId: 'rte_0' }, { routeId: `rte_${1 + random(2)}` }] : [],
          ...(owner === org ? {} : { webhook }),
        }),
      );
    }
  for (const queue of queues)
    for (;;) {
      const { jobs, unconfigured } = await queue.dequeue('w1', 8);
      for (const target of unconfigured) {
        const isPaused = target.destinationId.startsWith('dst_paused');
        await queue.configure(target, targetSetting({ paused: isPaused }));
      }
      if (jobs.length + unconfigured.length === 0 && (await queue.promote()).moved === 0) break;
      for (const job of jobs) await settleAll(queue, 'w1', [job], outcome());
    }
  const replayer = new RedisMessageReplayer({ redis, prefix, clock: systemClock, shards: () => shards });
  const ended = new RedisMessageReader({ redis, prefix, shards: () => shards });
  for (const { id } of (await ended.deliveries(org, { statuses: ['dlq'] }, { limit: 10 })).items) await replayer.replay(org, id);
  return payloads;
}

const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary });
const someOf = <T>(values: readonly T[]): fc.Arbitrary<T[] | undefined> =>
  maybe(fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 }));
const time = maybe(fc.integer({ min: -5, max: 110 }).map((seconds) => beganMs + seconds * 1000));
const messageFilter = {
  where: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(...Object.keys(searches)) }),
  errorTypes: someOf([...errors, 'circuit_open', 'filtered', 'transform_failed']),
  responseStatuses: someOf([
    { first: 200, last: 299 },
    { first: 400, last: 499 },
    { first: 503, last: 503 },
    { first: 500, last: 599 },
  ]),
  attemptsMin: maybe(fc.integer({ min: 0, max: 3 })),
  attemptsMax: maybe(fc.integer({ min: 0, max: 3 })),
  failedFromMs: time,
  failedToMs: time,
  fromMs: maybe(fc.constant(beganMs)),
  toMs: maybe(fc.constant(beganMs + 400)),
};
const deliveryStatuses: DeliveryStatus[] = ['pending', 'retrying', 'circuit_open', 'delivered', 'filtered', 'transform_failed', 'dlq'];
const eventStatuses: EventStatus[] = ['pending', 'delivered', 'partial', 'failed', 'filtered'];
const messageStatuses: WebhookMessageStatus[] = ['pending', 'processing', 'success', 'failed', 'exhausted', 'dlq'];
const one = someOf(['rte_0', 'rte_1', 'rte_2']);
const other = someOf(['dst_0', 'dst_1', 'dst_paused1']);
const type = someOf(types);
/** Pages of one record take a request for each. */
const limit = fc.oneof({ weight: 1, arbitrary: fc.constantFrom(1, 3) }, { weight: 2, arbitrary: fc.constant(100) });
const fewIds = maybe(fc.uniqueArray(fc.nat({ max: events - 1 }), { minLength: 1, maxLength: 20 }));

type Asked = MessageFilter & {
  where?: string | undefined;
  statuses?: readonly string[] | undefined;
  one?: readonly string[] | undefined;
  other?: readonly string[] | undefined;
  type?: readonly string[] | undefined;
};

/** The model: each record is tested itself. */
function isMeant(asked: Asked, known: Known): boolean {
  const { ids, statuses, errorTypes, responseStatuses, attemptsMin, attemptsMax, fromMs, toMs, failedFromMs, failedToMs } = asked;
  const { status, lastErrorType, lastResponseStatus: code, attempts, createdAtMs } = known;
  const isIn = (ms: number, from: number | undefined, to: number | undefined) => !(ms < (from ?? ms)) && !(ms > (to ?? ms));
  if (asked.where !== undefined && searches[asked.where]?.(known) !== true) return false;
  if (ids !== undefined && !ids.includes(known.id)) return false;
  if (statuses !== undefined && !statuses.includes(status)) return false;
  if (asked.one !== undefined && !asked.one.includes(known.one)) return false;
  if (asked.other !== undefined && !asked.other.some((each) => each === known.other)) return false;
  if (asked.type !== undefined && !asked.type.some((each) => each === known.type)) return false;
  if (errorTypes !== undefined && !errorTypes.some((type) => type === lastErrorType)) return false;
  const hasCode = ({ first, last }: { first: number; last: number }) =>
    code !== null && isIn(code, first, last) && !(code >= 300 && lastErrorType === null);
  if (responseStatuses !== undefined && !responseStatuses.some(hasCode)) return false;
  if (!isIn(attempts, attemptsMin, attemptsMax) || !isIn(createdAtMs, fromMs, toMs)) return false;
  if (failedFromMs === undefined && failedToMs === undefined) return true;
  return known.made.some(({ errorType, startedAtMs }) => errorType !== null && isIn(startedAtMs, failedFromMs, failedToMs));
}

describe.each(['a single Redis', 'a Redis Cluster'])('on %s', (kind) => {
  let redis: RedisClient;
  let stop: () => Promise<void>;
  let deliveries: RedisMessageReader;
  let messages: WebhookMessages;
  let known: { deliveries: Known[]; messages: Known[] };

  beforeAll(async () => {
    if (kind === 'a single Redis') {
      const server = await startRedis();
      redis = server.client;
      stop = () => server.stop();
    } else {
      const cluster = await startRedisCluster();
      redis = await clusterClient(cluster);
      stop = async () => {
        redis.disconnect();
        await cluster.stop();
      };
    }
    const payloads = await fill(redis);
    const options = { redis, prefix, shards: () => shards };
    deliveries = new RedisMessageReader(options);
    messages = new WebhookMessages(options);
    const [ofRoutes, ofEndpoints] = await Promise.all([
      allPages((page) => deliveries.deliveries(org, {}, page), 100),
      allPages((page) => messages.messages(org, {}, page), 100),
    ]);
    known = {
      deliveries: await Promise.all(
        ofRoutes.map(async (view) => ({
          ...view,
          ...{
            one: view.routeId,
            other: view.destinationId,
            type: null,
            n: payloads.get(view.eventId) ?? -1,
            made: await deliveries.attempts(org, view.id),
          },
        })),
      ),
      messages: await Promise.all(
        ofEndpoints.map(async (view) => ({
          ...view,
          ...{ one: view.applicationId, other: view.endpointId, type: view.event?.typeName ?? null, n: payloads.get(view.eventId) ?? -1 },
          made: await messages.attempts(org, view.id),
        })),
      ),
    };
    expect(new Set(known.deliveries.map(({ status }) => status)).size).toBeGreaterThan(5);
    expect(new Set(known.messages.map(({ status }) => status)).size).toBeGreaterThan(4);
    expect(known.deliveries.some(({ made }) => made.length > 1)).toBe(true);
  });
  afterAll(() => stop());

  /** The filters are the same code on both; a cluster adds where the keys are. */
  const runs = (onSingle: number): number => (kind === 'a single Redis' ? onSingle : onSingle / 5);
  const idsAt = (all: readonly Known[], places: readonly number[] | undefined) => places?.flatMap((place) => all[place]?.id ?? []);
  const sorted = (items: readonly { id: string }[]) => items.map(({ id }) => id).toSorted();

  test('the pages of deliveries with any filter are those of all deliveries that each of its parts lets pass', async () => {
    const filter = fc.record({ ...messageFilter, statuses: someOf(deliveryStatuses), one, other, places: fewIds });
    const property = fc.asyncProperty(filter, limit, async ({ one, other, places, ...rest }, size) => {
      const ids = idsAt(known.deliveries, places);
      const asked = { ...rest, ids, routeId: one, destinationId: other };
      const found = await allPages((page) => deliveries.deliveries(org, asked, page), size);
      expect(sorted(found)).toEqual(sorted(known.deliveries.filter((each) => isMeant({ ...rest, ids, one, other }, each))));
    });
    await assertProperty(property, runs(250));
  });

  test('the pages of messages with any filter are those of all messages that each of its parts lets pass', async () => {
    const filter = fc.record({
      ...messageFilter,
      statuses: someOf(messageStatuses),
      one,
      other,
      type,
      places: fewIds,
    });
    const property = fc.asyncProperty(filter, limit, async ({ one, other, type, places, ...rest }, size) => {
      const ids = idsAt(known.messages, places);
      const asked = { ...rest, ids, applicationId: one, endpointId: other, eventType: type };
      const found = await allPages((page) => messages.messages(org, asked, page), size);
      expect(sorted(found)).toEqual(sorted(known.messages.filter((each) => isMeant({ ...rest, ids, one, other, type }, each))));
    });
    await assertProperty(property, runs(250));
  });

  test('the pages of events with any filter are those of all events with a delivery that each of its parts lets pass', async () => {
    const { where, fromMs, toMs, ...ofDelivery } = messageFilter;
    const filter = maybe(fc.record({ ...ofDelivery, one, other }));
    const ofEvent = fc.record({ where, fromMs, toMs, places: fewIds, statuses: someOf(eventStatuses), type });
    const all = await allPages((page) => deliveries.events(org, {}, page), 100);
    const property = fc.asyncProperty(filter, ofEvent, limit, async (asked, { places, type, ...own }, size) => {
      const ids = places?.flatMap((place) => all[place]?.id ?? []);
      const sourceId = type?.map((each) => `etp_${each}`);
      const { one, other, ...rest } = asked ?? {};
      const delivery = asked && { ...rest, routeId: one, destinationId: other };
      const found = await allPages((page) => deliveries.events(org, { ...own, ids, sourceId, delivery }, page), size);
      const { where, statuses, fromMs = 0, toMs = Number.POSITIVE_INFINITY } = own;
      const meant = all.filter(({ id, source, status }) => {
        const hasType = (type === undefined || type.includes(source)) && (statuses === undefined || statuses.includes(status));
        const made = known.deliveries.filter(({ eventId }) => eventId === id);
        // An event and its first deliveries are accepted at one time; the process received the event some milliseconds before.
        const acceptedMs = Math.min(...made.map(({ createdAtMs }) => createdAtMs));
        const isOfTime = acceptedMs >= fromMs && acceptedMs <= toMs;
        return (ids?.includes(id) ?? true) && hasType && isOfTime && made.some((each) => isMeant({ where, ...rest, one, other }, each));
      });
      expect(sorted(found)).toEqual(sorted(meant));
    });
    await assertProperty(property, runs(250));
  });

  test('the pages of webhook events with any filter are those of all events with a message that each of its parts lets pass', async () => {
    const filter = fc.record({ ...messageFilter, statuses: someOf(messageStatuses), one, other, type, places: fewIds });
    const all = await allPages((page) => messages.events(org, {}, page), 100);
    expect(all).toHaveLength(events);
    const property = fc.asyncProperty(filter, limit, async ({ one, other, type, places, ...rest }, size) => {
      const ids = places?.flatMap((place) => all[place]?.id ?? []);
      const eventTypeIds = type?.map((each) => `etp_${each}`);
      const asked = { ...rest, ids, applicationId: one, endpointId: other, eventType: type, eventTypeIds };
      const found = await allPages((page) => messages.events(org, asked, page), size);
      const isOne = (id: string) => known.messages.some((each) => each.eventId === id && isMeant({ ...rest, one, other, type }, each));
      expect(sorted(found)).toEqual(sorted(all.filter(({ id }) => (ids?.includes(id) ?? true) && isOne(id))));
    });
    await assertProperty(property, runs(100));
  });

  test('a search is divided into pages that each look at few records, and finds the same', async () => {
    const where = 'event.data.n < 20.0';
    const hasty = { redis, prefix, shards: () => shards, search: { scanned: 30, looks: 6, ms: 60_000 } };
    const sizes: number[] = [];
    const few = async (page: PageQuery) => {
      const found = await new RedisMessageReader(hasty).deliveries(org, { where }, page);
      sizes.push(found.scanned);
      return found;
    };
    const meant = sorted(known.deliveries.filter(({ n }) => n < 20));
    expect(meant.length).toBeGreaterThan(10);
    expect(sorted(await allPages(few, 100))).toEqual(meant);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(30);
    expect(sizes.length).toBeGreaterThan(known.deliveries.length / 30);
    const atOnce = { ...hasty, search: { scanned: 1000, looks: 100, ms: 0 } };
    const shortest = new WebhookMessages(atOnce);
    const found = await allPages((page) => shortest.messages(org, { where }, page), 100);
    expect(sorted(found)).toEqual(sorted(known.messages.filter(({ n }) => n < 20)));
    const events = await allPages((page) => deliveries.events(org, { where }, page), 7);
    expect(new Set(events.map(({ id }) => id))).toEqual(new Set(known.deliveries.filter(({ n }) => n < 20).map(({ eventId }) => eventId)));
  });

  test('a search ends when nobody waits for it', async () => {
    const page = { limit: 10, signal: AbortSignal.abort() };
    await expect(deliveries.deliveries(org, { where: 'event.data.n > 1.0' }, page)).rejects.toThrow('nobody waits');
  });

  test('the pages of dead letters with any filter are those of all dead letters that each of its parts lets pass', async () => {
    const filter = fc.record({ ...messageFilter, one, other, places: fewIds });
    const property = fc.asyncProperty(filter, limit, async ({ one, other, places, ...rest }, size) => {
      const ids = idsAt(known.messages, places);
      const asked = { ...rest, ids, applicationId: one, endpointId: other };
      const found = await allPages((page) => messages.deadLetters(org, asked, page), size);
      const meant = known.messages.filter((each) => isMeant({ ...rest, ids, statuses: ['dlq'], one, other }, each));
      expect(sorted(found)).toEqual(sorted(meant));
    });
    await assertProperty(property, runs(100));
  });
});
