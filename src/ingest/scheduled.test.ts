import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { IngestUnderTest } from '../../test/support/ingest.ts';

let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const path = '/ingest/acme/github';
const weekMs = 7 * 86_400_000;
const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
const send = (headers: Record<string, string | string[]>) => ingest.send(path, { headers, body: '{}' });

test('an event without the headers is not scheduled', async () => {
  await ingest.publishSource();
  await ingest.publishRoute();
  await send({});
  const [event] = ingest.kept.events;
  expect(event).not.toHaveProperty('notBeforeMs');
  expect(event?.targets[0]).not.toHaveProperty('notBeforeMs');
});

test.each([
  ['1', 1000],
  ['604800', weekMs],
  ['0060', 60_000],
])('x-posthorn-delay-seconds: %s counts from the receipt, for the event and each target', async (delay, ms) => {
  await ingest.publishSource();
  await ingest.publishRoute();
  expect((await send({ 'x-posthorn-delay-seconds': delay })).status).toBe(200);
  const [event] = ingest.kept.events;
  expect(event?.notBeforeMs).toBe((event?.receivedAtMs ?? 0) + ms);
  expect(event?.targets.map(({ notBeforeMs }) => notBeforeMs)).toEqual([event?.notBeforeMs]);
});

test.each([
  ['in UTC', () => inMs(3_600_000)],
  ['with an offset', () => inMs(3_600_000).replace('Z', '+00:00')],
  ['to the second', () => inMs(3_600_000).replace(/\.\d+Z/, 'Z')],
])('x-posthorn-deliver-at %s is taken', async (_, time) => {
  await ingest.publishSource();
  const at = time();
  expect((await send({ 'x-posthorn-deliver-at': at })).status).toBe(200);
  expect(ingest.kept.events[0]?.notBeforeMs).toBe(Date.parse(at));
});

test.each<Record<string, string>>([{ 'x-posthorn-delay-seconds': '0' }, { 'x-posthorn-deliver-at': '2020-01-01T00:00:00Z' }])(
  'an event with %j is sent at once',
  async (headers) => {
    await ingest.publishSource();
    expect((await send(headers)).status).toBe(200);
    expect(ingest.kept.events[0]).not.toHaveProperty('notBeforeMs');
  },
);

test('a scheduled event counts to the month when it is accepted', async () => {
  await ingest.publishSource({ monthlyMessages: 1 });
  await ingest.publishRoute();
  expect((await send({ 'x-posthorn-delay-seconds': '604800' })).status).toBe(200);
  const refused = await send({ 'x-posthorn-delay-seconds': '60' });
  expect([refused.status, refused.body.code]).toEqual([429, 'QUOTA_EXCEEDED']);
  expect((await send({})).status).toBe(429);
  expect(ingest.kept.events).toHaveLength(1);
});

describe('is refused, and leaves no dedup key', () => {
  test.each<[Record<string, string | string[]>, string]>([
    [{ 'x-posthorn-delay-seconds': '604801' }, 'x-posthorn-delay-seconds must be a whole number of seconds from 0 to 604800.'],
    [{ 'x-posthorn-delay-seconds': '1.5' }, 'x-posthorn-delay-seconds must be'],
    [{ 'x-posthorn-delay-seconds': '-1' }, 'x-posthorn-delay-seconds must be'],
    [{ 'x-posthorn-delay-seconds': '' }, 'x-posthorn-delay-seconds must be'],
    [{ 'x-posthorn-delay-seconds': '1e3' }, 'x-posthorn-delay-seconds must be'],
    [{ 'x-posthorn-delay-seconds': ['1', '2'] }, 'x-posthorn-delay-seconds must be'],
    [{ 'x-posthorn-deliver-at': 'tomorrow' }, 'x-posthorn-deliver-at must be a time in ISO 8601 with an offset'],
    [{ 'x-posthorn-deliver-at': '2030-01-01' }, 'x-posthorn-deliver-at must be a time'],
    [{ 'x-posthorn-deliver-at': '2030-01-01T00:00:00' }, 'x-posthorn-deliver-at must be a time'],
    [{ 'x-posthorn-deliver-at': '1893456000' }, 'x-posthorn-deliver-at must be a time'],
    [{ 'x-posthorn-deliver-at': '2126-01-01T00:00:00Z' }, 'x-posthorn-deliver-at must be at most 7 days ahead.'],
    [
      { 'x-posthorn-deliver-at': '2020-01-01T00:00:00Z', 'x-posthorn-delay-seconds': '5' },
      'x-posthorn-delay-seconds cannot be given together with x-posthorn-deliver-at.',
    ],
  ])('an event with %j', async (headers, message) => {
    await ingest.publishSource({ dedup: { strategy: 'idempotency_key', header: null, windowHours: 1 } });
    const key = { 'idempotency-key': 'one' };
    const answer = await ingest.send(path, { headers: { ...key, ...headers }, body: '{}' });
    expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.body.message).toContain(message);
    expect(ingest.kept.events).toEqual([]);
    expect((await ingest.send(path, { headers: key, body: '{}' })).body.duplicate).toBeUndefined();
  });
});
