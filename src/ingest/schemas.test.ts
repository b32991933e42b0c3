import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest, keyPrefix } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { routeRecord } from '../../test/support/records.ts';
import { recordLayoutVersion } from '../core/records.ts';
import { AlertStates } from '../data/alerts/alert-states.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import type { IngestLimits } from './limits.ts';

let ingest: IngestUnderTest;
let reader: RedisMessageReader;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
  reader = new RedisMessageReader({ redis: ingest.redis.client, prefix: keyPrefix });
});
afterAll(() => ingest.stop());
const serve = async (limits: Partial<IngestLimits> = {}) => {
  await ingest.reset(limits, new RedisMessageAcceptor({ redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock }));
  await ingest.publishSource();
};
beforeEach(() => serve());

const schema = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } };
const publishSchema = (id: string, jsonSchema: object, generation = 1) =>
  ingest.publishSchema({
    v: recordLayoutVersion,
    id,
    org: 'org_a',
    jsonSchema: JSON.stringify(jsonSchema),
    version: generation,
    generation,
  });

function endless(): object {
  const twice = (next: string) => ({ anyOf: [{ $ref: next }, { $ref: next }] });
  const $defs = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`a${i}`, i === 39 ? { type: 'string' } : twice(`#/$defs/a${i + 1}`)]),
  );
  return { $defs, $ref: '#/$defs/a0' };
}

async function send(body: string) {
  const answer = await ingest.send('/ingest/acme/github', { body });
  expect(answer.status).toBe(200);
  const id = answer.body.eventId ?? '';
  const deliveries = await reader.deliveriesOfEvent('org_a', id);
  return { event: await reader.event('org_a', id), deliveries: Object.fromEntries(deliveries.map((each) => [each.routeId, each])) };
}

test('amounts of money are multiples of 0.01', async () => {
  await publishSchema('sch_a', { properties: { price: { multipleOf: 0.01 } } });
  await ingest.publishRoute({ schemaId: 'sch_a' });
  for (const price of [19.99, 143.48, 4.35])
    expect((await send(`{"price":${price}}`)).deliveries['rte_a']?.status).not.toBe('schema_failed');
  expect((await send('{"price":19.999}')).deliveries['rte_a']).toMatchObject({
    status: 'schema_failed',
    lastErrorMessage: 'payload/price must be multiple of 0.01',
  });
});

test('an event that breaks the schema of a route is a final delivery that says what is broken; other routes get it', async () => {
  await publishSchema('sch_a', schema);
  await ingest.publishRoute({ schemaId: 'sch_a' });
  await ingest.publishRoute({ id: 'rte_b', slug: 'b' });
  const broken = await send('{"id":5}');
  expect(broken.deliveries['rte_a']).toMatchObject({
    status: 'schema_failed',
    lastErrorMessage: 'payload/id must be string',
    attempts: 0,
    destinationId: null,
    completedAtMs: expect.any(Number),
  });
  expect(broken.deliveries['rte_b']).toMatchObject({ status: 'pending' });
  expect(broken.event?.status).toBe('pending');
  expect((await send('{"id":"5"}')).deliveries['rte_a']).toMatchObject({ status: 'pending', lastErrorMessage: null });
  expect((await send('not json')).deliveries['rte_a']).toMatchObject({ status: 'schema_failed', lastErrorMessage: 'payload is not JSON' });
});

test('an event that no route gets because of its payload has failed', async () => {
  await publishSchema('sch_a', schema);
  await ingest.publishRoute({ schemaId: 'sch_a' });
  expect((await send('{}')).event?.status).toBe('failed');
  expect((await reader.deliveries('org_a', { statuses: ['schema_failed'] }, { limit: 10 })).items).toHaveLength(1);
});

test('the schema comes before the filter', async () => {
  await publishSchema('sch_a', schema);
  const never = { logic: 'AND' as const, conditions: [{ field: 'never', operator: 'exists' as const }] };
  await ingest.publishRoute({ schemaId: 'sch_a', filter: never });
  expect((await send('{}')).deliveries['rte_a']?.status).toBe('schema_failed');
  expect((await send('{"id":"a"}')).deliveries['rte_a']?.status).toBe('filtered');
});

test('a changed schema holds for the next event', async () => {
  await publishSchema('sch_a', schema);
  await ingest.publishRoute({ schemaId: 'sch_a' });
  expect((await send('{}')).deliveries['rte_a']?.status).toBe('schema_failed');
  await publishSchema('sch_a', { type: 'object' }, 2);
  expect((await send('{}')).deliveries['rte_a']?.status).toBe('pending');
});

test('an event that breaks the schema of a route with alerts is logged for them, as failed at its first destination', async () => {
  await publishSchema('sch_a', schema);
  const notifications = { onFailure: true, onSuccess: false, onRecovery: false, failureThreshold: 1, channelIds: null, emails: [] };
  await ingest.publishRoute({ schemaId: 'sch_a', notifications });
  await ingest.publishRoute({ id: 'rte_b', slug: 'b', schemaId: 'sch_a' });
  const { deliveries } = await send('{}');
  const logged = await new AlertStates({ redis: ingest.redis.client, prefix: keyPrefix }).read(0, 'test');
  const [destination] = routeRecord().destinations;
  expect(logged?.entries).toMatchObject([
    { routeId: 'rte_a', destinationId: destination?.id, kind: 'f', count: 1, messageId: deliveries['rte_a']?.id },
  ]);
});

test('while the schema of a route is deleted nothing passes', async () => {
  await ingest.publishRoute({ schemaId: 'sch_gone' });
  expect((await send('{"id":"a"}')).deliveries['rte_a']).toMatchObject({
    status: 'schema_failed',
    lastErrorMessage: 'the schema of the route does not exist',
  });
});

test('an event whose schema takes for ever is accepted and fails by it, and does not hold up those of other sources', async () => {
  await serve({ checkDeadlineMs: 60_000 });
  await publishSchema('sch_a', endless());
  await ingest.publishRoute({ schemaId: 'sch_a' });
  await ingest.publishSource({ id: 'src_b', slug: 'other' });
  let ended = 0;
  // One after another they take a while.
  const slow = Array.from({ length: 2 }, async () => {
    const answer = await ingest.send('/ingest/acme/github', { body: '1' });
    ended += 1;
    return answer;
  });
  for (let i = 0; i < 5; i++) expect((await ingest.send('/ingest/acme/other', { body: '{}' })).status).toBe(200);
  expect(ended).toBeLessThan(slow.length);
  for (const { status, body } of await Promise.all(slow)) {
    expect(status).toBe(200);
    expect(await reader.deliveriesOfEvent('org_a', body.eventId ?? '')).toMatchObject([
      { routeId: 'rte_a', status: 'schema_failed', lastErrorMessage: expect.stringContaining('cannot be checked') },
    ]);
  }
});

test('the checks of requests that are over are not made', async () => {
  await ingest.reset({ checkDeadlineMs: 300 });
  await ingest.publishSource();
  await publishSchema('sch_a', endless());
  await ingest.publishRoute({ schemaId: 'sch_a' });
  const late = await Promise.all(Array.from({ length: 40 }, () => ingest.send('/ingest/acme/github', { body: '1' })));
  expect(late.map(({ status }) => status)).toEqual(late.map(() => 503));
  await publishSchema('sch_a', {}, 2);
  const startedAt = performance.now();
  await eventually('the sandbox is free', 60_000, async () => (await ingest.send('/ingest/acme/github', { body: '1' })).status === 200);
  // Forty checks, one after another, would take 80 seconds.
  expect(performance.now() - startedAt).toBeLessThan(60_000);
});
