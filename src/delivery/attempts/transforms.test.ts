import { gzipSync } from 'node:zlib';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientBy } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { destinationRecord, organizationRecord, routeRecord, transformRecord } from '../../../test/support/records.ts';
import type { TransformRecord } from '../../core/records.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { NewEvent } from '../../data/shard/messages.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
let replayer: RedisMessageReplayer;
const suite = deliverySuite();
const { prefix, receiver, worker } = suite;

beforeAll(() => {
  replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock });
});

function transform(type: TransformRecord['type'], code: string, generation = 1): void {
  suite.registry.put('transform', transformRecord(code, { type, generation }));
}
async function send(changes: Parameters<typeof newEvent>[0] = {}): Promise<NewEvent> {
  const event = newEvent({ contentType: 'application/json', payload: Buffer.from('{"id":"o-1","amount":5}'), ...changes });
  await suite.acceptor.accept(event);
  return event;
}
const messageId = (event: NewEvent, at = 0): string => event.targets[at]?.messageId ?? '';
async function ended(id: string, expected: object): Promise<void> {
  await eventually(async () => expect(await suite.reader.delivery('org_a', id)).toMatchObject(expected));
}

/** Code whose output is another one each time. */
const random = '({ made: Math.random() })';

describe('a delivery with a transform', () => {
  beforeEach(() => suite.registry.put('route', routeRecord({ transformId: 'trf_a' })));

  test.each<[string, string, string | null, Buffer]>([
    ['a form', 'application/x-www-form-urlencoded', null, Buffer.from('id=o-1')],
    ['a form with a field payload', 'application/x-www-form-urlencoded', null, Buffer.from('payload=%7B%22id%22%3A%22o-1%22%7D')],
    ['JSON in gzip', 'application/json', 'gzip', gzipSync('{"id":"o-1"}')],
  ])('a delivery with a transform sees the fields of %s', async (_what, contentType, encoding, payload) => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('jsonata', '{"order": payload.id}');
    worker();
    await send({
      contentType,
      payload,
      headers: [['content-type', contentType], ...(encoding === null ? [] : [['content-encoding', encoding] as [string, string]])],
    });
    const [request] = await to.arrived(1);
    expect(request?.body.toString()).toBe('{"order":"o-1"}');
    expect(request?.headers).not.toHaveProperty('content-encoding');
  });

  test('a delivery with a transform of a payload that cannot be decompressed reports it', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('jsonata', 'payload');
    worker();
    const event = await send({
      contentType: 'application/json',
      payload: gzipSync('{}').subarray(0, -4),
      headers: [['content-encoding', 'gzip']],
    });
    await ended(messageId(event), { status: 'transform_failed', lastErrorMessage: 'the payload is not valid gzip' });
  });

  test('a delivery with a transform carries the output, signed, as JSON, without the headers that spoke of the payload', async () => {
    const to = await receiver();
    const sealed = testKeyring.seal(secret, recordSealingContext('org_a', 'destination', 'dst_a', 'signingSecrets'));
    suite.registry.put('destination', destinationRecord({ url: to.url, signingSecrets: [sealed] }));
    transform('jsonata', '{"order": payload.id, "kind": headers."x-kind", "event": id, "source": source, "at": receivedAt}');
    worker();
    const headers: [string, string][] = [
      ['content-type', 'text/csv'],
      ['content-encoding', 'gzip'],
      ['digest', 'sha-256=abc'],
      ['x-kind', 'order'],
    ];
    const event = await send({ headers, contentType: 'text/csv' });
    const [request] = await to.arrived(1);
    expect(JSON.parse(request?.body.toString() ?? '')).toEqual({
      order: 'o-1',
      kind: 'order',
      event: event.id,
      source: event.sourceSlug,
      at: new Date(event.receivedAtMs).toISOString(),
    });
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json', 'x-kind': 'order', 'webhook-id': messageId(event) });
    expect(request?.headers).not.toHaveProperty('content-encoding');
    expect(request?.headers).not.toHaveProperty('digest');
    expect(() => new Webhook(secret).verify(request?.body.toString() ?? '', request?.headers as Record<string, string>)).not.toThrow();
    await ended(messageId(event), { status: 'delivered', attempts: 1 });
  });

  test.each([
    ['answers 200', 200, { errorType: null, errorMessage: expect.stringMatching(/^warning: .*9007199254740993 and 9007199254740992/) }],
    [
      'answers 410',
      410,
      { errorType: 'http_error', errorMessage: expect.stringMatching(/^the receiver answered 410; warning: .*9007199254740993/) },
    ],
  ])(
    'a delivery with a transform that cannot distinguish two numbers reports it in the attempt where the receiver %s',
    async (_what, status, attempt) => {
      const to = await receiver((response) => response.writeHead(status).end());
      suite.registry.put('destination', destinationRecord({ url: to.url }));
      transform('javascript', '(event) => event.payload');
      worker();
      const event = await send({ payload: Buffer.from('{"a":9007199254740993,"b":9007199254740992,"c":7615917337495251231}') });
      const [request] = await to.arrived(1);
      expect(request?.body.toString()).toBe('{"a":9007199254740992,"b":9007199254740992,"c":7615917337495251231}');
      await ended(messageId(event), { attempts: 1 });
      expect(await suite.reader.attempts('org_a', messageId(event))).toMatchObject([attempt]);
      if (status === 200) await ended(messageId(event), { status: 'delivered', lastErrorType: null, lastErrorMessage: null });
    },
  );

  test('a delivery with a transform does not contain the credentials of the sender, which older events have among their headers', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('jsonata', 'headers');
    worker();
    const headers: [string, string][] = [
      ['x-gitlab-event', 'Push Hook'],
      ['x-gitlab-token', 'the secret'],
      ['x-auth-token', 'another'],
    ];
    await send({ headers });
    const [request] = await to.arrived(1);
    expect(JSON.parse(request?.body.toString() ?? '')).toEqual({ 'x-gitlab-event': 'Push Hook' });
  });

  test('a delivery with a transform sends the same bytes on every retry, also after the transform has changed', async () => {
    const to = await receiver((response, number) => {
      if (number === 1) transform('javascript', '({ changed: true })', 2);
      response.writeHead(number < 3 ? 500 : 200).end();
    });
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('javascript', random);
    worker();
    const event = await send();
    const bodies = (await to.arrived(3)).map(({ body }) => body.toString());
    expect(bodies[0]).toMatch(/^\{"made":0\.\d+\}$/);
    expect(new Set(bodies).size).toBe(1);
    await ended(messageId(event), { status: 'delivered', attempts: 3 });
  });

  test('a delivery with a transform sends the same bytes again when it is replayed, also when the transform is gone by then', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('javascript', random);
    worker();
    const event = await send();
    await ended(messageId(event), { status: 'delivered' });
    suite.registry.put('route', routeRecord({ generation: 2 }));
    const replayed = await replayer.replay('org_a', messageId(event));
    await ended(replayed, { status: 'delivered', replayedFrom: messageId(event) });
    const bodies = to.requests.map(({ body }) => body.toString());
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).toBe(bodies[0]);
  });

  test('a delivery with a transform sends what was kept by a worker that died between transform and attempt', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('javascript', random);
    const event = await send();
    const queue = new RedisDeliveryQueue({ redis: suite.redis.client, prefix });
    const kept = { contentType: 'application/json', body: Buffer.from('{"made":"before"}') };
    const message = { messageKey: messageId(event).slice(-25), eventId: event.id, target: { routeId: 'rte_a' } };
    expect(await queue.output(message, kept)).toEqual(kept);
    worker();
    const [request] = await to.arrived(1);
    expect(request?.body.toString()).toBe('{"made":"before"}');
  });

  test('a delivery with a transform goes to all destinations of the route with one output, and what is kept goes with the event', async () => {
    const [one, other] = [await receiver(), await receiver()];
    suite.registry.put('destination', destinationRecord({ url: one.url }));
    suite.registry.put('destination', destinationRecord({ url: other.url }, { id: 'dst_b', slug: 'b' }));
    transform('javascript', random);
    worker();
    const event = await send({ destinations: ['dst_a', 'dst_b'] });
    const [first] = await one.arrived(1);
    const [second] = await other.arrived(1);
    expect(second?.body.toString()).toBe(first?.body.toString());
    await ended(messageId(event, 0), { status: 'delivered' });
    await ended(messageId(event, 1), { status: 'delivered' });
    expect(await suite.redis.client.keys(`${prefix}{s0}:y:*`)).toHaveLength(1);
    const queue = new RedisDeliveryQueue({ redis: suite.redis.client, prefix });
    await eventually(async () => {
      await queue.prune({ finishedMs: -1000, deadLettersMs: -1000 });
      expect(await suite.redis.client.keys(`${prefix}{s0}:[yem]:*`)).toEqual([]);
    });
  });

  test('a delivery with a transform fails for good when the code fails, with the reason, and can be replayed with better code', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('javascript', 'function transform(event) {\n  return event.payload.customer.name;\n}');
    worker();
    const event = await send();
    await ended(messageId(event), {
      status: 'transform_failed',
      attempts: 0,
      lastErrorMessage: expect.stringMatching(/^TypeError: .* \(line 2, column \d+\)$/),
      destinationId: 'dst_a',
      deadLetterReason: null,
      completedAtMs: expect.any(Number),
    });
    expect((await suite.reader.event('org_a', event.id))?.status).toBe('failed');
    expect((await suite.reader.deliveries('org_a', { statuses: ['transform_failed'] }, { limit: 10 })).items).toHaveLength(1);
    expect((await replayer.deadLetterStats('org_a')).total).toBe(0);
    transform('javascript', '({ fixed: true })', 2);
    const replayed = await replayer.replay('org_a', messageId(event));
    await ended(replayed, { status: 'delivered' });
    expect(to.requests.map(({ body }) => body.toString())).toEqual(['{"fixed":true}']);
  });

  test.each([
    ['function handler(event) { return event.payload; }', 'the code neither defines a function "transform" nor has a value'],
    ['const transform = { order: event.payload.id };', 'transform is not a function'],
    ['export default (event) => event.payload;', expect.stringMatching(/^SyntaxError: .* \(line 1, column \d+\)$/)],
  ])('a delivery with a transform fails with the reason when the code has no output for any event: %s', async (code, lastErrorMessage) => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('javascript', code);
    worker();
    const event = await send();
    await ended(messageId(event), { status: 'transform_failed', attempts: 0, lastErrorMessage });
    expect(to.requests).toHaveLength(0);
  });

  test.each(['const transform =', 'let transform =', 'var transform ='])(
    'carries the output of a function bound by %s',
    async (binding) => {
      const to = await receiver();
      suite.registry.put('destination', destinationRecord({ url: to.url }));
      transform('javascript', `${binding} (event) => ({ order: event.payload.id });`);
      worker();
      await send();
      const [request] = await to.arrived(1);
      expect(request?.body.toString()).toBe('{"order":"o-1"}');
    },
  );

  test('a delivery with a transform is filtered when there is no output', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('jsonata', 'payload.amount > 10 ? payload : null');
    worker();
    const event = await send();
    await ended(messageId(event), { status: 'filtered', attempts: 0, destinationId: 'dst_a', lastErrorMessage: null });
    expect((await suite.reader.event('org_a', event.id))?.status).toBe('filtered');
    expect(to.requests).toHaveLength(0);
  });

  test('a delivery with a transform sends a template as text', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    transform('liquid', 'Order {{ payload.id }} over {{ payload.amount }}');
    worker();
    await send();
    const [request] = await to.arrived(1);
    expect([request?.headers['content-type'], request?.body.toString()]).toEqual(['text/plain; charset=utf-8', 'Order o-1 over 5']);
  });

  test('a delivery with a transform waits while the transform is deleted, and continues when it is back', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    worker();
    const event = await send();
    await eventually(async () => expect(await suite.redis.client.scard(`${prefix}{s0}:paused`)).toBe(1));
    expect(to.requests).toHaveLength(0);
    transform('jsonata', 'payload.id');
    const [request] = await to.arrived(1);
    expect(request?.body.toString()).toBe('"o-1"');
    await ended(messageId(event), { status: 'delivered' });
  });
});

test('a payload with a byte order mark goes out byte for byte, and a transform reads it as JSON', async () => {
  const to = await receiver();
  suite.registry.put('destination', destinationRecord({ url: to.url }));
  const payload = Buffer.from('\ufeff{"id":"o-1"}');
  suite.registry.put('route', routeRecord());
  worker();
  await send({ payload });
  const [request] = await to.arrived(1);
  expect(request?.body.equals(payload)).toBe(true);
  suite.registry.put('route', routeRecord({ transformId: 'trf_a', generation: 2 }));
  transform('jsonata', 'payload.id');
  await send({ payload });
  const [, transformed] = await to.arrived(2);
  expect(transformed?.body.toString()).toBe('"o-1"');
});

test('endless transforms of one organization hold up neither the transforms of another nor deliveries without', async () => {
  const to = await receiver();
  for (const org of ['org_a', 'org_b']) suite.registry.put('organization', organizationRecord({ id: org, slug: org, namespace: org }));
  suite.registry.put('transform', transformRecord('while (true) {}', { id: 'trf_slow', type: 'javascript' }));
  suite.registry.put('transform', transformRecord('payload', { id: 'trf_fast', org: 'org_b' }));
  suite.registry.put('route', routeRecord({ id: 'rte_slow', transformId: 'trf_slow' }));
  suite.registry.put('route', routeRecord({ id: 'rte_fast', org: 'org_b', transformId: 'trf_fast' }));
  suite.registry.put('route', routeRecord({ id: 'rte_plain', org: 'org_b' }));
  suite.registry.put('destination', destinationRecord({ url: to.url }));
  suite.registry.put('destination', destinationRecord({ url: to.url }, { id: 'dst_b', org: 'org_b' }));
  const target = (routeId: string, destinationId: string) => ({
    ...newEvent().targets[0],
    routeId,
    destinationId,
    shard: 0,
    maxAttempts: 3,
  });
  const sendTo = async (org: string, routeId: string, destinationId: string): Promise<NewEvent> => {
    const { messageId: id = '', ...rest } = target(routeId, destinationId);
    return await send({ org, targets: [{ messageId: id, ...rest }] });
  };
  // A busy machine lets code compute for as long as it may until its deadline.
  worker({ clock: lenientBy(3) });
  const slow: NewEvent[] = [];
  for (let i = 0; i < 40; i++) slow.push(await sendTo('org_a', 'rte_slow', 'dst_a'));
  // The organization has to be known as a slow one.
  await eventually(
    async () => expect((await suite.reader.deliveries('org_a', { statuses: ['transform_failed'] }, { limit: 100 })).items).not.toEqual([]),
    120_000,
  );
  for (let i = 0; i < 20; i++) await sendTo('org_b', i % 2 === 0 ? 'rte_fast' : 'rte_plain', 'dst_b');
  await to.arrived(20, 60_000);
  const failed = (await suite.reader.deliveries('org_a', { statuses: ['transform_failed'] }, { limit: 100 })).items;
  expect(failed.length).toBeLessThan(slow.length);
}, 240_000);
