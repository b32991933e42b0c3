import { createHmac, randomBytes } from 'node:crypto';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { IngestUnderTest, signingSecret } from '../../test/support/ingest.ts';
import { mebibyte } from '../../test/support/large-payloads.ts';
import { type RouteRecord, recordLayoutVersion } from '../core/records.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset({}, undefined, { maxPayloadBytes: 8 * mebibyte }));

const path = '/ingest/acme/github';
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
const json = { 'Content-Type': 'application/json' };
const multipart = { 'Content-Type': 'multipart/form-data; boundary=x' };
const part = (name: string, value: string): string => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const large = { action: 'opened', more: Array.from({ length: 5 }, () => 'x'.repeat(100_000)) };

/** As sent above 1 MiB where nothing compresses them, below it where they are compressed well: decoded they are above 1 MiB. */
const text = 'x'.repeat(2 * mebibyte);
const coded = (name: string): Record<string, string> => ({ ...json, 'Content-Encoding': name });
const largeObject = Buffer.from(JSON.stringify({ action: 'opened', text }));
const stored = { level: 0 };
const largeBodies: [string, Record<string, string>, Buffer][] = [
  ['a form above 1 MiB', form, Buffer.from(`text=${text}&action=opened`)],
  ['a form above 1 MiB with JSON in its field payload', form, Buffer.from(`payload=${encodeURIComponent(largeObject.toString())}`)],
  ['a multipart form above 1 MiB', multipart, Buffer.from(`${part('text', text)}${part('action', 'opened')}--x--\r\n`)],
  ['a body above 1 MiB in gzip', coded('gzip'), gzipSync(largeObject, stored)],
  ['a body above 1 MiB in deflate', coded('deflate'), deflateSync(largeObject, stored)],
  [
    'a body above 1 MiB in br',
    coded('br'),
    brotliCompressSync(Buffer.from(JSON.stringify({ action: 'opened', random: randomBytes(2 * mebibyte).toString('base64') }))),
  ],
  [
    'a body above 1 MiB in zstd',
    coded('zstd'),
    zstdCompressSync(Buffer.from(JSON.stringify({ action: 'opened', random: randomBytes(2 * mebibyte).toString('base64') }))),
  ],
  ['a form above 1 MiB in gzip', { ...form, 'Content-Encoding': 'gzip' }, gzipSync(`text=${text}&action=opened`, stored)],
  ['a small body in gzip that is above 1 MiB without it', coded('gzip'), gzipSync(largeObject)],
  ['a small body in br that is above 1 MiB without it', coded('br'), brotliCompressSync(largeObject)],
  [
    'a small form in two codings that is above 1 MiB without them',
    { ...form, 'Content-Encoding': 'gzip, zstd' },
    zstdCompressSync(gzipSync(`text=${text}&action=opened`)),
  ],
];

const bodies: [string, Record<string, string>, Buffer][] = [
  ['a form with JSON in its field payload', form, Buffer.from(`payload=${encodeURIComponent('{"action":"opened"}')}`)],
  ['a form', form, Buffer.from('action=opened&CallSid=CA1')],
  ['a multipart form', multipart, Buffer.from(`${part('action', 'opened')}${part('b', '2')}--x--\r\n`)],
  ['a body in gzip', { ...json, 'Content-Encoding': 'gzip' }, gzipSync('{"action":"opened"}')],
  ['a body in br', { ...json, 'Content-Encoding': 'br' }, brotliCompressSync('{"action":"opened"}')],
  ['a body in deflate', { ...json, 'Content-Encoding': 'deflate' }, deflateSync('{"action":"opened"}')],
  ['a form in gzip', { ...form, 'Content-Encoding': 'gzip' }, gzipSync('action=opened')],
  ['a large body in gzip', { ...json, 'Content-Encoding': 'gzip' }, gzipSync(JSON.stringify(large))],
  ['a body in zstd', coded('zstd'), zstdCompressSync('{"action":"opened"}')],
  ...largeBodies,
];

const takesLarge = { payloadLimitBytes: mebibyte, largePayloadLimitBytes: 8 * mebibyte };

test.each(bodies)('filters find the fields of %s, whose bytes stay as they are', async (_what, headers, body) => {
  await ingest.publishSource(takesLarge);
  const filter: RouteRecord['filter'] = { logic: 'AND', conditions: [{ field: 'payload.action', operator: 'equals', value: 'opened' }] };
  await ingest.publishRoute({ filter });
  await ingest.send(path, { headers, body });
  await ingest.send(path, { headers, body: Buffer.from('action=closed') });
  const [first, second] = ingest.kept.events;
  expect(first).toMatchObject({ targets: [{ routeId: 'rte_a' }], filtered: [] });
  expect(first?.payload.equals(body)).toBe(true);
  expect(second).toMatchObject({ targets: [], filtered: [{ routeId: 'rte_a' }] });
});

test.each(bodies)('a schema checks the fields of %s', async (_what, headers, body) => {
  await ingest.publishSource(takesLarge);
  const schemas = { sch_a: '{"required":["action"],"properties":{"action":{"const":"opened"}}}', sch_b: '{"required":["missing"]}' };
  for (const [id, jsonSchema] of Object.entries(schemas))
    await ingest.publishSchema({ v: recordLayoutVersion, id, org: 'org_a', jsonSchema, version: 1, generation: 1 });
  await ingest.publishRoute({ schemaId: 'sch_a' });
  await ingest.send(path, { headers, body });
  await ingest.publishRoute({ schemaId: 'sch_b' });
  await ingest.send(path, { headers, body });
  expect(ingest.kept.events.map(({ targets }) => targets.length)).toEqual([1, 0]);
});

test('the signature of a compressed body covers the bytes as they were sent', async () => {
  await ingest.publishSignedSource({ provider: 'github' });
  const body = gzipSync('{"action":"opened"}');
  const signature = `sha256=${createHmac('sha256', signingSecret).update(body).digest('hex')}`;
  const headers = { ...json, 'Content-Encoding': 'gzip', 'X-Hub-Signature-256': signature };
  expect((await ingest.send(path, { headers, body })).status).toBe(200);
  expect(ingest.kept.events).toMatchObject([{ signatureValid: true }]);
});

const withId = { id: 'evt-1', text: 'x'.repeat(2 * mebibyte) };
test.each<[string, Record<string, string>, Buffer]>([
  ['a form', form, Buffer.from('a=1&id=evt-1')],
  ['a form above 1 MiB', form, Buffer.from(`text=${withId.text}&id=evt-1`)],
  ['a multipart form', multipart, Buffer.from(`${part('id', 'evt-1')}--x--\r\n`)],
  ['a multipart form above 1 MiB', multipart, Buffer.from(`${part('text', withId.text)}${part('id', 'evt-1')}--x--\r\n`)],
  ['a body in gzip', coded('gzip'), gzipSync('{"id":"evt-1"}')],
  ['a body above 1 MiB in gzip', coded('gzip'), gzipSync(JSON.stringify(withId), stored)],
  ['a small body in br that is above 1 MiB without it', coded('br'), brotliCompressSync(JSON.stringify(withId))],
])('an event is known by an id among the fields of %s when it comes again', async (_what, headers, body) => {
  await ingest.publishSource({ ...takesLarge, provider: 'intercom' });
  const first = await ingest.send(path, { headers, body });
  const again = await ingest.send(path, { headers: json, body: '{"id":"evt-1"}' });
  expect(again.body).toMatchObject({ duplicate: true, eventId: first.body.eventId });
});

test.each<[string, (text: string) => Buffer, string]>([
  ['gzip', (text) => gzipSync(text), 'gzip'],
  ['br', (text) => brotliCompressSync(text), 'br'],
  ['zstd', (text) => zstdCompressSync(text), 'zstd'],
  ['deflate', (text) => deflateSync(text), 'deflate'],
])('A bomb in %s has no fields, and breaks the schema of its route.', async (_what, compress, coding) => {
  await ingest.publishSource(takesLarge);
  const jsonSchema = '{"required":["action"]}';
  await ingest.publishSchema({ v: recordLayoutVersion, id: 'sch_a', org: 'org_a', jsonSchema, version: 1, generation: 1 });
  await ingest.publishRoute({ schemaId: 'sch_a' });
  const filter: RouteRecord['filter'] = { logic: 'AND', conditions: [{ field: 'action', operator: 'equals', value: 'opened' }] };
  await ingest.publishRoute({ id: 'rte_b', slug: 'b', filter });
  const body = compress(JSON.stringify({ action: 'opened', text: 'x'.repeat(33 * mebibyte) }));
  expect((await ingest.send(path, { headers: coded(coding), body })).status).toBe(200);
  expect(ingest.kept.events).toMatchObject([{ targets: [], invalid: [{ routeId: 'rte_a' }], filtered: [{ routeId: 'rte_b' }] }]);
});

const twilioForms: [string, string][] = [
  ['below 1 MiB', 'x'.repeat(1000)],
  ['above 1 MiB', 'ü +&'.repeat(mebibyte)],
];
describe.each(twilioForms)('a form of Twilio %s', (_size, value) => {
  const publicUrl = 'https://hooks.example.com';
  const body = new URLSearchParams({ MessageSid: 'SM1', Body: value, AccountSid: 'AC1' }).toString();
  const signature = createHmac('sha1', signingSecret).update(`${publicUrl}${path}AccountSidAC1Body${value}MessageSidSM1`).digest('base64');
  const headers = { ...form, 'X-Twilio-Signature': signature };
  beforeEach(async () => {
    await ingest.reset({}, undefined, { maxPayloadBytes: 16 * mebibyte, publicUrl });
    await ingest.publishSignedSource({ payloadLimitBytes: mebibyte, largePayloadLimitBytes: 16 * mebibyte, provider: 'twilio' });
  });

  test('has its signature checked', async () => {
    expect((await ingest.send(path, { headers, body })).status).toBe(200);
    const other = await ingest.send(path, { headers, body: body.replace('AC1', 'AC2') });
    expect(other.body.code).toBe('INVALID_SIGNATURE');
    expect(ingest.kept.events).toMatchObject([{ signatureValid: true }]);
  });

  test('is known again by what was signed', async () => {
    const first = await ingest.send(path, { headers, body });
    const again = await ingest.send(path, { headers: { ...headers, 'I-Twilio-Idempotency-Token': 'another' }, body });
    expect(again.body).toMatchObject({ duplicate: true, eventId: first.body.eventId });
  });

  test('meets a filter by one of its fields', async () => {
    const filter = (wanted: string): RouteRecord['filter'] => ({
      logic: 'AND',
      conditions: [{ field: 'MessageSid', operator: 'equals', value: wanted }],
    });
    await ingest.publishRoute({ filter: filter('SM1') });
    await ingest.publishRoute({ id: 'rte_b', slug: 'b', filter: filter('SM2') });
    expect((await ingest.send(path, { headers, body })).status).toBe(200);
    expect(ingest.kept.events).toMatchObject([{ targets: [{ routeId: 'rte_a' }], filtered: [{ routeId: 'rte_b' }] }]);
  });
});
