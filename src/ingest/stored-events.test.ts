import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest, keyPrefix, signingSecret } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';

let ingest: IngestUnderTest;
let reader: RedisMessageReader;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
  reader = new RedisMessageReader({ redis: ingest.redis.client, prefix: keyPrefix });
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset({}, new RedisMessageAcceptor({ redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock })));

test('an answered event can be read, byte for byte, with a delivery for each route', async () => {
  await ingest.publishSource();
  await ingest.publishRoute();
  await ingest.publishRoute({ id: 'rte_b', slug: 'b', filter: { logic: 'AND', conditions: [{ field: 'never', operator: 'exists' }] } });
  const payload = Buffer.from([0x7b, 0x7d, 0x0a, 0x00, 0xff]);
  const { status, body } = await ingest.send('/ingest/acme/github', { headers: { 'Content-Type': 'text/x' }, body: payload });
  expect(status).toBe(200);
  const event = await reader.event('org_a', body.eventId ?? '');
  expect(event?.payload?.equals(payload)).toBe(true);
  expect(event).toMatchObject({
    source: 'github',
    method: 'POST',
    contentType: 'text/x',
    headers: [['content-type', 'text/x']],
    signatureValid: null,
  });
  const deliveries = await reader.deliveriesOfEvent('org_a', body.eventId ?? '');
  expect(deliveries.map(({ routeId, status: state }) => [routeId, state]).sort()).toEqual([
    ['rte_a', 'pending'],
    ['rte_b', 'filtered'],
  ]);
});

test('an event of GitLab is checked by its token, and stored without it', async () => {
  await ingest.publishSignedSource({ provider: 'gitlab' });
  const headers = { 'X-Gitlab-Event': 'Push Hook', 'X-Gitlab-Token': signingSecret };
  const { status, body } = await ingest.send('/ingest/acme/github', { headers });
  expect(status).toBe(200);
  const event = await reader.event('org_a', body.eventId ?? '');
  expect(event?.signatureValid).toBe(true);
  expect(event?.headers).toContainEqual(['x-gitlab-event', 'Push Hook']);
  expect(JSON.stringify(event?.headers)).not.toContain(signingSecret);
  expect((await ingest.send('/ingest/acme/github', { headers: { ...headers, 'X-Gitlab-Token': 'other' } })).status).toBe(401);
});

test('the credentials of a sender, in whatever header, are not stored', async () => {
  await ingest.publishSource();
  const credentials = { 'X-Api-Key': 'CANARY', 'X-Auth-Token': 'CANARY', 'X-Amz-Security-Token': 'CANARY', x_posthorn_signature: 'CANARY' };
  const { body } = await ingest.send('/ingest/acme/github', {
    headers: { ...credentials, 'X-Team': 'shop', 'Idempotency-Key': 'order-1' },
  });
  const headers = (await reader.event('org_a', body.eventId ?? ''))?.headers ?? [];
  expect(headers).toContainEqual(['x-team', 'shop']);
  expect(headers).toContainEqual(['idempotency-key', 'order-1']);
  expect(JSON.stringify(headers)).not.toContain('CANARY');
});

test('an event without routes has no_routes, one that no route matches is filtered, one with a target is pending', async () => {
  await ingest.publishSource();
  const statusOf = async (): Promise<string | undefined> => {
    const { body } = await ingest.send('/ingest/acme/github');
    return (await reader.event('org_a', body.eventId ?? ''))?.status;
  };
  expect(await statusOf()).toBe('no_routes');
  const never = { logic: 'AND' as const, conditions: [{ field: 'never', operator: 'exists' as const }] };
  await ingest.publishRoute({ destinations: [] });
  expect(await statusOf()).toBe('no_routes');
  await ingest.publishRoute({ filter: never, generation: 2 });
  expect(await statusOf()).toBe('filtered');
  await ingest.publishRoute({ id: 'rte_b', slug: 'b', enabled: false });
  expect(await statusOf()).toBe('pending');
});

test('an event names the one that it repeats from before the window', async () => {
  await ingest.publishSource();
  const acceptor = new RedisMessageAcceptor({ redis: ingest.redis.client, prefix: keyPrefix, clock: lenientClock });
  const event = newEvent({ duplicateOf: 'evt_00aaaaaaaaaaaaaaaaaaaaaaaaa' });
  expect([await acceptor.accept(event), await acceptor.accept(event)]).toEqual([true, false]);
  expect((await reader.event('org_a', event.id))?.duplicateOf).toBe('evt_00aaaaaaaaaaaaaaaaaaaaaaaaa');
  const { items } = await reader.events('org_a', {}, { limit: 10 });
  expect(items.map(({ duplicateOf }) => duplicateOf)).toEqual(['evt_00aaaaaaaaaaaaaaaaaaaaaaaaa']);
});

test('a Redis that is full is 503 with Retry-After', async () => {
  await ingest.publishSource();
  await ingest.publishRoute();
  await ingest.redis.client.config('SET', 'maxmemory', '1mb');
  try {
    const { status, headers } = await ingest.send('/ingest/acme/github');
    expect([status, headers['retry-after']]).toEqual([503, '1']);
  } finally {
    await ingest.redis.client.config('SET', 'maxmemory', '0');
  }
});

test('a source is published though Redis is full', async () => {
  await ingest.redis.client.config('SET', 'maxmemory', '1mb');
  try {
    await ingest.publishSource({ enabled: false });
    expect((await ingest.send('/ingest/acme/github')).body.code).toBe('SOURCE_DISABLED');
  } finally {
    await ingest.redis.client.config('SET', 'maxmemory', '0');
  }
});
