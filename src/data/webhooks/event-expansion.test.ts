import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/clock.ts';
import { RedisMessageAcceptor } from '../message-acceptor.ts';
import type { NewEvent } from '../messages.ts';
import { OutboxCarrier, type StorePage } from '../outbox-carrier.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import type { WebhookMatches } from './webhook-matcher.ts';
import { type WebhookSending, webhookSending } from './webhook-sending.ts';
import { webhookTarget } from './webhook-target.ts';

const org = 'org_a';
const prefix = 'test:';
const endpointCount = 2600;
const shards = [0, 1];
const eventType = { id: 'etp_a', name: 'order.made' };
let redis: RedisServer;
let store: RedisWebhookStore;
let sending: WebhookSending;
let applicationId: string;
const subscriptions: string[] = [];

beforeAll(async () => {
  redis = await startRedis();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  sending = newSending();
  const applications = await Promise.all(shards.map((shard) => store.createApplication({ org, name: `in ${shard}`, shard })));
  applicationId = applications[0]?.id ?? '';
  for (let i = 0; i < endpointCount; i++) {
    const endpoint = await store.createEndpoint(newWebhookEndpoint(applications[i % 2]?.id ?? ''));
    const labelFilters: Record<string, string> = i % 10 === 0 ? { country: 'at' } : {};
    subscriptions.push((await store.createSubscription({ org, endpointId: endpoint.id, eventTypeId: eventType.id, labelFilters })).id);
  }
}, 120_000);
afterAll(() => redis?.stop());

const newSending = (): WebhookSending =>
  webhookSending({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger, store, maxAttempts: 8, windowPlaces: 500 });

function match(labels: Record<string, string>, narrowed: string | null = null): Promise<WebhookMatches> {
  const event = { type: eventType.name, data: {}, labels, metadata: {} };
  return sending.matcher.match(org, eventType.id, { applicationId: narrowed, endpointIds: [] }, event);
}

function eventOf(matches: WebhookMatches, labels: Record<string, string>): NewEvent {
  const nowMs = Date.now();
  return {
    id: newTimedId('evt_', 0, nowMs),
    org: webhookOrganization(org),
    sourceId: eventType.id,
    sourceSlug: eventType.name,
    receivedAtMs: nowMs,
    method: 'POST',
    contentType: 'application/json',
    headers: [],
    payload: Buffer.from('{}'),
    signatureValid: null,
    duplicateOf: null,
    webhook: { labels, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [], total: matches.total },
    targets: matches.first.map((each) => webhookTarget(each, { messageId: newTimedId('msg_', each.shard, nowMs), maxAttempts: 8 })),
    ...(matches.rest !== null && { further: matches.rest }),
    filtered: [],
  };
}

/** Subscriptions of all messages that there are, and how much the outboxes hold. */
async function stored(): Promise<{ of: string[]; left: number }> {
  const keys = await redis.client.keys(`${prefix}{s*}:m:*`);
  const pipeline = redis.client.pipeline();
  for (const key of keys) pipeline.hget(key, 'sb');
  const of = ((await pipeline.exec()) ?? []).map(([, id]) => String(id));
  const lengths = await Promise.all(shards.map((shard) => redis.client.xlen(`${prefix}{s${shard}}:out`)));
  return { of: of.sort(), left: lengths.reduce((sum, each) => sum + each, 0) };
}

async function clearMessages(): Promise<void> {
  for (const key of await redis.client.keys(`${prefix}{s*`)) await redis.client.del(key);
}
async function carryAll(storePage: StorePage): Promise<void> {
  const carrier = new OutboxCarrier({ redis: redis.client, prefix, storePage });
  for (const shard of shards) await carrier.carry(shard);
}

describe('the matches of an event with more than a thousand', () => {
  test('are counted, whatever is kept of them in memory', async () => {
    for (let times = 0; times < 2; times++) {
      const all = await match({ country: 'at' });
      expect([all.first.length, all.total, all.rest]).toEqual([1000, endpointCount, { from: 1000, end: endpointCount }]);
      const some = await match({ country: 'de' });
      expect([some.first.length, some.total]).toEqual([1000, (endpointCount * 9) / 10]);
      expect(some.rest).toEqual({ from: expect.any(Number), end: endpointCount });
    }
    const narrowed = await match({ country: 'at' }, applicationId);
    expect([narrowed.first.length, narrowed.total]).toEqual([1000, endpointCount / 2]);
  });

  test('are found anew when one of them changes', async () => {
    const last = subscriptions.at(-1) ?? '';
    await store.updateSubscription(org, last, { isEnabled: false });
    expect((await match({ country: 'at' })).total).toBe(endpointCount - 1);
    await store.updateSubscription(org, last, { isEnabled: true });
    expect((await match({ country: 'at' })).total).toBe(endpointCount);
  });
});

describe('an event with more than a thousand targets', () => {
  test('gets a message for each of them, once, whoever carries on and wherever they broke off', async () => {
    await clearMessages();
    const alone = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: systemClock });
    await alone.accept(eventOf(await match({ country: 'at' }), { country: 'at' }));
    let pages = 0;
    const dying: StorePage = async (...page) => {
      pages++;
      if (pages === 2) throw new Error('died before the page was stored');
      await sending.storePage(...page);
      if (pages === 3) throw new Error('died before the page was noted');
      return await sending.storePage(...page);
    };
    for (let times = 0; times < 2; times++) await expect(carryAll(dying)).rejects.toThrow('died');
    expect((await stored()).of.length).toBeLessThan(endpointCount);
    await Promise.all([carryAll(sending.storePage), carryAll(newSending().storePage)]);
    await carryAll(sending.storePage);
    expect(await stored()).toEqual({ of: [...subscriptions].sort(), left: 0 });
    // Only the copies in the other shard hold events now.
    expect(new Set(await redis.client.hvals(`${prefix}{s0}:far`))).toEqual(new Set([' 1']));
  }, 60_000);

  test('is carried on by whom it was accepted, without those that do not want it, and those that came later', async () => {
    await clearMessages();
    const matches = await match({});
    const late = await store.createEndpoint(newWebhookEndpoint(applicationId));
    const { id } = await store.createSubscription({ org, endpointId: late.id, eventTypeId: eventType.id });
    await sending.acceptor.accept(eventOf(matches, {}));
    const wanted = subscriptions.filter((_, i) => i % 10 !== 0);
    const deadline = Date.now() + 20_000;
    while ((await stored()).left > 0 && Date.now() < deadline) await systemClock.sleep(50);
    expect(await stored()).toEqual({ of: [...wanted].sort(), left: 0 });
    await store.deleteSubscription(org, id);
  }, 60_000);
});
