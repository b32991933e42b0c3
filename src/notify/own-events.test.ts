import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { pino } from 'pino';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { eventually } from '../../test/support/eventually.ts';
import { expireMessages } from '../../test/support/expire-messages.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { lenientSandbox } from '../../test/support/lenient-sandbox.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { waitForPeriodStart } from '../../test/support/wait-for-period-start.ts';
import { hopHeader } from '../core/hops.ts';
import { newTimedId } from '../core/ids.ts';
import type { RouteRecord } from '../core/records.ts';
import { checkShards } from '../data/check/shard-check.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessagePurger } from '../data/purge/message-purger.ts';
import { Circuits } from '../data/queue/circuits.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';
import { hashFields } from '../data/shard/hash-fields.ts';

const prefix = 'test:';
const shards = 3;
let redis: RedisServer;
let registry: RecordRegistry;
let acceptor: RedisMessageAcceptor;
let reader: RedisMessageReader;
let shop: Receiver;
let ops: Receiver;
let shopAnswers: number;
let opsAnswers: number;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  [shopAnswers, opsAnswers] = [500, 200];
  shop = await startReceiver((response) => response.writeHead(shopAnswers).end());
  ops = await startReceiver((response) => response.writeHead(opsAnswers).end());
  ends.push(
    () => shop.close(),
    () => ops.close(),
  );
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock, shards: () => shards });
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  registry.put('source', sourceRecord());
  destination('dst_a', shop.url);
  destination('dst_ops', ops.url, 1);
  route({});
  ownSource();
  route({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 1 }] });
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const once = { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
const lasting = { failureThreshold: 1000, cooldownSeconds: 600, probeSuccessThreshold: 1 };
function destination(id: string, url: string, shard = 0): void {
  registry.put('destination', destinationRecord({ url }, { id, shard, retryPolicy: once }));
}
function route(changes: Partial<RouteRecord>): void {
  registry.put('route', routeRecord({ circuit: lasting, ...changes }));
}
function ownSource(changes: { enabled?: boolean } = {}): void {
  registry.put('source', sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn', ...changes }));
}
function worker(): void {
  ends.push(startAlertingWorker(redis, { prefix, registry, shards }));
}
/** An event for `dst_a`; returns the id of its delivery. */
async function send(headers: [string, string][] = []): Promise<string> {
  const nowMs = Date.now();
  const messageId = newTimedId('msg_', 0, nowMs);
  const target = { messageId, routeId: 'rte_a', destinationId: 'dst_a', shard: 0, maxAttempts: 1 };
  await acceptor.accept({ ...newEvent(), id: newTimedId('evt_', 0, nowMs), headers, targets: [target] });
  return messageId;
}
/** Its message ends before there is a worker. Returns its id. */
async function expiredUnseen(target: { routeId: string; destinationId: string; shard: number }): Promise<string> {
  const nowMs = Date.now();
  const messageId = newTimedId('msg_', 0, nowMs);
  const targets = [{ ...target, messageId, maxAttempts: 1, expiresAtMs: nowMs + 60_000 }];
  await acceptor.accept({ ...newEvent(), id: newTimedId('evt_', 0, nowMs), targets });
  await expireMessages(redis.client, `${prefix}{s0}:`);
  await new RedisDeliveryQueue({ redis: redis.client, prefix }).promote();
  return messageId;
}
async function ended(ids: readonly string[], status: string): Promise<void> {
  await eventually(async () => {
    for (const id of ids) expect((await reader.delivery('org_a', id))?.status).toBe(status);
  });
}
async function sendAndFail(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await send());
  await ended(ids, 'dlq');
  return ids;
}
const nothingUnderWay = () =>
  eventually(async () => {
    for (let shard = 0; shard < shards; shard++) expect(await redis.client.exists(`${prefix}{s${shard}}:ends`)).toBe(0);
    // Every event about them is accepted, and has its messages once no shard has any for another one.
    for (let shard = 0; shard < shards; shard++) expect(await redis.client.xlen(`${prefix}{s${shard}}:out`)).toBe(0);
    expect((await checkShards({ redis: redis.client, prefix, shards })).unfinished).toBe(0);
  });
const told = () => ops.requests.map(({ body }) => JSON.parse(body.toString()));
const types = (): string[] => told().map(({ type }) => type);
const ownEventsStored = async (): Promise<number> => (await reader.events('org_a', { sourceId: 'src_own' }, { limit: 100 })).items.length;

describe('a dead letter', () => {
  test('a dead letter is reported to the routes of the source, as the documented JSON', async () => {
    worker();
    const [id = ''] = await sendAndFail(1);
    const [request] = await ops.arrived(1);
    const delivery = await reader.delivery('org_a', id);
    expect(request).toMatchObject({ method: 'POST', headers: { 'content-type': 'application/json', [hopHeader]: '1' } });
    expect(told()[0]).toEqual({
      type: 'message.dead_lettered',
      occurredAt: expect.stringMatching(/^\d{4}-.*Z$/),
      organization: 'org_a',
      omitted: 0,
      data: {
        messageId: id,
        eventId: delivery?.eventId,
        routeId: 'rte_a',
        destinationId: 'dst_a',
        reason: 'max_retries_exceeded',
        attempts: 1,
        responseStatus: 500,
        errorType: 'http_error',
        errorMessage: 'the receiver answered 500',
      },
    });
  });

  test('a dead letter goes through the filters of the routes', async () => {
    const conditions = [{ field: 'payload.type', operator: 'starts_with' as const, value: 'destination.' }];
    route({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 1 }], filter: { logic: 'AND', conditions } });
    route({ circuit: { ...lasting, failureThreshold: 1 } });
    worker();
    await sendAndFail(1);
    await ops.arrived(1);
    await nothingUnderWay();
    expect(types()).toEqual(['destination.circuit_opened']);
    expect(await ownEventsStored()).toBe(2);
  });

  test('dead letters beyond 20 in a minute are left out and counted in the next event', async () => {
    worker();
    await waitForPeriodStart(60_000);
    await sendAndFail(50);
    await nothingUnderWay();
    expect(ops.requests).toHaveLength(20);
    const noted = (await redis.client.hget(`${prefix}{s0}:oe:org_a`, hashFields.ownEvents.dead)) ?? '';
    await redis.client.hset(`${prefix}{s0}:oe:org_a`, hashFields.ownEvents.dead, noted.replace(/^\d+/, '1'));
    await sendAndFail(1);
    await ops.arrived(21);
    expect(told().reduce((sum, { omitted }) => sum + 1 + omitted, 0)).toBe(51);
    expect(await redis.client.pttl(`${prefix}{s0}:oe:org_a`)).toBeGreaterThan(0);
  });

  test('dead letters of a deleted route that no worker has configured take none of the 20 of a minute', async () => {
    route({ id: 'rte_gone', destinations: [{ id: 'dst_a', shard: 0 }] });
    await waitForPeriodStart(60_000);
    for (let i = 0; i < 21; i++) await expiredUnseen({ routeId: 'rte_gone', destinationId: 'dst_a', shard: 0 });
    registry.remove('route', 'rte_gone');
    worker();
    await nothingUnderWay();
    expect(ops.requests).toEqual([]);
    const [messageId] = await sendAndFail(1);
    await ops.arrived(1);
    expect(told()).toMatchObject([{ type: 'message.dead_lettered', omitted: 0, data: { messageId, routeId: 'rte_a' } }]);
  });

  test('nothing is recorded without a source that is enabled, nor of a message that is delivered', async () => {
    ownSource({ enabled: false });
    worker();
    await sendAndFail(2);
    ownSource();
    shopAnswers = 200;
    await ended([await send(), await send()], 'delivered');
    expect(await redis.client.exists(`${prefix}{s0}:oe:org_a`)).toBe(0);
    expect(await redis.client.exists(`${prefix}{s0}:ends`)).toBe(0);
    expect(await ownEventsStored()).toBe(0);
  });

  test('an occurrence is one event, although workers read it again and again', async () => {
    const log = `${prefix}{s0}:ends`;
    await redis.client.set(`${prefix}{s0}:ends-reader`, 'somebody else');
    worker();
    worker();
    worker();
    await sendAndFail(5);
    const entries = await redis.client.xrange(log, '-', '+');
    expect(entries).toHaveLength(5);
    await redis.client.del(`${prefix}{s0}:ends-reader`);
    await ops.arrived(5);
    await nothingUnderWay();
    for (const [id, fields] of entries) await redis.client.xadd(log, id, ...fields);
    await nothingUnderWay();
    expect(await ownEventsStored()).toBe(5);
    expect(ops.requests).toHaveLength(5);
  });

  test('a dead letter is reported also where its message expires before any worker has configured the target', async () => {
    const messageId = await expiredUnseen({ routeId: 'rte_a', destinationId: 'dst_a', shard: 0 });
    worker();
    await ops.arrived(1);
    expect(told()).toMatchObject([
      { type: 'message.dead_lettered', data: { messageId, destinationId: 'dst_a', reason: 'expired', attempts: 0 } },
    ]);
  });

  const checksSchema = (): void => {
    const jsonSchema = JSON.stringify({ type: 'object' });
    registry.put('payloadSchema', { v: 1, id: 'sch_a', org: 'org_a', version: 1, jsonSchema, generation: 1 });
    route({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 1 }], schemaId: 'sch_a' });
  };

  test('events for which there is no time are reported after the next read', async () => {
    checksSchema();
    const sandbox = lenientSandbox();
    const validate = sandbox.validate.bind(sandbox);
    // Nine take longer than the 2 s that the events of an organization have at a time.
    jest.spyOn(sandbox, 'validate').mockImplementation(async (...args) => {
      await sleep(250);
      return await validate(...args);
    });
    ends.push(startAlertingWorker(redis, { prefix, registry, shards }, sandbox));
    await sendAndFail(14);
    await ops.arrived(14);
    await nothingUnderWay();
    expect(ops.requests).toHaveLength(14);
  });

  test('schemas that cannot be checked in time hold up no alert, and drop the events', async () => {
    checksSchema();
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const sandbox = lenientSandbox();
    sandbox.close();
    ends.push(startAlertingWorker(redis, { prefix, registry, shards, logger }, sandbox));
    await sendAndFail(2);
    await nothingUnderWay();
    expect(lines.join('')).toContain("Posthorn's own events were dropped");
    expect(await ownEventsStored()).toBe(0);
  });

  test('what an organization has recorded goes with it', async () => {
    worker();
    await sendAndFail(1);
    await ops.arrived(1);
    await nothingUnderWay();
    expect(await redis.client.keys(`${prefix}*:oe:*`)).toHaveLength(1);
    await new RedisMessagePurger({ redis: redis.client, prefix, shards }).purgeOrganization('org_a', new AbortController().signal);
    expect(await redis.client.keys(`${prefix}*:oe:*`)).toEqual([]);
  });
});

describe('the loop guard', () => {
  test.each<[string, () => void]>([
    ['', () => {}],
    [', although its route is deleted then', () => registry.remove('route', 'rte_ops')],
    [
      ', although its source gives way to another one then',
      () => {
        registry.remove('source', 'src_own');
        registry.put('source', sourceRecord({ id: 'src_next', slug: 'next', provider: 'posthorn' }));
      },
    ],
  ])('an own event that expires before any worker has configured its target is reported to nobody%s', async (_what, change) => {
    await expiredUnseen({ routeId: 'rte_ops', destinationId: 'dst_ops', shard: 0 });
    expect(await redis.client.exists(`${prefix}{s0}:ends`)).toBe(1);
    change();
    worker();
    await nothingUnderWay();
    expect((await reader.events('org_a', {}, { limit: 100 })).items).toHaveLength(1);
  });

  test('an own event whose retry waits while its route is deleted is reported to nobody', async () => {
    opsAnswers = 500;
    const retryPolicy = { ...once, maxRetries: 3, initialDelayMs: 600_000, maxDelayMs: 600_000 };
    registry.put('destination', destinationRecord({ url: ops.url }, { id: 'dst_ops', shard: 1, retryPolicy }));
    worker();
    await sendAndFail(1);
    const statuses = async (): Promise<string[]> =>
      (await reader.deliveries('org_a', { routeId: 'rte_ops' }, { limit: 10 })).items.map(({ status }) => status);
    await eventually(async () => expect(await statuses()).toEqual(['retrying']));
    registry.remove('route', 'rte_ops');
    await eventually(async () => expect(await statuses()).toEqual(['dlq']));
    await nothingUnderWay();
    expect(await ownEventsStored()).toBe(1);
  });

  test('what fails of the own events, at failover destinations, too, is reported to nobody', async () => {
    opsAnswers = 500;
    destination('dst_spare', ops.url, 1);
    const failover = { destinations: [{ id: 'dst_spare', shard: 1 }], afterAttempts: 1 };
    const circuit = { ...lasting, failureThreshold: 1 };
    route({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 1 }], failover, circuit });
    worker();
    await sendAndFail(1);
    await ops.arrived(2);
    await nothingUnderWay();
    expect(await ownEventsStored()).toBe(1);
    expect(ops.requests).toHaveLength(2);
  });

  test('the hops of an event are those of the event about it, and a delivery sends one more', async () => {
    worker();
    await ended([await send([[hopHeader, '3']])], 'dlq');
    await ops.arrived(1);
    expect(shop.requests[0]?.headers[hopHeader]).toBe('4');
    expect(ops.requests[0]?.headers[hopHeader]).toBe('4');
    await sendAndFail(1);
    expect(shop.requests[1]?.headers[hopHeader]).toBeUndefined();
  });

  test('a circuit that opens or closes has the hops of the event whose message has decided that; one that a user closes has none', async () => {
    route({ circuit: { failureThreshold: 1, cooldownSeconds: 1, probeSuccessThreshold: 1 } });
    worker();
    await send([[hopHeader, '3']]);
    await ops.arrived(2);
    shopAnswers = 200;
    await send([[hopHeader, '5']]);
    await ops.arrived(3);
    shopAnswers = 500;
    await send([[hopHeader, '1']]);
    await ops.arrived(5);
    await new Circuits({ redis: redis.client, prefix, shards: () => shards }).reset('org_a', 'rte_a', ['dst_a']);
    await ops.arrived(6);
    const hops = ops.requests.map(({ headers }, i) => [types()[i], headers[hopHeader]]);
    expect(hops.filter(([type]) => type !== 'message.dead_lettered')).toEqual([
      ['destination.circuit_opened', '4'],
      ['destination.circuit_closed', '6'],
      ['destination.circuit_opened', '2'],
      ['destination.circuit_closed', '1'],
    ]);
  });
});

describe('a circuit', () => {
  test('a circuit is reported when it opens and when it closes', async () => {
    route({ circuit: { ...lasting, failureThreshold: 2 } });
    worker();
    await sendAndFail(2);
    await ops.arrived(3);
    await new Circuits({ redis: redis.client, prefix, shards: () => shards }).reset('org_a', 'rte_a', ['dst_a']);
    await ops.arrived(4);
    const circuits = told().filter(({ type }) => type !== 'message.dead_lettered');
    expect(circuits).toMatchObject([
      { type: 'destination.circuit_opened', data: { routeId: 'rte_a', destinationId: 'dst_a' } },
      { type: 'destination.circuit_closed', data: { routeId: 'rte_a', destinationId: 'dst_a' } },
    ]);
  });
});
