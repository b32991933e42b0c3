import { createHmac } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { type Answer, IngestUnderTest, keyPrefix, signingSecret } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { PosthornError } from '../core/errors.ts';
import type { Provider } from '../core/providers/providers.ts';
import { RedisStatisticsReader } from '../data/analytics/redis-statistics-reader.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { type Intake, RedisIntake } from '../data/intake/intake.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import type { EventView, MessageAcceptor, NewEvent } from '../data/shard/messages.ts';
import type { RedisClient } from '../redis/connection.ts';
import { systemClock } from '../runtime/system-clock.ts';

let ingest: IngestUnderTest;
let replica: IngestUnderTest;
let reader: RedisMessageReader;
const acceptorOn = (redis: RedisClient): RedisMessageAcceptor =>
  new RedisMessageAcceptor({ redis, prefix: keyPrefix, clock: lenientClock });

beforeAll(async () => {
  ingest = await IngestUnderTest.start();
  replica = await ingest.replica((redis) => ({ acceptor: acceptorOn(redis) }));
  reader = new RedisMessageReader({ redis: ingest.redis.client, prefix: keyPrefix, shards: () => 4 });
});
afterAll(async () => {
  await replica.stop();
  await ingest.stop();
});
beforeEach(() => ingest.reset({}, acceptorOn(ingest.redis.client)));

const path = '/ingest/acme/github';
const delivery = (id: string): OutgoingHttpHeaders => ({ 'X-GitHub-Delivery': id });
const storedEvents = async (): Promise<EventView[]> => (await reader.events('org_a', {}, { limit: 100 })).items;

/** The next response once the first event is stored, which is recorded after its own response. */
async function duplicateOf(send: () => Promise<Answer>): Promise<Answer> {
  return eventually('a duplicate', 30_000, async () => {
    const answer = await send();
    return answer.body.duplicate === true ? answer : undefined;
  });
}

describe('equal events', () => {
  test.each([
    ['without a route', []],
    ['for one shard', [1]],
    ['for several shards', [2, 1, 3]],
  ])('%s, 64 at once over two replicas, are stored once', async (_name, shards) => {
    await ingest.publishSource();
    if (shards.length > 0) await ingest.publishRoute({ destinations: shards.map((shard) => ({ id: `dst_${shard}`, shard })) });
    for (const each of [ingest, replica]) await each.send(path);
    const before = (await storedEvents()).length;
    const headers = delivery('72d3162e-cc78-11e3-81ab-4c9367dc0958');
    const answers = await Promise.all(Array.from({ length: 64 }, (_, i) => (i % 2 === 0 ? ingest : replica).send(path, { headers })));
    expect(answers.map(({ status }) => status)).toEqual(Array(64).fill(200));
    expect(new Set(answers.map(({ body }) => body.eventId)).size).toBe(1);
    expect(answers.filter(({ body }) => body.duplicate !== true).length).toBe(1);
    const events = await storedEvents();
    expect(events.length - before).toBe(1);
    expect(events[0]).toMatchObject({ id: answers[0]?.body.eventId, duplicateOf: null });
    await eventually(
      'all deliveries',
      30_000,
      async () => (await reader.deliveriesOfEvent('org_a', events[0]?.id ?? '')).length === shards.length,
    );
  });

  test('equal events are answered with the first one, and counted', async () => {
    await ingest.publishSource();
    const first = await ingest.send(path, { headers: delivery('a') });
    expect(first.body).toEqual({ success: true, eventId: expect.any(String) });
    expect((await duplicateOf(() => replica.send(path, { headers: delivery('a') }))).body).toEqual({
      success: true,
      eventId: first.body.eventId,
      duplicate: true,
    });
    expect((await ingest.send(path, { headers: delivery('b') })).body.duplicate).toBeUndefined();
    await duplicateOf(() => ingest.send(path, { headers: delivery('b') }));
    expect((await ingest.outcomes())['duplicate']).toBe(1);
    const statistics = new RedisStatisticsReader({ redis: ingest.redis.client, prefix: keyPrefix, clock: systemClock });
    await eventually('the counts', 30_000, async () => {
      const { duplicates, events } = await statistics.ofOrganization('org_a', '1h');
      return duplicates.get('src_a') === 2 && events.get('src_a') === 2;
    });
  });

  test('equal events of different sources are different', async () => {
    await ingest.publishSource();
    await ingest.publishSource({ id: 'src_b', slug: 'b' });
    await ingest.send(path, { headers: delivery('a') });
    expect((await ingest.send('/ingest/acme/b', { headers: delivery('a') })).body.duplicate).toBeUndefined();
  });
});

describe('the delivery id', () => {
  const ids: [Provider, OutgoingHttpHeaders, object][] = [
    ['github', { 'X-GitHub-Delivery': '1' }, {}],
    ['gitlab', { 'Idempotency-Key': '1' }, {}],
    ['gitlab', { 'webhook-id': '1' }, {}],
    ['stripe', {}, { id: 'evt_1' }],
    ['shopify', { 'X-Shopify-Webhook-Id': '1' }, {}],
    ['slack', {}, { event_id: 'Ev1' }],
    ['twilio', { 'I-Twilio-Idempotency-Token': '1' }, {}],
    ['paddle', {}, { event_id: 'evt_1' }],
    ['standard-webhooks', { 'webhook-id': 'msg_1' }, {}],
    ['svix', { 'svix-id': 'msg_1' }, {}],
    ['svix', { 'webhook-id': 'msg_1' }, {}],
    ['intercom', {}, { id: 'notif_1' }],
    ['sentry', { 'Request-ID': '1' }, {}],
    ['bitbucket', { 'X-Request-UUID': '1' }, {}],
  ];
  test.each(ids)('the delivery id of %s is known in %j %j, and other bodies with it are duplicates', async (provider, headers, body) => {
    await ingest.publishSource({ provider });
    const send = (more: object): Promise<Answer> => ingest.send(path, { headers, body: JSON.stringify({ ...body, ...more }) });
    const first = await send({ n: 1 });
    expect((await duplicateOf(() => send({ n: 2 }))).body.eventId).toBe(first.body.eventId);
    expect((await storedEvents()).length).toBe(1);
  });

  test('the delivery id of GitLab is the signed one where there are both, so that another idempotency key makes no new event', async () => {
    await ingest.publishSource({ provider: 'gitlab' });
    const send = (key: string): Promise<Answer> => ingest.send(path, { headers: { 'webhook-id': 'msg_1', 'Idempotency-Key': key } });
    const first = await send('1');
    expect((await duplicateOf(() => send('1'))).body.eventId).toBe(first.body.eventId);
    expect((await send('2')).body).toMatchObject({ eventId: first.body.eventId, duplicate: true });
  });

  test.each<[Provider, OutgoingHttpHeaders, string]>([
    ['generic', delivery('1'), '{"id":"1"}'],
    ['github', {}, '{}'],
    ['github', { 'X-GitHub-Delivery': '' }, '{}'],
    ['stripe', {}, '{"id":1}'],
    ['stripe', {}, 'no json'],
    ['stripe', {}, '["id"]'],
  ])('the delivery id that %s does not send makes no duplicates: %j %s', async (provider, headers, body) => {
    await ingest.publishSource({ provider });
    for (let i = 0; i < 3; i++) expect((await ingest.send(path, { headers, body })).body.duplicate).toBeUndefined();
    expect((await storedEvents()).length).toBe(3);
  });
});

describe('the strategy', () => {
  type Dedup = NonNullable<Parameters<IngestUnderTest['publishSource']>[0]>['dedup'];
  const dedup = (strategy: NonNullable<Dedup>['strategy'], header: string | null = null): Dedup => ({ strategy, header, windowHours: 1 });
  const body = { body: '{"a":1}' };

  test.each<[string, Dedup, object, object, boolean]>([
    ['payload_hash', dedup('payload_hash'), body, body, true],
    ['payload_hash, another body', dedup('payload_hash'), body, { body: '{"a": 1}' }, false],
    ['idempotency_key', dedup('idempotency_key'), { headers: { 'Idempotency-Key': 'k' } }, { headers: { 'idempotency-key': 'k' } }, true],
    [
      'idempotency_key, another key',
      dedup('idempotency_key'),
      { headers: { 'Idempotency-Key': 'k' } },
      { headers: { 'Idempotency-Key': 'l' } },
      false,
    ],
    [
      'idempotency_key in another header',
      dedup('idempotency_key', 'x-key'),
      { headers: { 'X-Key': 'k' } },
      { headers: { 'X-Key': 'k' } },
      true,
    ],
    ['provider_id in another header', dedup('provider_id', 'x-id'), { headers: { 'X-Id': 'k' } }, { headers: { 'X-Id': 'k' } }, true],
    ['provider_id', dedup('provider_id'), { headers: delivery('k') }, { headers: delivery('k') }, true],
    ['none', dedup('none'), { headers: delivery('k') }, { headers: delivery('k') }, false],
  ])('%s decides what is a duplicate', async (_name, strategy, first, second, isDuplicate) => {
    await ingest.publishSource({ dedup: strategy });
    await ingest.send(path, first);
    if (isDuplicate) await duplicateOf(() => ingest.send(path, second));
    else expect((await ingest.send(path, second)).body.duplicate).toBeUndefined();
    expect((await storedEvents()).length).toBe(isDuplicate ? 1 : 2);
  });
});

test('an event whose signature is wrong neither is a duplicate nor makes others one', async () => {
  await ingest.publishSignedSource({ rejectInvalidSignatures: false });
  const signed = { ...delivery('a'), 'X-Hub-Signature-256': `sha256=${createHmac('sha256', signingSecret).update('{}').digest('hex')}` };
  await ingest.send(path, { headers: delivery('a') });
  expect((await ingest.send(path, { headers: signed })).body.duplicate).toBeUndefined();
  await duplicateOf(() => ingest.send(path, { headers: signed }));
  expect((await ingest.send(path, { headers: delivery('a') })).body.duplicate).toBeUndefined();
});

/** A process that dies at this point: what it has not written by then it never writes. */
class DyingProcess implements MessageAcceptor {
  readonly #acceptor: MessageAcceptor;
  readonly #dies: 'before it stores' | 'after it has stored';

  constructor(acceptor: MessageAcceptor, dies: 'before it stores' | 'after it has stored') {
    this.#acceptor = acceptor;
    this.#dies = dies;
  }

  async accept(event: NewEvent): Promise<boolean> {
    if (this.#dies === 'after it has stored') await this.#acceptor.accept(event);
    throw new PosthornError('UNAVAILABLE', 'injected', { retryAfterSeconds: 1 });
  }
}

describe('a process that dies between claim and answer', () => {
  test.each([
    ['before it stores', false],
    ['before it stores', true],
    ['after it has stored', false],
    ['after it has stored', true],
  ] as const)('%s (says what happened: %p) neither loses the event nor stores it twice', async (dies, settles) => {
    await ingest.publishSource();
    await ingest.publishRoute({ destinations: [{ id: 'dst_b', shard: 2 }] });
    const dying = await ingest.replica((redis) => ({
      acceptor: new DyingProcess(acceptorOn(redis), dies),
      ...(!settles && { intake: withoutSettling(redis) }),
    }));
    try {
      expect((await dying.send(path, { headers: delivery('a') })).status).toBe(503);
    } finally {
      await dying.stop();
    }
    const again = await ingest.send(path, { headers: delivery('a') });
    expect([again.status, again.body.duplicate]).toEqual([200, dies === 'after it has stored' ? true : undefined]);
    const third = await ingest.send(path, { headers: delivery('a') });
    expect(third.body).toEqual({ success: true, eventId: again.body.eventId, duplicate: true });
    const [event, ...others] = await storedEvents();
    expect([event?.id, others]).toEqual([again.body.eventId, []]);
    expect(await reader.deliveriesOfEvent('org_a', event?.id ?? '')).toHaveLength(1);
  });
});

function withoutSettling(redis: RedisClient): Intake {
  const intake = new RedisIntake({ redis, prefix: keyPrefix, clock: systemClock });
  return {
    takeRequest: (...args) => intake.takeRequest(...args),
    accepted: (claim) => intake.accepted(claim),
    remainder: (claim) => intake.remainder(claim),
    claim: (claim) => intake.claim(claim),
    settle: async () => {},
    countDuplicate: async () => {},
  };
}

test('an event of an organization that has more than its share of Redis leaves no dedup key and uses no message of the month', async () => {
  const shares = { redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock, shards: () => 1, memoryLimitBytes: 50_000 };
  await ingest.reset({}, new RedisMessageAcceptor(shares));
  await ingest.publishSource({ monthlyMessages: 2 });
  await ingest.publishRoute();
  const send = (id: string, body = 'x'): Promise<Answer> => ingest.send(path, { headers: delivery(id), body });
  expect((await send('a', 'x'.repeat(30_000))).status).toBe(200);
  for (let time = 0; time < 3; time++) {
    const { status, headers, body } = await send('b');
    expect([status, body.code, headers['retry-after']]).toEqual([429, 'QUEUE_FULL', '10']);
  }
  await ingest.redis.client.del(`${keyPrefix}{s0}:ub`);
  const taken = await eventually('the event to be taken', 30_000, async () => {
    const answer = await send('b');
    return answer.status === 200 ? answer : undefined;
  });
  expect(taken.body).toEqual({ success: true, eventId: expect.any(String) });
  expect((await send('c')).body.code).toBe('QUOTA_EXCEEDED');
});

describe('the messages of a month', () => {
  test('the messages of a month end in 429 with the time to the next month; events for nobody still come in', async () => {
    await ingest.publishSource({ monthlyMessages: 3 });
    await ingest.publishSource({ id: 'src_b', slug: 'b', monthlyMessages: 3 });
    await ingest.publishRoute({ destinations: [1, 2].map((shard) => ({ id: `dst_${shard}`, shard })) });
    expect((await ingest.send(path)).status).toBe(200);
    const sentAt = new Date();
    const { status, headers, body } = await ingest.send(path);
    expect([status, body.code]).toEqual([429, 'QUOTA_EXCEEDED']);
    const nextMonthMs = Date.UTC(sentAt.getUTCFullYear(), sentAt.getUTCMonth() + 1);
    const retryAfter = Number(headers['retry-after']);
    expect(retryAfter).toBeLessThan((nextMonthMs - sentAt.getTime()) / 1000 + 5);
    expect(retryAfter).toBeGreaterThan((nextMonthMs - Date.now()) / 1000 - 5);
    expect((await ingest.send('/ingest/acme/b')).status).toBe(200);
    expect((await storedEvents()).length).toBe(2);
  });

  test('the messages of a month that are used up do not hide that an event is a duplicate, and leave no dedup key', async () => {
    await ingest.publishSource({ monthlyMessages: 1 });
    await ingest.publishRoute();
    const first = await ingest.send(path, { headers: delivery('a') });
    expect((await duplicateOf(() => ingest.send(path, { headers: delivery('a') }))).body.eventId).toBe(first.body.eventId);
    expect((await ingest.send(path, { headers: delivery('b') })).status).toBe(429);
    await ingest.publishSource({ monthlyMessages: 2, generation: 2 });
    expect((await ingest.send(path, { headers: delivery('b') })).body).toEqual({ success: true, eventId: expect.any(String) });
  });

  test('the messages of a month of an event that could not be stored are not used', async () => {
    await ingest.publishSource({ monthlyMessages: 1 });
    await ingest.publishRoute();
    await ingest.redis.client.hset(`${keyPrefix}{s0}:ctl`, 'full', '1');
    expect((await ingest.send(path)).status).toBe(503);
    await ingest.redis.client.hdel(`${keyPrefix}{s0}:ctl`, 'full');
    await eventually('200', 30_000, async () => (await ingest.send(path)).status === 200);
    expect((await storedEvents()).length).toBe(1);
  });
});
