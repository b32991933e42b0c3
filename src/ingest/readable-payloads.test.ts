import { createHmac } from 'node:crypto';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest, signingSecret } from '../../test/support/ingest.ts';
import { type RouteRecord, recordLayoutVersion } from '../core/records.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const path = '/ingest/acme/github';
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
const json = { 'Content-Type': 'application/json' };
const multipart = { 'Content-Type': 'multipart/form-data; boundary=x' };
const part = (name: string, value: string): string => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const large = { action: 'opened', more: Array.from({ length: 5 }, () => 'x'.repeat(100_000)) };

const bodies: [string, Record<string, string>, Buffer][] = [
  ['a form with JSON in its field payload', form, Buffer.from(`payload=${encodeURIComponent('{"action":"opened"}')}`)],
  ['a form', form, Buffer.from('action=opened&CallSid=CA1')],
  ['a multipart form', multipart, Buffer.from(`${part('action', 'opened')}${part('b', '2')}--x--\r\n`)],
  ['a body in gzip', { ...json, 'Content-Encoding': 'gzip' }, gzipSync('{"action":"opened"}')],
  ['a body in br', { ...json, 'Content-Encoding': 'br' }, brotliCompressSync('{"action":"opened"}')],
  ['a body in deflate', { ...json, 'Content-Encoding': 'deflate' }, deflateSync('{"action":"opened"}')],
  ['a form in gzip', { ...form, 'Content-Encoding': 'gzip' }, gzipSync('action=opened')],
  ['a large body in gzip', { ...json, 'Content-Encoding': 'gzip' }, gzipSync(JSON.stringify(large))],
];

test.each(bodies)('filters find the fields of %s, whose bytes stay as they are', async (_what, headers, body) => {
  await ingest.publishSource({ payloadLimitBytes: 1024 * 1024 });
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
  await ingest.publishSource({ payloadLimitBytes: 1024 * 1024 });
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
