import { randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { createCertificateAuthority } from '../../../../test/support/certificate-authority.ts';
import { testKeyring } from '../../../../test/support/controllers.ts';
import { deliverySuite } from '../../../../test/support/delivery-suite.ts';
import { rowsOfObjects } from '../../../../test/support/duckdb.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { newEvent } from '../../../../test/support/new-event.ts';
import {
  azureAccount,
  type StoreServer,
  s3Keys,
  startAzureServer,
  startGcsServer,
  startS3Server,
} from '../../../../test/support/object-stores.ts';
import { startReceiver } from '../../../../test/support/receiver.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord, warehouseRecord } from '../../../../test/support/records.ts';
import type { ObjectStoreRecord, WarehouseRecord } from '../../../core/records.ts';
import { recordSealingContext, type SealedRecordField } from '../../../core/sealing-contexts.ts';
import { hashFields } from '../../../data/shard/hash-fields.ts';
import type { DeliveryOptions } from '../../start-delivery.ts';

const receivedAtMs = Date.UTC(2026, 2, 1, 23, 59, 58);
const retryPolicy = { maxRetries: 1000, initialDelayMs: 100, maxDelayMs: 1000, backoffMultiplier: 2 };
const authority = createCertificateAuthority();

const suite = deliverySuite();
const { ends } = suite;

beforeEach(() =>
  suite.registry.put('route', routeRecord({ circuit: { failureThreshold: 1000, cooldownSeconds: 300, probeSuccessThreshold: 1 } })),
);

const sealed = (value: string, field: SealedRecordField): string =>
  testKeyring.seal(value, recordSealingContext('org_a', 'destination', 'dst_a', field));
const s3Credentials = () => ({ accessKeyId: s3Keys.accessKeyId, secretAccessKey: sealed(s3Keys.secretAccessKey, 'secretAccessKey') });

interface Store {
  server: StoreServer;
  record: ObjectStoreRecord;
  options: Partial<DeliveryOptions>;
}
const stores = {
  s3: async (): Promise<Store> => {
    const server = await startS3Server();
    const record = { type: 's3', s3: { bucket: server.bucket, region: 'us-east-1', credentials: s3Credentials() } } as const;
    return { server, record, options: { warehouse: { endpoints: { s3: server.url } } } };
  },
  r2: async (): Promise<Store> => {
    const server = await startS3Server({ tls: authority.issue(['127.0.0.1']), region: 'auto' });
    const record = { type: 'r2', r2: { bucket: server.bucket, endpoint: server.url, credentials: s3Credentials() } } as const;
    return { server, record, options: { extraCa: authority.text } };
  },
  gcs: async (): Promise<Store> => {
    const server = await startGcsServer();
    const record = { type: 'gcs', gcs: { bucket: server.bucket, projectId: 'test', credentials: null } } as const;
    return { server, record, options: { warehouse: { endpoints: { gcs: server.url }, allowsPlatformIdentity: true } } };
  },
  azure_blob: async (): Promise<Store> => {
    const server = await startAzureServer();
    const credentials = { accountKey: sealed(azureAccount.accountKey, 'accountKey') };
    const record = {
      type: 'azure_blob',
      azureBlob: { accountName: azureAccount.accountName, containerName: server.bucket, credentials },
    } as const;
    return { server, record, options: { warehouse: { endpoints: { azure: server.url } } } };
  },
};
const types = Object.keys(stores) as (keyof typeof stores)[];

/** A worker that writes to a real store of the type; batches do not wait long. */
async function start(type: keyof typeof stores, warehouse: Partial<WarehouseRecord> = {}, { batchAgeMs = 200 } = {}): Promise<Store> {
  const store = await stores[type]();
  ends.push(() => store.server.stop());
  suite.registry.put('destination', warehouseRecord(store.record, warehouse, { retryPolicy }));
  const { options } = store;
  suite.worker({ ...options, warehouse: { batchAgeMs, ...options.warehouse } });
  return store;
}

async function send(count: number, fields: Parameters<typeof newEvent>[0] = {}): Promise<string[]> {
  const events = Array.from({ length: count }, (_, i) =>
    newEvent({
      receivedAtMs: receivedAtMs + i * 1000,
      payload: Buffer.from(JSON.stringify({ order: i, total: i + 0.5, tags: ['a'] })),
      ...fields,
    }),
  );
  await Promise.all(events.map((event) => suite.acceptor.accept(event)));
  return events.map(({ targets }) => targets[0]?.messageId ?? '');
}
const delivery = async (id: string | undefined) => await suite.reader.delivery('org_a', id ?? '');
async function allDelivered(ids: readonly string[], withinMs = 60_000): Promise<void> {
  await eventually(async () => {
    for (const id of ids) expect(await delivery(id)).toMatchObject({ status: 'delivered' });
  }, withinMs);
}
const rowsOf = (server: StoreServer, query: string): Promise<unknown[]> =>
  rowsOfObjects(server, query.replace('FILES', "'DIRECTORY/**/*.json*'"));

describe.each(types)('a store of type %s', (type) => {
  test('gets each record once, in files that are read as a partitioned table', async () => {
    const { server } = await start(type, { prefix: '/raw//events/', partitionBy: 'hour' });
    const ids = await send(5);
    await allDelivered(ids);
    const keys = [...(await server.objects()).keys()].sort();
    expect(keys).toEqual([
      expect.stringMatching(/^raw\/events\/date=2026-03-01\/hour=23\/[0-9A-Z]{26}\.jsonl$/),
      expect.stringMatching(/^raw\/events\/date=2026-03-02\/hour=00\/[0-9A-Z]{26}\.jsonl$/),
    ]);
    const query = `SELECT CAST(date AS VARCHAR) AS date, CAST(hour AS INT) AS hour, source, payload.order AS o FROM read_json(FILES, hive_partitioning = true) ORDER BY o`;
    expect(await rowsOf(server, query)).toEqual(
      [0, 1, 2, 3, 4].map((i) => ({ date: i < 2 ? '2026-03-01' : '2026-03-02', hour: i < 2 ? 23 : 0, source: 'shop', o: String(i) })),
    );
    expect((await suite.reader.attempts('org_a', ids[0] ?? ''))[0]).toMatchObject({ errorType: null, responseStatus: 200 });
  });

  test('takes files of several MiB', async () => {
    // They are in one batch.
    const { server } = await start(type, {}, { batchAgeMs: 3000 });
    await allDelivered(await send(4, { receivedAtMs, payload: Buffer.from(JSON.stringify('x'.repeat(1_000_000))) }));
    expect([...(await server.objects()).values()].map(({ length }) => length)).toEqual([expect.closeTo(4_000_000, -4)]);
  });

  test('that is down gets everything when it is up again, nothing twice', async () => {
    const { server } = await start(type);
    await server.halt();
    const ids = await send(5);
    await eventually(async () => expect(await delivery(ids[0])).toMatchObject({ status: 'retrying', lastErrorType: 'network' }));
    expect((await delivery(ids[0]))?.attempts).toBeGreaterThan(0);
    await server.resume();
    await allDelivered(ids);
    const records = [...(await server.objects()).values()].flatMap((content) => content.toString().trim().split('\n'));
    expect(records.map((line) => JSON.parse(line).payload.order).sort()).toEqual([0, 1, 2, 3, 4]);
  });

  test('that refuses the bucket is named by its answer, without what was sent', async () => {
    const { server, record } = await start(type);
    suite.registry.put(
      'destination',
      warehouseRecord(
        JSON.parse(JSON.stringify(record).replaceAll(`"${server.bucket}"`, '"nobody-has-this"')),
        {},
        { retryPolicy, generation: 2 },
      ),
    );
    const [id] = await send(1);
    await eventually(async () => expect((await delivery(id))?.attempts).toBeGreaterThan(0));
    const found = await delivery(id);
    expect(found).toMatchObject({ lastErrorType: 'http_error', lastResponseStatus: 404 });
    expect(found?.lastErrorMessage).toMatch(/^the store answered 404( \([A-Za-z]+\))?$/);
  });
});

describe('a route with a transform', () => {
  test('a route with a transform writes its output; what it filters out or fails on ends so, and stays out of the file', async () => {
    suite.registry.put('route', routeRecord({ transformId: 'trf_a' }));
    const code = 'payload.order = 1 ? null : payload.order = 2 ? $error("no such order") : {"doubled": payload.order * 2}';
    suite.registry.put('transform', { v: 1, id: 'trf_a', org: 'org_a', type: 'jsonata', code, generation: 1 });
    const { server } = await start('s3', { fileFormat: 'json' });
    const [first, second, third, fourth] = await send(4);
    await allDelivered([first ?? '', fourth ?? '']);
    expect(await delivery(second)).toMatchObject({ status: 'filtered', attempts: 0 });
    expect(await delivery(third)).toMatchObject({ status: 'transform_failed', lastErrorMessage: expect.stringContaining('no such order') });
    const records = [...(await server.objects()).values()].flatMap((content) => JSON.parse(String(content)));
    expect(records.map(({ payload }) => payload.doubled).sort()).toEqual([0, 6]);
  });

  test.each([
    [1, 'payload', /^warning: event \S+: numbers of the event .*: 9007199254740993 and 9007199254740992$/],
    [3, '{"b": payload.b, "a": payload.a}', /^warning: event \S+: .*9007199254740992; and of 2 other events of the batch$/],
  ])(
    'a route with a transform that cannot distinguish numbers of %i events reports it in the attempt of their batch',
    async (count, code, errorMessage) => {
      suite.registry.put('route', routeRecord({ transformId: 'trf_a' }));
      suite.registry.put('transform', { v: 1, id: 'trf_a', org: 'org_a', type: 'jsonata', code, generation: 1 });
      await start('s3');
      const payload = Buffer.from('{"a":9007199254740993,"b":9007199254740992}');
      const ids = await send(count, { payload });
      await allDelivered(ids);
      for (const id of ids) {
        expect(await suite.reader.attempts('org_a', id)).toMatchObject([
          { errorType: null, errorMessage: expect.stringMatching(errorMessage) },
        ]);
        expect(await delivery(id)).toMatchObject({ lastErrorType: null, lastErrorMessage: null });
      }
    },
  );
});

test.each([undefined, 'trf_a'])(
  'the secret that older events of GitLab have among their headers is in no file, with transform %s',
  async (transformId) => {
    suite.registry.put('source', sourceRecord({ provider: 'gitlab' }));
    suite.registry.put('route', routeRecord({ transformId }));
    suite.registry.put('transform', { v: 1, id: 'trf_a', org: 'org_a', type: 'jsonata', code: 'headers', generation: 1 });
    const { server } = await start('s3');
    const headers: [string, string][] = [
      ['x-gitlab-event', 'Push Hook'],
      ['x-gitlab-token', 'the secret'],
    ];
    await allDelivered(await send(1, { headers }));
    const [file] = (await server.objects()).values();
    expect(String(file)).toContain('Push Hook');
    expect(String(file)).not.toContain('the secret');
  },
);

test('a field mapping makes the columns, and readers see their types', async () => {
  const { server } = await start('s3', {
    fieldMapping: [
      { source: '$.payload.order', target: 'order', type: 'number' },
      { source: '$.payload.total', target: 'total', type: 'string' },
      { source: '$.receivedAt', target: 'at', type: 'timestamp' },
      { source: '$.payload.paid', target: 'paid', type: 'boolean', default: 'false' },
      { source: '$.payload.tags', target: 'tags', type: 'json' },
    ],
  });
  await allDelivered(await send(1));
  expect(await rowsOf(server, `SELECT "order", total, strftime("at", '%H:%M:%S') AS "at", paid, tags FROM read_json(FILES)`)).toEqual([
    { order: '0', total: '0.5', at: '23:59:58', paid: false, tags: ['a'] },
  ]);
});

test('a store that hangs leaves the other deliveries of the worker alone', async () => {
  const sockets: Socket[] = [];
  const hanging = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    hanging.close();
  });
  const to = await startReceiver();
  ends.push(() => to.close());
  const address = hanging.address();
  const endpoint = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const record = { type: 's3', s3: { bucket: 'events', region: 'us-east-1', credentials: s3Credentials() } } as const;
  suite.registry.put('destination', warehouseRecord(record, {}, { retryPolicy }));
  suite.registry.put('destination', { ...destinationRecord({ url: to.url }), id: 'dst_http' });
  suite.registry.put(
    'route',
    routeRecord({
      destinations: [
        { id: 'dst_a', shard: 0 },
        { id: 'dst_http', shard: 0 },
      ],
    }),
  );
  suite.worker({ concurrency: 8, warehouse: { batchAgeMs: 50, endpoints: { s3: endpoint } } });
  await send(5);
  await eventually(() => Promise.resolve(expect(sockets.length).toBeGreaterThan(0)));
  const ids = await send(50, { destinations: ['dst_http'] });
  await allDelivered(ids);
});

test('a batch is complete at 1000 records or 5 MiB, however young it is', async () => {
  const { server } = await start('s3', {}, { batchAgeMs: 3_600_000 });
  const most = await send(999, { receivedAtMs });
  await eventually(async () => expect(await suite.redis.client.hget('test:{s0}:t:1', hashFields.target.batchAgeMs)).toBe('3600000'));
  expect(await delivery(most[0])).toMatchObject({ status: 'pending', attempts: 0 });
  await allDelivered([...most.slice(-1), ...(await send(1, { receivedAtMs }))]);
  expect((await server.objects()).size).toBe(1);
  // Counted as they are stored: compressed.
  const payload = Buffer.from(JSON.stringify(randomBytes(700_000).toString('base64')));
  const large = await send(5, { receivedAtMs, payload });
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await delivery(large[0])).toMatchObject({ status: 'pending', attempts: 0 });
  await send(4, { receivedAtMs, payload });
  await allDelivered(large);
});

test('an address that is not allowed is not connected, and no credential leaves', async () => {
  const { server } = await start('s3');
  suite.registry.put('organization', organizationRecord({ egress: { allowedCidrs: [], allowedHosts: [] } }));
  const [id] = await send(1);
  await eventually(async () => expect((await delivery(id))?.attempts).toBeGreaterThan(0));
  expect(await delivery(id)).toMatchObject({ lastErrorType: 'blocked' });
  expect((await server.objects()).size).toBe(0);
});

test('a batch whose store is down fails over to an http destination, event by event', async () => {
  const to = await startReceiver();
  ends.push(() => to.close());
  suite.registry.put('destination', { ...destinationRecord({ url: to.url }), id: 'dst_http' });
  suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_http', shard: 0 }], afterAttempts: 1 } }));
  const { server } = await start('s3');
  await server.halt();
  const ids = await send(5);
  await allDelivered(ids);
  expect(to.requests).toHaveLength(5);
  expect(to.requests[0]?.headers).toMatchObject({ 'x-posthorn-failover': 'true', 'x-posthorn-original-destination': 'dst_a' });
  expect(await delivery(ids[0])).toMatchObject({ destinationId: 'dst_http', failedOverFrom: 'dst_a', attempts: 2 });
});

test('an http destination that fails hands on to a warehouse', async () => {
  const to = await startReceiver((response) => response.writeHead(500).end());
  ends.push(() => to.close());
  const { server, record } = await start('s3');
  suite.registry.put('destination', { ...destinationRecord({ url: to.url }), id: 'dst_http' });
  suite.registry.put('destination', warehouseRecord(record, {}, { retryPolicy, generation: 2 }));
  suite.registry.put(
    'route',
    routeRecord({
      destinations: [{ id: 'dst_http', shard: 0 }],
      failover: { destinations: [{ id: 'dst_a', shard: 0 }], afterAttempts: 1 },
    }),
  );
  const ids = await send(3, { destinations: ['dst_http'] });
  await allDelivered(ids);
  expect([...(await server.objects()).values()].join('').trim().split('\n')).toHaveLength(3);
  expect(await delivery(ids[0])).toMatchObject({ destinationId: 'dst_a', failedOverFrom: 'dst_http' });
});
