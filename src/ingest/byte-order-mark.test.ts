import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest, signingSecret } from '../../test/support/ingest.ts';
import type { Provider } from '../core/providers/providers.ts';
import { type RouteRecord, recordLayoutVersion } from '../core/records.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const path = '/ingest/acme/github';
const marked = (value: unknown): string => `\ufeff${JSON.stringify(value)}`;
const sizes: [string, object][] = [
  ['small', {}],
  ['large', { more: Array.from({ length: 5 }, () => 'x'.repeat(100_000)) }],
];

test.each(sizes)('filters find the fields of a %s payload with a byte order mark, and its bytes stay as they are', async (_size, more) => {
  await ingest.publishSource({ payloadLimitBytes: 1024 * 1024 });
  const filter: RouteRecord['filter'] = { logic: 'AND', conditions: [{ field: 'payload.items[0].sku', operator: 'equals', value: 'a' }] };
  await ingest.publishRoute({ filter });
  const body = marked({ items: [{ sku: 'a' }], ...more });
  await ingest.send(path, { body });
  await ingest.send(path, { body: marked({ items: [{ sku: 'b' }], ...more }) });
  const [first, second] = ingest.kept.events;
  expect(first).toMatchObject({ targets: [{ routeId: 'rte_a' }], filtered: [] });
  expect(first?.payload.equals(Buffer.from(body))).toBe(true);
  expect(second).toMatchObject({ targets: [], filtered: [{ routeId: 'rte_a' }] });
});

test('a schema checks a payload with a byte order mark', async () => {
  await ingest.publishSource();
  const jsonSchema = '{"required":["id"],"properties":{"id":{"type":"string"}}}';
  await ingest.publishSchema({ v: recordLayoutVersion, id: 'sch_a', org: 'org_a', jsonSchema, version: 1, generation: 1 });
  await ingest.publishRoute({ schemaId: 'sch_a' });
  await ingest.send(path, { body: marked({ id: 'a' }) });
  await ingest.send(path, { body: marked({ id: 1 }) });
  expect(ingest.kept.events.map(({ targets }) => targets.length)).toEqual([1, 0]);
});

test.each<[Provider, object]>([
  ['stripe', { id: 'evt_1' }],
  ['slack', { event_id: 'Ev1' }],
  ['paddle', { event_id: 'evt_1' }],
  ['intercom', { id: 'notif_1' }],
])('the delivery id of %s is read after a byte order mark: %j', async (provider, ids) => {
  await ingest.publishSource({ provider });
  const first = await ingest.send(path, { body: marked({ ...ids, n: 1 }) });
  const again = await eventually('a duplicate', 30_000, async () => {
    const { body } = await ingest.send(path, { body: marked({ ...ids, n: 2 }) });
    return body.duplicate === true ? body : undefined;
  });
  expect(again.eventId).toBe(first.body.eventId);
});

test('Slack gets its challenge back when a byte order mark is before it', async () => {
  await ingest.publishSignedSource({ provider: 'slack' });
  const body = marked({ token: 't', challenge: 'c', type: 'url_verification' });
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', signingSecret).update(`v0:${seconds}:${body}`).digest('hex');
  const headers = { 'X-Slack-Request-Timestamp': seconds, 'X-Slack-Signature': `v0=${signature}` };
  expect((await ingest.send(path, { headers, body })).body).toEqual({ challenge: 'c' });
});

test.each([
  ['JSON', 'application/json', (json: string) => json],
  ['a form', 'application/x-www-form-urlencoded', (json: string) => `payload=${encodeURIComponent(json)}`],
])('a signed event in %s with a byte order mark is known again under another delivery id', async (_what, contentType, written) => {
  await ingest.publishSignedSource({ provider: 'github' });
  const body = `\ufeff${written(JSON.stringify({ issue: { updated_at: '2026-01-31T12:00:00Z' } }))}`;
  const signature = `sha256=${createHmac('sha256', signingSecret).update(body).digest('hex')}`;
  let sent = 0;
  const send = () => {
    const headers = { 'X-Hub-Signature-256': signature, 'X-GitHub-Delivery': String(++sent), 'Content-Type': contentType };
    return ingest.send(path, { headers, body });
  };
  const first = await send();
  const again = await eventually('a duplicate', 30_000, async () => {
    const answer = await send();
    return answer.body.duplicate === true ? answer : undefined;
  });
  expect(again.body.eventId).toBe(first.body.eventId);
});
