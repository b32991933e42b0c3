import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { allPages } from '../../../test/support/all-pages.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { Job } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { OutboxCarrier } from '../queue/outbox-carrier.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent, WebhookEventPart } from '../shard/messages.ts';
import type { WebhookEventFilter } from './webhook-message-listing.ts';
import { WebhookMessages } from './webhook-messages.ts';

const prefix = 'test:';
const org = webhookOrganization('org_a');
const shards = 2;
let redis: RedisServer;
let acceptor: RedisMessageAcceptor;
let reader: RedisMessageReader;
let queues: RedisDeliveryQueue[];

beforeAll(async () => {
  redis = await startRedis();
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  queues = [0, 1].map((shard) => new RedisDeliveryQueue({ redis: redis.client, prefix, shard }));
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  for (const queue of queues) await queue.refreshShard('w1', 10_000);
});

const part: WebhookEventPart = {
  labels: { tier: 'gold' },
  metadata: { trace: { id: 7 } },
  idempotencyKey: 'once',
  applicationId: 'app_a',
  endpointIds: ['ep_0', 'ep_1'],
};

/** To so many endpoints of an application in the first shard, and to one of another in the second. */
function webhookEvent(endpoints: number, webhook: WebhookEventPart = part): NewEvent {
  const target = (i: number, shard: number): NewEvent['targets'][number] => ({
    messageId: newTimedId('msg_', shard, Date.now()),
    routeId: `app_${shard}`,
    destinationId: `ep_${i}`,
    shard,
    maxAttempts: 8,
    subscription: { id: `sub_${i}`, transformId: i % 2 === 0 ? null : `trf_${i}` },
  });
  const targets = [...Array.from({ length: endpoints }, (_, i) => target(i, 0)), target(endpoints, 1)];
  return { ...newEvent(), org, sourceId: 'etp_a', sourceSlug: 'order.paid', targets, webhook };
}

async function take(count: number): Promise<Job[]> {
  const jobs: Job[] = [];
  await eventually(async () => {
    for (const queue of queues) {
      await queue.promote();
      jobs.push(...(await takeFrom(queue, 'w1', 64)));
    }
    expect(jobs.length).toBe(count);
  });
  return jobs;
}

const subscriptionOf = (shard: number, messageId: string) =>
  redis.client.hget(`${prefix}{s${shard}}:m:${messageId.slice(-25)}`, hashFields.message.subscription);

test.each([3, 120])('an event for %i endpoints is the last one of each of their applications', async (endpoints) => {
  const event = webhookEvent(endpoints);
  await acceptor.accept(event);
  await eventually(async () => {
    for (const application of ['app_0', 'app_1'])
      expect((await reader.eventCounters(org, application)).lastEventAtMs).toBeGreaterThanOrEqual(event.receivedAtMs - 1000);
  });
  // Nothing is to be left for the next test.
  await take(endpoints + 1);
});

test('what was sent with an event is read back, and what was not is absent', async () => {
  const whole = webhookEvent(1);
  const bare = webhookEvent(1, { labels: {}, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [] });
  for (const event of [whole, bare]) {
    await acceptor.accept(event);
    expect((await reader.event(org, event.id))?.webhook).toEqual(event.webhook);
  }
  expect((await reader.event(org, whole.id))?.source).toBe('order.paid');
  const ingested = newEvent();
  await acceptor.accept(ingested);
  expect((await reader.event('org_a', ingested.id))?.webhook).toBeNull();
});

test('each message knows its subscription and its transform, also those that the outbox makes, here and in another shard', async () => {
  const event = webhookEvent(130);
  await acceptor.accept(event);
  for (const shard of [0, 1]) await new OutboxCarrier({ redis: redis.client, prefix }).carry(shard);
  const jobs = await take(131);
  const ofMessage = new Map(jobs.map((job) => [job.messageId, job]));
  for (const { messageId, shard, subscription } of event.targets) {
    const job = ofMessage.get(messageId);
    expect([job?.transformId, job?.maxAttempts]).toEqual([subscription?.transformId, 8]);
    expect(await subscriptionOf(shard, messageId)).toBe(subscription?.id);
  }
});

test('a replay keeps subscription and transform, and the dead letter says how often it was replayed', async () => {
  const event = webhookEvent(1);
  await acceptor.accept(event);
  await new OutboxCarrier({ redis: redis.client, prefix }).carry(0);
  for (const job of await take(2)) await settleAll(queues[Number(job.messageId.slice(4, 6))] ?? fail(), 'w1', [job], dead);
  const replayer = new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock, shards: () => shards });
  const old = event.targets[1]?.messageId ?? '';
  for (const count of [1, 2]) {
    const replayed = await replayer.replay(org, old);
    expect(await subscriptionOf(1, replayed)).toBe('sub_1');
    expect((await take(1)).map(({ messageId, transformId }) => ({ messageId, transformId }))).toEqual([
      { messageId: replayed, transformId: 'trf_1' },
    ]);
    expect(await redis.client.hget(`${prefix}{s1}:m:${old.slice(-25)}`, hashFields.message.replays)).toMatch(
      new RegExp(`^${count} \\d{13}$`),
    );
  }
});

test('webhook messages are in none of the lists and counters of the organization, and are purged with it', async () => {
  const event = webhookEvent(3);
  await acceptor.accept(event);
  expect((await reader.deliveries('org_a', {}, { limit: 10 })).items).toEqual([]);
  expect((await reader.events('org_a', {}, { limit: 10 })).items).toEqual([]);
  expect((await reader.eventCounters('org_a', 'etp_a')).events).toBe(0);
  expect(await reader.event('org_a', event.id)).toBeNull();
  await new RedisMessagePurger({ redis: redis.client, prefix, shards }).purgeOrganization('org_a', new AbortController().signal);
  expect(await reader.event(org, event.id)).toBeNull();
  expect((await checkShards({ redis: redis.client, prefix, shards })).messages).toBe(0);
});

test.each(['by their index', 'by id'])('webhook events are found %s by their messages, in whatever shards these are', async (how) => {
  const [event, other] = [webhookEvent(2), webhookEvent(1)];
  for (const each of [event, other]) {
    await acceptor.accept(each);
    await new OutboxCarrier({ redis: redis.client, prefix }).carry(0);
  }
  for (const job of await take(5)) {
    const isLost = job.target.destinationId === 'ep_2';
    await settleAll(queues[Number(job.messageId.slice(4, 6))] ?? fail(), 'w1', [job], isLost ? dead : delivered);
  }
  const messages = new WebhookMessages({ redis: redis.client, prefix, shards: () => shards });
  const found = async (filter: WebhookEventFilter): Promise<string[]> => {
    const asked = { ...filter, ...(how === 'by id' && { ids: [event.id, other.id] }) };
    return (await allPages((page) => messages.events('org_a', asked, page), 1)).map(({ id }) => id);
  };
  const both = [other.id, event.id];
  expect(await found({ endpointId: 'ep_2' })).toEqual([event.id]);
  expect(await found({ endpointId: ['ep_1', 'ep_2'] })).toEqual(both);
  expect(await found({ endpointId: 'ep_2', statuses: ['dlq'] })).toEqual([event.id]);
  expect(await found({ endpointId: 'ep_0', statuses: ['dlq'] })).toEqual([]);
  expect(await found({ errorTypes: ['http_error'] })).toEqual([event.id]);
  expect(await found({ errorTypes: ['http_error'], endpointId: 'ep_1' })).toEqual([]);
  expect(await found({ responseStatuses: [{ first: 200, last: 299 }], applicationId: 'app_1' })).toEqual([other.id]);
  expect(await found({ statuses: ['dlq'] })).toEqual([event.id]);
  expect(await found({ applicationId: 'app_1' })).toEqual(both);
  expect(await found({ applicationId: 'app_1', statuses: ['success'] })).toEqual([other.id]);
  expect(await found({ applicationId: 'app_a' })).toEqual(both);
  expect(await found({ applicationId: 'app_a', statuses: ['success'] })).toEqual([]);
});

function fail(): never {
  throw new Error('there is no such shard');
}
