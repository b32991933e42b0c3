import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { chunksOf, largeJson, largePayload, mebibyte, sha256 } from '../../../test/support/large-payloads.ts';
import { lenientBy } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { destinationRecord, routeRecord, transformRecord } from '../../../test/support/records.ts';
import { expectShortTurns } from '../../../test/support/short-work.ts';
import type { TransformRecord } from '../../core/records.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import type { NewEvent } from '../../data/shard/messages.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const suite = deliverySuite({ shards: 2 });
const { prefix, receiver, worker } = suite;

async function send(changes: Parameters<typeof newEvent>[0] = {}): Promise<NewEvent> {
  const event = newEvent({ payload: largePayload(), ...changes });
  await suite.acceptor.accept(event);
  return event;
}
const messageId = (event: NewEvent, at = 0): string => event.targets[at]?.messageId ?? '';

function signedDestination(url: string, changes: Parameters<typeof destinationRecord>[1] = {}): void {
  const sealed = testKeyring.seal(secret, recordSealingContext('org_a', 'destination', 'dst_a', 'signingSecrets'));
  suite.registry.put('destination', destinationRecord({ url, signingSecrets: [sealed] }, changes));
}

beforeEach(() => suite.registry.put('route', routeRecord()));

test('A payload of 25 MiB arrives byte for byte, signed, without a long turn of the event loop.', async () => {
  const to = await receiver();
  signedDestination(to.url);
  worker();
  const payload = largeJson(25 * mebibyte);
  await expectShortTurns(100, async () => {
    const event = await send({ payload });
    await suite.becomes(messageId(event), { status: 'delivered', attempts: 1 });
  });
  for (const { body, headers } of to.requests) {
    expect(body.equals(payload)).toBe(true);
    const texts = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    expect(() => new Webhook(secret).verify(body, texts)).not.toThrow();
  }
}, 120_000);

test('A payload above 1 MiB is sent again as it was with each retry, and by a replay of the dead letter.', async () => {
  const to = await receiver((response, number) => {
    response.statusCode = number < 3 ? 500 : 200;
    response.end();
  });
  signedDestination(to.url, { retryPolicy: { maxRetries: 1, initialDelayMs: 10, maxDelayMs: 10, backoffMultiplier: 1 } });
  worker();
  const event = await send({ maxAttempts: 2 });
  await suite.becomes(messageId(event), { status: 'dlq', attempts: 2 });
  const replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock, shards: () => 2 });
  const id = await replayer.replay('org_a', messageId(event));
  await suite.becomes(id, { status: 'delivered' });
  expect(to.requests.map(({ body }) => sha256(body))).toEqual(Array.from({ length: 3 }, () => sha256(event.payload)));
});

test('A message whose chunks are gone is a dead letter that reports it, and the next one is delivered.', async () => {
  const to = await receiver();
  signedDestination(to.url);
  const [lost, next] = [await send(), await send()];
  const keys = (await chunksOf(suite.redis.client, prefix, 1)).map(({ key }) => key);
  const [, ofLost = ''] = / (\w+)\/\d+\n/.exec(await suite.redis.client.getrange(`${prefix}{s0}:e:${lost.id.slice(6)}`, 0, 255)) ?? [];
  await suite.redis.client.del(...keys.filter((key) => key.includes(ofLost)));
  worker();
  await suite.becomes(messageId(lost), { status: 'dlq', deadLetterReason: 'payload_not_found' });
  await suite.becomes(messageId(next), { status: 'delivered' });
});

test('A worker has at most 64 MiB of large payloads of one target in memory; the others wait.', async () => {
  let open = 0;
  let most = 0;
  const to = await receiver((response) => {
    open++;
    most = Math.max(most, open);
    setTimeout(() => {
      open--;
      response.end();
    }, 300);
  });
  signedDestination(to.url);
  const events: NewEvent[] = [];
  for (let i = 0; i < 5; i++) events.push(await send({ payload: largePayload(25 * mebibyte) }));
  worker();
  for (const event of events) await suite.becomes(messageId(event), { status: 'delivered' });
  expect(most).toBeLessThanOrEqual(2);
}, 120_000);

test('Payloads above 1 MiB for a target that hangs leave memory to those for another target of the organization.', async () => {
  const hanging = await receiver(() => undefined);
  const to = await receiver();
  suite.registry.put('destination', destinationRecord({ url: hanging.url, timeoutMs: 300_000 }));
  suite.registry.put('destination', destinationRecord({ url: to.url }, { id: 'dst_b' }));
  suite.registry.put('route', routeRecord({ destinations: ['dst_a', 'dst_b'].map((id) => ({ id, shard: 0 })) }));
  worker({ concurrency: 64 });
  for (let i = 0; i < 4; i++) await send({ payload: largePayload(24 * mebibyte) });
  await hanging.arrived(2);
  const sibling = await send({ payload: largePayload(20 * mebibyte), destinations: ['dst_b'] });
  await suite.becomes(messageId(sibling), { status: 'delivered' });
}, 120_000);

test('An organization that is alone has 96 MiB of large payloads in memory of a worker.', async () => {
  const hanging = await receiver(() => undefined);
  for (const id of ['dst_a', 'dst_b'])
    suite.registry.put('destination', destinationRecord({ url: hanging.url, timeoutMs: 300_000 }, { id }));
  suite.registry.put('route', routeRecord({ destinations: ['dst_a', 'dst_b'].map((id) => ({ id, shard: 0 })) }));
  worker({ concurrency: 64 });
  for (const id of ['dst_a', 'dst_a', 'dst_b', 'dst_b']) await send({ payload: largePayload(24 * mebibyte), destinations: [id] });
  await hanging.arrived(4, 60_000);
}, 120_000);

describe('a transform of a payload above 1 MiB', () => {
  beforeEach(() => suite.registry.put('route', routeRecord({ transformId: 'trf_a' })));

  const codes: [TransformRecord['type'], string][] = [
    ['jsonata', '{"n": $count(payload.items), "kind": payload.kind}'],
    ['javascript', '({ n: event.payload.items.length, kind: event.payload.kind })'],
    ['liquid', '{"n":{{ payload.items.size }},"kind":"{{ payload.kind }}"}'],
  ];
  test.each(codes)('a transform of a payload above 1 MiB in %s sees all of it', async (type, code) => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    suite.registry.put('transform', transformRecord(code, { type }));
    worker({ maxPayloadBytes: 32 * mebibyte });
    const payload = largeJson(10 * mebibyte, { kind: 'large' });
    const event = await send({ payload });
    await suite.becomes(messageId(event), { status: 'delivered' });
    expect(JSON.parse(to.requests[0]?.body.toString() ?? '')).toEqual({ n: JSON.parse(payload.toString()).items.length, kind: 'large' });
  });

  const text = 'x'.repeat(2 * mebibyte);
  const object = JSON.stringify({ kind: 'large', text });
  const form = 'application/x-www-form-urlencoded';
  const multipart = `--x\r\nContent-Disposition: form-data; name="kind"\r\n\r\nlarge\r\n--x\r\nContent-Disposition: form-data; name="text"\r\n\r\n`;
  const json = 'application/json';
  const sent: [string, string, string, Buffer | string][] = [
    ['a form', form, '', `kind=large&text=${text}`],
    ['a small form', form, '', 'kind=large'],
    ['a multipart form', 'multipart/form-data; boundary=x', '', `${multipart}${text}\r\n--x--\r\n`],
    ['gzip', json, 'gzip', gzipSync(object, { level: 0 })],
    ['deflate', json, 'deflate', deflateSync(object, { level: 0 })],
    ['gzip that is small', json, 'gzip', gzipSync(object)],
    ['br that is small', json, 'br', brotliCompressSync(object)],
    ['zstd that is small', json, 'zstd', zstdCompressSync(object)],
  ];
  test.each(sent)('a transform of a payload above 1 MiB reads the fields of %s', async (_what, contentType, coding, payload) => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    const code = '{"kind": payload.kind}';
    suite.registry.put('transform', transformRecord(code));
    worker({ maxPayloadBytes: 32 * mebibyte });
    const headers: [string, string][] = coding === '' ? [] : [['content-encoding', coding]];
    const event = await send({ payload: Buffer.from(payload), contentType, headers });
    await suite.becomes(messageId(event), { status: 'delivered' });
    expect(to.requests[0]?.body.toString()).toBe('{"kind":"large"}');
  });

  test.each<[string, string, Buffer]>([
    ['is no gzip', 'gzip', largePayload(2 * mebibyte)],
    ['is a bomb', 'gzip', gzipSync(Buffer.alloc(33 * mebibyte, 'x'))],
    ['has a coding that is not known', 'aws-chunked', largePayload(2 * mebibyte)],
  ])('a transform of a payload above 1 MiB that %s ends the message with its reason', async (_what, coding, payload) => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    suite.registry.put('transform', transformRecord('1'));
    worker({ maxPayloadBytes: 32 * mebibyte });
    const event = await send({ payload, contentType: json, headers: [['content-encoding', coding]] });
    await suite.becomes(messageId(event), { status: 'transform_failed' });
    expect(to.requests).toHaveLength(0);
  });

  test('a transform of a payload above 1 MiB that needs too much memory or time ends the message with its reason', async () => {
    const to = await receiver();
    suite.registry.put('destination', destinationRecord({ url: to.url }));
    const code = '(() => { for (;;); })()';
    suite.registry.put('transform', transformRecord(code, { type: 'javascript' }));
    // A busy machine lets the code compute for as long as it may until its deadline.
    worker({ maxPayloadBytes: 32 * mebibyte, clock: lenientBy(6) });
    const event = await send({ payload: largeJson(2 * mebibyte) });
    await eventually(
      async () => expect(await suite.reader.delivery('org_a', messageId(event))).toMatchObject({ status: 'transform_failed' }),
      180_000,
    );
    expect(to.requests).toHaveLength(0);
  }, 240_000);
});
