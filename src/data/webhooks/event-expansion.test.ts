import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import type { Clock } from '../../core/clock.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { type FindFurtherTargets, OutboxCarrier } from '../queue/outbox-carrier.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent } from '../shard/messages.ts';
import { MatchCounter } from './match-counter.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { WebhookCandidates } from './webhook-candidates.ts';
import { WebhookMatcher, type WebhookMatches } from './webhook-matcher.ts';
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
  webhookSending({ redis: redis.client, prefix, clock: lenientClock, logger: silentLogger, store, maxAttempts: 8, windowPlaces: 500 });

function match(labels: Record<string, string>, narrowed: string | null = null): Promise<WebhookMatches> {
  const event = { type: eventType.name, data: {}, labels, metadata: {} };
  return sending.matcher.match(org, eventType.id, { applicationId: narrowed, endpointIds: [] }, event);
}

/** Once the index of the candidates is read: until then, not all matches are known. */
function counted(labels: Record<string, string>, narrowed: string | null = null): Promise<WebhookMatches> {
  return eventually('the matches to be counted', 60_000, async () => {
    const matches = await match(labels, narrowed);
    return matches.isCounted && matches;
  });
}

function eventOf(matches: WebhookMatches, labels: Record<string, string>, payload = '{}'): NewEvent {
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
    payload: Buffer.from(payload),
    signatureValid: null,
    duplicateOf: null,
    webhook: { labels, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [], total: matches.total },
    targets: matches.first.map((each) =>
      webhookTarget(each, { messageId: newTimedId('msg_', each.shard, nowMs), maxAttempts: 8, receivedAtMs: nowMs }),
    ),
    ...(matches.rest !== null && { further: matches.rest }),
    invalid: [],
    filtered: [],
  };
}

/** Subscriptions of all messages that there are, and how much the outboxes hold. */
async function stored(): Promise<{ of: string[]; left: number }> {
  const keys = await redis.client.keys(`${prefix}{s*}:m:*`);
  const pipeline = redis.client.pipeline();
  for (const key of keys) pipeline.hget(key, hashFields.message.subscription);
  const of = ((await pipeline.exec()) ?? []).map(([, id]) => String(id));
  const lengths = await Promise.all(shards.map((shard) => redis.client.xlen(`${prefix}{s${shard}}:out`)));
  return { of: of.sort(), left: lengths.reduce((sum, each) => sum + each, 0) };
}

async function clearMessages(): Promise<void> {
  for (const key of await redis.client.keys(`${prefix}{s*`)) await redis.client.del(key);
}
/** An acceptor carries on after its test, too; with pauses it would do so for longer. */
const restlessClock: Clock = { ...lenientClock, sleep: async () => undefined };

async function carryAll(findFurther: FindFurtherTargets): Promise<void> {
  const carrier = new OutboxCarrier({ redis: redis.client, prefix, findFurther });
  for (const shard of shards) await carrier.carry(shard);
}
const reader = () => new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards.length });

describe('the matches of an event with more than a thousand', () => {
  test('the matches of an event with more than a thousand are counted, whatever is kept of them in memory', async () => {
    for (let times = 0; times < 2; times++) {
      const all = await counted({ country: 'at' });
      expect([all.first.length, all.total, all.rest]).toEqual([1000, endpointCount, { from: 1000, end: endpointCount }]);
      const some = await counted({ country: 'de' });
      expect([some.first.length, some.total]).toEqual([1000, (endpointCount * 9) / 10]);
      expect(some.rest).toEqual({ from: expect.any(Number), end: endpointCount });
    }
    const narrowed = await counted({ country: 'at' }, applicationId);
    expect([narrowed.first.length, narrowed.total]).toEqual([1000, endpointCount / 2]);
  });

  test('the matches of an event with more than a thousand are found anew when one of them changes', async () => {
    const last = subscriptions.at(-1) ?? '';
    await store.updateSubscription(org, last, { isEnabled: false });
    expect((await counted({ country: 'at' })).total).toBe(endpointCount - 1);
    await store.updateSubscription(org, last, { isEnabled: true });
    expect((await counted({ country: 'at' })).total).toBe(endpointCount);
  });
});

describe('where the matches are not counted', () => {
  const countOf = (labels: Record<string, string>, atMost: number, of: Pick<WebhookSending, 'counter'> = sending): Promise<number> =>
    of.counter.total({
      org,
      eventTypeId: eventType.id,
      narrowing: { applicationId: null, endpointIds: [] },
      event: { type: eventType.name, data: {}, labels, metadata: {} },
      known: { first: [], total: 0, isCounted: false, rest: { from: 0, end: endpointCount } },
      atMost,
      signal: { aborted: false },
    });

  test('they are counted as an expansion finds them', async () => {
    const totals = await Promise.all([countOf({ country: 'at' }, endpointCount), countOf({ country: 'de' }, endpointCount)]);
    expect(totals).toEqual([endpointCount, (endpointCount * 9) / 10]);
  });

  test('the count ends once there are more than are allowed', async () => {
    let reads = 0;
    class Counting extends WebhookCandidates {
      override ofEventType(...args: Parameters<WebhookCandidates['ofEventType']>): ReturnType<WebhookCandidates['ofEventType']> {
        reads++;
        return super.ofEventType(...args);
      }
    }
    const candidates = new Counting({ redis: redis.client, prefix });
    const matcher = new WebhookMatcher({ candidates, store, clock: systemClock, logger: silentLogger, windowPlaces: 500 });
    expect(await countOf({ country: 'at' }, 300, { counter: new MatchCounter({ matcher, clock: systemClock }) })).toBe(500);
    expect(reads).toBe(20);
  });

  test('what takes too long is UNAVAILABLE, and so is one that too many wait before', async () => {
    const clock = new FakeClock();
    const { matcher } = sending;
    const counter = new MatchCounter({ matcher, clock });
    const waiting = Array.from({ length: 101 }, () => countOf({ country: 'at' }, endpointCount, { counter }));
    const last = waiting.pop();
    const others = Promise.allSettled(waiting);
    await expect(last).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    clock.jump(20_001);
    for (const outcome of await others) expect(outcome).toMatchObject({ reason: { code: 'UNAVAILABLE' } });
    expect(await countOf({ country: 'at' }, endpointCount, { counter })).toBe(endpointCount);
  });
});

describe('an event with more than a thousand targets', () => {
  test('an event with more than a thousand targets that is scheduled has no message that is sent before, those found later among them', async () => {
    await clearMessages();
    const notBeforeMs = Date.now() + 3_600_000;
    const event = eventOf(await match({ country: 'at' }), { country: 'at' });
    const targets = event.targets.map((target) => ({ ...target, notBeforeMs }));
    const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: restlessClock });
    await acceptor.accept({ ...event, notBeforeMs, targets });
    await carryAll(sending.findFurther);
    expect((await stored()).of).toHaveLength(endpointCount);
    const due = await Promise.all(shards.map((shard) => redis.client.zcount(`${prefix}{s${shard}}:due`, notBeforeMs, notBeforeMs)));
    expect(due.reduce((sum, each) => sum + each, 0)).toBe(endpointCount);
    expect((await checkShards({ redis: redis.client, prefix, shards: shards.length })).findings).toEqual([]);
  });

  test('an event with more than a thousand targets gets a message for each of them, once, whoever carries on and wherever they broke off', async () => {
    await clearMessages();
    const alone = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: restlessClock });
    const event = eventOf(await match({ country: 'at' }), { country: 'at' }, JSON.stringify('x'.repeat(100_000)));
    await alone.accept(event);
    let windows = 0;
    const dying: FindFurtherTargets = async (...window) => {
      windows++;
      if (windows === 2) throw new Error('died before it was stored');
      const found = await sending.findFurther(...window);
      // Somebody else is faster.
      if (windows === 3) await carryAll(async (...same) => ({ ...(await sending.findFurther(...same)), next: null }));
      return found;
    };
    await expect(carryAll(dying)).rejects.toThrow('died');
    expect((await stored()).of.length).toBeLessThan(endpointCount);
    await Promise.all([carryAll(sending.findFurther), carryAll(newSending().findFurther)]);
    await carryAll(sending.findFurther);
    expect(await stored()).toEqual({ of: [...subscriptions].sort(), left: 0 });
    // Only the copies in the other shard hold events now.
    expect(await redis.client.hvals(`${prefix}{s0}:far`)).toEqual([' 1']);
    expect((await checkShards({ redis: redis.client, prefix, shards: shards.length })).findings).toEqual([]);
  });

  test.each([
    { hasContention: false, pauses: 2 },
    { hasContention: true, pauses: 5 },
  ])(
    'an event with more than a thousand targets is carried with pauses of $pauses times as long as a script takes; other organizations wait: $isBesideOthers',
    async (expected) => {
      await clearMessages();
      const event = eventOf(await match({ country: 'at' }), { country: 'at' });
      await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: restlessClock }).accept(event);
      let nowMs = 0;
      const paused = new Set<number>();
      const clock = { now: () => nowMs++, after: () => () => undefined, sleep: async (ms: number) => void paused.add(ms) };
      const hasContention = (): boolean => expected.hasContention;
      const carrier = new OutboxCarrier({ redis: redis.client, prefix, findFurther: sending.findFurther, clock, hasContention });
      for (const shard of shards) await carrier.carry(shard);
      expect([...paused]).toEqual([expected.pauses]);
    },
  );

  test('an event with more than a thousand targets is stored once in a shard, stands once in lists and counts, and its messages know it', async () => {
    await clearMessages();
    const event = eventOf(await match({ country: 'at' }), { country: 'at' });
    await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: restlessClock }).accept(event);
    expect((await reader().event(event.org, event.id))?.status).toBe('pending');
    await carryAll(sending.findFurther);
    expect(await redis.client.keys(`${prefix}{s*}:e:*`)).toHaveLength(shards.length);
    expect((await reader().events(event.org, {}, { limit: 10 })).items.map(({ id }) => id)).toEqual([event.id]);
    expect((await reader().eventCounters(event.org, eventType.id)).events).toBe(1);
    const last = await reader().deliveries(event.org, {}, { limit: 100 });
    expect(new Set(last.items.map(({ eventId }) => eventId))).toEqual(new Set([event.id]));
    const inside = new Set(await redis.client.hvals(`${prefix}{s1}:refs`));
    expect(inside).toEqual(new Set([String(endpointCount / 2)]));
  });

  test('an event with more than a thousand targets is carried on by whom it was accepted, without those that do not want it, and those that came later', async () => {
    await clearMessages();
    const matches = await match({});
    const late = await store.createEndpoint(newWebhookEndpoint(applicationId));
    const { id } = await store.createSubscription({ org, endpointId: late.id, eventTypeId: eventType.id });
    await sending.acceptor.accept(eventOf(matches, {}));
    const wanted = subscriptions.filter((_, i) => i % 10 !== 0);
    const deadline = Date.now() + 60_000;
    while ((await stored()).left > 0 && Date.now() < deadline) await systemClock.sleep(50);
    expect(await stored()).toEqual({ of: [...wanted].sort(), left: 0 });
    await store.deleteSubscription(org, id);
  });

  test('an event with more than a thousand targets is carried with longer pauses by whom it was accepted while events of other organizations are accepted', async () => {
    const medians: number[] = [];
    for (const hasContention of [false, true]) {
      await clearMessages();
      // Each look at it takes a millisecond.
      let nowMs = 0;
      const pauses: number[] = [];
      const sleep = async (ms: number): Promise<void> => void pauses.push(ms);
      const clock = { now: () => nowMs++, after: () => () => undefined, sleep };
      const { findFurther } = sending;
      const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock, findFurther });
      const other = { ...eventOf({ first: [], total: 0, isCounted: true, rest: null }, {}), org: webhookOrganization('org_b') };
      if (hasContention) await acceptor.accept(other);
      await acceptor.accept(eventOf(await match({ country: 'at' }), { country: 'at' }));
      await eventually('all messages', 60_000, async () => (await stored()).left === 0);
      expect(pauses.length).toBeGreaterThan(50);
      medians.push(pauses.sort((a, b) => b - a)[Math.floor(pauses.length / 2)] ?? 0);
    }
    const [alone = 0, besideOthers = 0] = medians;
    expect(besideOthers).toBeGreaterThan(2 * alone);
  });

  test('an event with more than a thousand targets has its messages made in turn with those of other organizations', async () => {
    await clearMessages();
    const matches = await match({ country: 'at' });
    const few = { ...eventOf({ ...matches, first: matches.first.slice(0, 150), rest: null }, {}), org: webhookOrganization('org_b') };
    let pauses = 0;
    let pausesOfFew = 0;
    const sleep = async (): Promise<void> => {
      pauses++;
      if (pausesOfFew === 0 && (await reader().deliveriesOfEvent(few.org, few.id)).length === 150) pausesOfFew = pauses;
    };
    const clock = { now: () => 0, after: () => () => undefined, sleep };
    const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock, findFurther: sending.findFurther });
    await acceptor.accept(eventOf(matches, { country: 'at' }));
    await acceptor.accept(few);
    await eventually('all messages', 60_000, async () => (await stored()).left === 0);
    expect(pauses).toBeGreaterThan(200);
    expect(pausesOfFew).toBeGreaterThan(0);
    expect(pausesOfFew).toBeLessThan(50);
  });

  test('an event with more than a thousand targets that has a deadline gives it to all of its messages, and an endpoint an earlier one to its own', async () => {
    await clearMessages();
    const matches = await match({ country: 'at' });
    const event = eventOf(matches, { country: 'at' });
    const { endpointId = '' } = matches.first[0] ?? {};
    const last = (await store.endpointsById(org, [endpointId])).get(endpointId);
    expect(last?.expiresAfterSeconds).toBeNull();
    const withDeadline = {
      ...event,
      targets: [],
      webhook: { ...event.webhook, expiresAfterSeconds: 600 },
      further: { from: 0, end: endpointCount },
    };
    await store.updateEndpoint(org, endpointId, { expiresAfterSeconds: 60 });
    await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: restlessClock }).accept(withDeadline as NewEvent);
    await carryAll(sending.findFurther);
    const deadlines = new Map<number, number>();
    for (const key of await redis.client.keys(`${prefix}{s*}:m:*`)) {
      const seconds = (Number(await redis.client.hget(key, hashFields.message.expiresMs)) - event.receivedAtMs) / 1000;
      deadlines.set(seconds, (deadlines.get(seconds) ?? 0) + 1);
    }
    expect(Object.fromEntries(deadlines)).toEqual({ 60: 1, 600: endpointCount - 1 });
    await store.updateEndpoint(org, endpointId, { expiresAfterSeconds: null });
  });

  test('an event with more than a thousand targets that turns out to have none stays as long as others that nobody wants', async () => {
    await clearMessages();
    const event = eventOf({ first: [], total: 0, isCounted: true, rest: { from: 0, end: endpointCount } }, {});
    await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: restlessClock }).accept(event);
    await carryAll(async (_, { from }) => ({ targets: [], next: from === 0 ? 1 : null }));
    expect(await reader().event(event.org, event.id)).toMatchObject({ status: 'no_routes', deliveryCount: 0 });
    expect(await redis.client.xlen(`${prefix}{s0}:fin`)).toBe(1);
    expect(await redis.client.exists(`${prefix}{s0}:far`)).toBe(0);
  });

  test('an event with more than a thousand targets leaves nothing when the organization goes', async () => {
    await clearMessages();
    const event: NewEvent = { ...eventOf(await match({}), {}), answer: { text: 'kept', keptMs: 60_000 } };
    await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: restlessClock }).accept(event);
    await carryAll(sending.findFurther);
    expect((await stored()).of.length).toBeGreaterThan(2000);
    expect(await redis.client.keys(`${prefix}{s*}:an:*`)).toHaveLength(1);
    const purger = new RedisMessagePurger({ redis: redis.client, prefix, shards: shards.length });
    await purger.purgeOrganization(org, new AbortController().signal);
    for (const kind of ['[emxwti]', 'an']) expect(await redis.client.keys(`${prefix}{s*}:${kind}:*`)).toEqual([]);
  });
});
