import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { testKeyring } from '../../../../test/support/controllers.ts';
import { deliverySuite } from '../../../../test/support/delivery-suite.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { newEvent } from '../../../../test/support/new-event.ts';
import { type StoreServer, s3Keys, startS3Server } from '../../../../test/support/object-stores.ts';
import { organizationRecord, routeRecord, warehouseRecord } from '../../../../test/support/records.ts';
import type { WarehouseRecord } from '../../../core/records.ts';
import { recordSealingContext } from '../../../core/sealing-contexts.ts';
import { checkShards } from '../../../data/check/shard-check.ts';
import type { DeliveryStatus } from '../../../data/shard/messages.ts';
import { shardBase } from '../../../data/shard/shard-keys.ts';

const mebibyte = 1024 * 1024;
const retryPolicy = { maxRetries: 1000, initialDelayMs: 100, maxDelayMs: 1000, backoffMultiplier: 2 };
/** Aborted after 2 s. */
const endless = `$match("${'a'.repeat(50)}!", /^(a+)+$/)`;

let store: StoreServer;
const suite = deliverySuite();
const { ends, prefix } = suite;

beforeEach(async () => {
  store = await startS3Server();
  ends.push(() => store.stop());
});

interface Warehouse {
  org: string;
  routeId: string;
  destinationId: string;
}
const first: Warehouse = { org: 'org_a', routeId: 'rte_a', destinationId: 'dst_a' };

/** A route to a bucket of its own organization; `code`: that of its transform. */
function warehouse({ org, routeId, destinationId }: Warehouse, code: string | null, changes: Partial<WarehouseRecord> = {}): void {
  const secretAccessKey = testKeyring.seal(
    s3Keys.secretAccessKey,
    recordSealingContext(org, 'destination', destinationId, 'secretAccessKey'),
  );
  const s3 = { bucket: store.bucket, region: 'us-east-1', credentials: { accessKeyId: s3Keys.accessKeyId, secretAccessKey } };
  suite.registry.put('organization', organizationRecord({ id: org, slug: org, namespace: org }));
  const destination = warehouseRecord({ type: 's3', s3 }, { prefix: destinationId, ...changes }, { id: destinationId, retryPolicy });
  suite.registry.put('destination', { ...destination, org });
  const transformId = `trf_${routeId}`;
  if (code !== null) suite.registry.put('transform', { v: 1, id: transformId, org, type: 'jsonata', code, generation: 1 });
  // Lack of compute time fails an attempt, and must not find the circuit open.
  const circuit = { failureThreshold: 1000, cooldownSeconds: 300, probeSuccessThreshold: 1 };
  const route = routeRecord({ id: routeId, org, circuit, destinations: [{ id: destinationId, shard: 0 }] });
  suite.registry.put('route', code === null ? route : { ...route, transformId });
}
function worker(concurrency = 64): void {
  const endpoints = { s3: store.url };
  suite.worker({ concurrency, warehouse: { batchAgeMs: 300, endpoints } });
}

async function send(count: number, { org, routeId, destinationId }: Warehouse, payload: (i: number) => Buffer): Promise<string[]> {
  const events = Array.from({ length: count }, (_, i) => {
    const event = newEvent({ org, payload: payload(i), destinations: [destinationId] });
    return { ...event, targets: event.targets.map((target) => ({ ...target, routeId })) };
  });
  await Promise.all(events.map((event) => suite.acceptor.accept(event)));
  return events.map(({ targets }) => targets[0]?.messageId ?? '');
}
const numbered = (i: number): Buffer => Buffer.from(JSON.stringify({ order: i }));
async function statuses(org: string, ids: readonly string[]): Promise<Set<DeliveryStatus | undefined>> {
  return new Set(await Promise.all(ids.map(async (id) => (await suite.reader.delivery(org, id))?.status)));
}
async function all(status: DeliveryStatus, ids: readonly string[], withinMs: number, org = 'org_a'): Promise<void> {
  await eventually(async () => expect(await statuses(org, ids)).toEqual(new Set([status])), withinMs);
}
async function files(): Promise<{ bytes: number; records: Record<string, unknown>[] }[]> {
  return [...(await store.objects()).values()].map((content) => ({
    bytes: content.length,
    records: content
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  }));
}
async function expectNoFindings(): Promise<void> {
  expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
}

test.each([null, '{"order": 1}'])(
  'an event with a payload above 1 MiB is not written, and says why, and the others of its batch are (transform %s)',
  async (code) => {
    warehouse(first, code);
    worker();
    const ids = await send(3, first, (i) => (i === 1 ? Buffer.alloc(mebibyte + 1, 'x') : numbered(i)));
    const [, large = ''] = ids;
    await all('delivered', [ids[0] ?? '', ids[2] ?? ''], 60_000);
    await all('transform_failed', [large], 60_000);
    const lastErrorMessage = 'the payload has 1048577 bytes, and warehouses take up to 1 MiB';
    expect(await suite.reader.delivery('org_a', large)).toMatchObject({ lastErrorMessage });
    await expectNoFindings();
  },
);

describe('a batch that becomes too large', () => {
  test('a batch that becomes too large by the outputs of its transform goes out in several files, each record in one of them', async () => {
    warehouse(first, '{"order": payload.order, "text": $pad("x", 1000000)}');
    worker();
    const ids = await send(40, first, numbered);
    await all('delivered', ids, 60_000);
    const found = await files();
    expect(found.length).toBeGreaterThanOrEqual(3);
    for (const { bytes } of found) expect(bytes).toBeLessThanOrEqual(16 * mebibyte + 1);
    const orders = found.flatMap(({ records }) => records.map(({ payload }) => Object(payload).order));
    expect(orders.sort((a, b) => a - b)).toEqual(ids.map((_, i) => i));
    expect(await suite.reader.delivery('org_a', ids.at(-1) ?? '')).toMatchObject({ attempts: 1 });
    await expectNoFindings();
  });

  test('a batch that becomes too large by its field mapping goes out in several files; a record too large for any file ends by itself, and says why', async () => {
    const fieldMapping = Array.from({ length: 50 }, (_, i) => ({ source: '$.payload', target: `c${i}`, type: 'json' as const }));
    warehouse(first, null, { fieldMapping });
    const ids = await send(5, first, (i) => Buffer.from(JSON.stringify({ order: i, text: 'x'.repeat(i === 2 ? 400_000 : 150_000) })));
    // Together in one batch.
    worker();
    const [large = ''] = ids.splice(2, 1);
    await all('delivered', ids, 60_000);
    expect(await suite.reader.delivery('org_a', large)).toMatchObject({
      status: 'transform_failed',
      lastErrorMessage: 'the record would have more than 16 MiB, or is nested too deeply',
    });
    const found = await files();
    expect(found.map(({ records }) => records.length).sort()).toEqual([2, 2]);
    await expectNoFindings();
  });
});

test('a batch whose transforms are all broken off ends in passes, and other warehouses continue meanwhile', async () => {
  const [plain, other]: [Warehouse, Warehouse] = [
    { org: 'org_a', routeId: 'rte_plain', destinationId: 'dst_plain' },
    { org: 'org_b', routeId: 'rte_b', destinationId: 'dst_b' },
  ];
  warehouse(first, endless);
  warehouse(plain, null);
  warehouse(other, 'payload');
  worker(8);
  const slow = await send(14, first, numbered);
  await eventually(async () => expect(await suite.redis.client.keys(`${prefix}{s0}:bu:*`)).toHaveLength(1));
  const [own, foreign] = [await send(5, plain, numbered), await send(5, other, numbered)];
  await all('delivered', own, 60_000);
  await all('delivered', foreign, 60_000, 'org_b');
  await all('transform_failed', slow, 360_000);
  const endsMs = async (org: string, ids: readonly string[]): Promise<number[]> =>
    await Promise.all(ids.map(async (id) => (await suite.reader.delivery(org, id))?.completedAtMs ?? 0));
  expect(Math.min(...(await endsMs('org_a', slow)))).toBeGreaterThan(
    Math.max(...(await endsMs('org_a', own)), ...(await endsMs('org_b', foreign))),
  );
  expect((await suite.reader.delivery('org_a', slow[0] ?? ''))?.lastErrorMessage).toContain('stopped');
  // Aborted code uses up no attempt; a machine that lets none compute does.
  const attempts = await suite.reader.attempts('org_a', slow[0] ?? '');
  expect(attempts.filter(({ errorMessage }) => errorMessage?.startsWith('no transform of the batch has come to an end') !== true)).toEqual(
    [],
  );
  await expectNoFindings();
}, 540_000);

test.each([null, '{"doubled": payload.order * 2}'])(
  'an event whose payload is gone is a dead letter, and the others of its batch are written (transform: %s)',
  async (code) => {
    warehouse(first, code);
    const ids = await send(3, first, numbered);
    const view = await suite.reader.delivery('org_a', ids[1] ?? '');
    expect(await suite.redis.client.del(`${prefix}{s0}:e:${view?.eventId.slice(6)}`)).toBe(1);
    worker();
    await all('delivered', [ids[0] ?? '', ids[2] ?? ''], 30_000);
    expect(await suite.reader.delivery('org_a', ids[1] ?? '')).toMatchObject({ status: 'dlq', deadLetterReason: 'payload_not_found' });
    expect((await files()).map(({ records }) => records.length)).toEqual([2]);
  },
  180_000,
);

describe('while a store is down', () => {
  const warehouses = ['a', 'b', 'c'].map((name) => ({ org: 'org_a', routeId: `rte_${name}`, destinationId: `dst_${name}` }));
  const perWarehouse = 40;
  const text = 'x'.repeat(400_000);
  const large = (i: number): Buffer => Buffer.from(JSON.stringify({ order: i, text }));

  /** Takes connections where the store was, and answers none. */
  async function hangInItsPlace(): Promise<{ open: Set<Socket>; end(): Promise<void> }> {
    const open = new Set<Socket>();
    const server = createServer((socket) => {
      open.add(socket.on('error', () => undefined).on('close', () => open.delete(socket)));
    });
    await new Promise<void>((resolve) => server.listen(Number(new URL(store.url).port), '127.0.0.1', resolve));
    const end = async (): Promise<void> => {
      if (!server.listening) return;
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    };
    ends.push(end);
    return { open, end };
  }
  /** Per target, the bytes of the events in each batch that the worker holds. */
  async function held(): Promise<number[][]> {
    const { client } = suite.redis;
    const base = shardBase(prefix, 0);
    const handles = (await client.zrange(`${base}held`, '0', '-1')).map((member) => member.split('/'));
    const found = Map.groupBy(handles, ([lane = '']) => lane.replace('r', ''));
    return await Promise.all(
      [...found.values()].map((batches) =>
        Promise.all(
          batches.map(async ([lane, entry = '']) => {
            const [[, [, id]] = [null, []]] = await client.xrange(`${base}w:${lane}`, entry, entry);
            return (((await client.get(`${base}b:${id}`)) ?? '').split(';').length - 1) * text.length;
          }),
        ),
      ),
    );
  }
  async function expectWithinBounds(): Promise<void> {
    for (const batches of await held()) {
      expect(batches.length).toBeLessThanOrEqual(2);
      for (const bytes of batches) expect(bytes).toBeLessThanOrEqual(5 * mebibyte);
    }
  }

  test('a worker holds two batches of a destination and has half of its places for an organization; then everything is stored once', async () => {
    for (const each of warehouses) warehouse(each, null);
    await store.halt();
    // 8 upload slots.
    worker(32);
    const sent = await Promise.all(warehouses.map((each) => send(perWarehouse, each, large)));
    const ids = sent.flat();
    await eventually(async () => {
      await expectWithinBounds();
      for (const [id = ''] of sent) expect((await suite.reader.delivery('org_a', id))?.attempts).toBeGreaterThan(0);
    });
    const { open, end } = await hangInItsPlace();
    await eventually(async () => expect((await held()).map(({ length }) => length)).toEqual([2, 2, 2]));
    await eventually(() => Promise.resolve(expect(open.size).toBe(4)));
    for (let looks = 0; looks < 50; looks++) {
      await expectWithinBounds();
      expect(open.size).toBeLessThanOrEqual(4);
      await sleep(10);
    }
    await end();
    await store.resume();
    await all('delivered', ids, 120_000);
    const stored = (await files()).flatMap(({ records }) => records.map(({ id }) => id));
    expect([stored.length, new Set(stored).size]).toEqual([ids.length, ids.length]);
    await expectNoFindings();
  }, 240_000);
});
