import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { IngestUnderTest, keyPrefix } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { lenientSandbox } from '../../test/support/lenient-sandbox.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { hopHeader } from '../core/hops.ts';
import { derivedTimedId } from '../core/ids.ts';
import type { OwnEvent } from '../core/own-event.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { hasOwnSource } from '../data/registry/own-sources.ts';
import { acceptOwnEvent } from './accept-own-event.ts';

let ingest: IngestUnderTest;
const sandbox = lenientSandbox();
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(async () => {
  sandbox.close();
  await ingest.stop();
});
beforeEach(() => ingest.reset());

const path = '/ingest/acme/github';
const own = { provider: 'posthorn', slug: 'own', id: 'src_own' } as const;
const atMs = Date.UTC(2026, 10, 27);
const ownEvent = (changes: Partial<OwnEvent> = {}): OwnEvent => ({
  org: 'org_a',
  sourceId: 'src_own',
  id: derivedTimedId('evt_', 1, atMs, 'a'),
  atMs,
  hop: 2,
  payload: Buffer.from('{"type":"endpoint.disabled"}'),
  ...changes,
});
const accept = (event: OwnEvent, acceptor = ingest.kept as RedisMessageAcceptor | typeof ingest.kept) =>
  acceptOwnEvent({ registry: ingest.registry, logger: silentLogger, acceptor, sandbox }, event, AbortSignal.timeout(10_000));

describe('a source for own events', () => {
  test.each(['POST', 'GET', 'OPTIONS', 'HEAD'])('%s from outside is refused with 403', async (method) => {
    await ingest.publishSource({ ...own, allowedMethods: ['POST', 'GET'] });
    const answer = await ingest.send('/ingest/acme/own', { method, body: '' });
    expect(answer.status).toBe(403);
    if (method !== 'HEAD')
      expect(answer.body).toMatchObject({ code: 'FORBIDDEN', message: "The source receives Posthorn's own events only" });
    expect(ingest.kept.events).toEqual([]);
  });

  test('a source for own events is found by its organization while it is enabled', async () => {
    expect(await hasOwnSource(ingest.registry, 'org_a')).toBe(false);
    await ingest.publishSource(own);
    expect(await ingest.registry.ownSourceIdsOfOrganization('org_a')).toEqual(['src_own']);
    expect(await hasOwnSource(ingest.registry, 'org_a')).toBe(true);
    expect(await hasOwnSource(ingest.registry, 'org_b')).toBe(false);
    await ingest.publishSource({ ...own, enabled: false });
    await eventually(async () => expect(await hasOwnSource(ingest.registry, 'org_a')).toBe(false));
    expect(await ingest.registry.ownSourceIdsOfOrganization('org_a')).toEqual([]);
  });
});

describe('an own event', () => {
  test('an own event is evaluated by the schemas and filters of the routes, and has no other headers than its hops', async () => {
    await ingest.publishSource(own);
    const conditions = [{ field: 'payload.type', operator: 'equals' as const, value: 'endpoint.disabling' }];
    const schema = JSON.stringify({ type: 'object', required: ['data'] });
    await ingest.publishSchema({ v: 1, id: 'sch_a', org: 'org_a', version: 1, jsonSchema: schema, generation: 1 });
    await ingest.publishRoute({ id: 'rte_all', sourceId: 'src_own' });
    await ingest.publishRoute({ id: 'rte_none', sourceId: 'src_own', filter: { logic: 'AND', conditions } });
    await ingest.publishRoute({ id: 'rte_schema', sourceId: 'src_own', schemaId: 'sch_a' });
    await accept(ownEvent());
    expect(ingest.kept.events).toMatchObject([
      {
        ...{ id: ownEvent().id, org: 'org_a', sourceId: 'src_own', sourceSlug: 'own', receivedAtMs: atMs, method: 'POST' },
        ...{ contentType: 'application/json', signatureValid: null, payload: ownEvent().payload },
        targets: [{ routeId: 'rte_all' }],
        filtered: [{ routeId: 'rte_none' }],
        invalid: [{ routeId: 'rte_schema' }],
      },
    ]);
    expect(ingest.kept.events[0]?.headers.filter(([name]) => name !== 'content-type')).toEqual([[hopHeader, '2']]);
  });

  test.each([
    ['of another organization', own, { org: 'org_b' }],
    ['that is disabled', { ...own, enabled: false }, {}],
    ['of another provider', { ...own, provider: 'github' as const }, {}],
    ['that is gone', own, { sourceId: 'src_gone' }],
  ])('an own event is not accepted for a source %s', async (_, source, changes) => {
    await ingest.publishSource(source);
    await accept(ownEvent(changes));
    expect(ingest.kept.events).toEqual([]);
  });

  test('an own event is stored once, however often it is accepted, and counts for no month', async () => {
    const redis = ingest.redis.client;
    const acceptor = new RedisMessageAcceptor({ redis, prefix: keyPrefix, clock: lenientClock, shards: () => 4 });
    await ingest.publishSource({ ...own, monthlyMessages: 1 });
    await ingest.publishRoute({
      sourceId: 'src_own',
      destinations: [
        { id: 'dst_a', shard: 2 },
        { id: 'dst_b', shard: 3 },
      ],
    });
    await Promise.all([
      accept(ownEvent(), acceptor),
      accept(ownEvent(), acceptor),
      accept(ownEvent({ payload: Buffer.from('{}') }), acceptor),
    ]);
    const reader = new RedisMessageReader({ redis, prefix: keyPrefix, shards: () => 4 });
    expect((await reader.events('org_a', {}, { limit: 10 })).items).toHaveLength(1);
    await eventually(async () => expect(await reader.deliveriesOfEvent('org_a', ownEvent().id)).toHaveLength(2));
    expect(await redis.keys(`${keyPrefix}{intake:*`)).toEqual([]);
  });
});

describe('the hops of an event', () => {
  test.each(['0', '1', '8'])('an event with %s hops is taken, and keeps them', async (hop) => {
    await ingest.publishSource();
    expect((await ingest.send(path, { headers: { 'X-Posthorn-Hop': hop } })).status).toBe(200);
    expect(ingest.kept.events[0]?.headers).toContainEqual([hopHeader, hop]);
  });

  test.each(['9', '10', '-1', '1, 2', 'x', '08'])('an event with %s hops is refused', async (hop) => {
    await ingest.publishSource();
    const answer = await ingest.send(path, { headers: { 'X-Posthorn-Hop': hop } });
    expect([answer.status, answer.body.code]).toEqual([403, 'FORBIDDEN']);
    expect(answer.body.message).toMatch(/^x-posthorn-hop is .*, which is no whole number up to 8: /);
    expect(ingest.kept.events).toEqual([]);
  });
});
