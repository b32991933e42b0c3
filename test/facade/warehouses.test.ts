import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { rsaKeyOfBits } from '../support/costly-keys.ts';
import { eventually } from '../support/eventually.ts';
import { s3Keys, startS3Server } from '../support/object-stores.ts';
import { serviceAccountKey } from '../support/service-account.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { describeWarehouses } from './suites/warehouses.ts';

describeWarehouses(() => startFacadeWorld());

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const s3 = { bucket: 'acme-events', region: 'eu-central-1', accessKeyId: 'AKIA1', secretAccessKey: 'canary-s3-key' };

const create = (body: object, options: object = {}) => world.request('POST', '/api/destinations', { body, ...options });
const change = (id: string, body: object, options: object = {}) => world.request('PATCH', `/api/destinations/${id}`, { body, ...options });
async function made(body: object): Promise<string> {
  const { status, body: record, text } = await create(body);
  if (status !== 201) throw new Error(text);
  return record.id;
}

describe('config', () => {
  test.each([
    [{ bucket: 'ab' }, 'bucket'],
    [{ bucket: 'a'.repeat(64) }, 'bucket'],
    [{ fileFormat: 'csv' }, 'fileFormat'],
    [{ partitionBy: 'minute' }, 'partitionBy'],
    [{ region: 'a/b' }, 'region'],
    [{ unknown: 1 }, 'unknown'],
  ])('%j of a bucket is refused', async (wrong, field) => {
    const { status, body } = await create({ name: 'x', type: 's3', config: { ...s3, ...wrong } });
    expect([status, body.error]).toEqual([400, 'Bad Request']);
    expect(body.message).toContain(field);
  });

  test.each([
    [{ accountName: 'ab' }, 'accountName'],
    [{ accountName: 'a'.repeat(25) }, 'accountName'],
    [{ accountName: 'a.evil.example/' }, 'accountName'],
    [{ containerName: 'ab' }, 'containerName'],
    [{ accountKey: 'no base64!' }, 'accountKey'],
  ])('%j of a container is refused', async (wrong, field) => {
    const config = { accountName: 'acme', containerName: 'events', accountKey: 'YQ==', ...wrong };
    expect((await create({ name: 'x', type: 'azure_blob', config })).body).toMatchObject({
      error: 'Bad Request',
      message: expect.stringContaining(field),
    });
  });

  test.each([
    ['no JSON', 'no JSON'],
    ['no key', JSON.stringify({ client_email: 'a@b.example' })],
    ['a PEM that cannot be read', serviceAccountKey({ private_key: '-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n' })],
    ['a key that takes long to sign with', serviceAccountKey({ private_key: rsaKeyOfBits(8192) })],
    [
      'a key of another kind',
      serviceAccountKey({
        private_key: generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      }),
    ],
  ])('of gcs with %s for serviceAccountKey is refused', async (_, key) => {
    const config = { bucket: 'acme-events', projectId: 'acme', serviceAccountKey: key };
    const { status, body } = await create({ name: 'x', type: 'gcs', config });
    expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect(body.message).toMatch(/^config\.serviceAccountKey /);
  });

  test('with a mask where nothing is stored is refused', async () => {
    const { status, body } = await create({ name: 'x', type: 's3', config: { ...s3, secretAccessKey: '••••abcd' } });
    expect([status, body.message]).toEqual([400, expect.stringMatching(/^config\.secretAccessKey is a masked value/)]);
  });

  test('of r2 must have an https endpoint', async () => {
    const config = { bucket: 'events', endpoint: 'https://a.r2.example', accessKeyId: 'a', secretAccessKey: 'canary-r2' };
    for (const endpoint of ['http://a.example', 'https://[0]', 'https://a\ufffd.example'])
      expect([endpoint, (await create({ name: 'x', type: 'r2', config: { ...config, endpoint } })).status]).toEqual([endpoint, 400]);
  });

  test('config takes the defaults of the fields of HTTP destinations, which generated clients send, and refuses other values', async () => {
    const defaults = {
      method: 'POST',
      authType: 'none',
      timeoutMs: 30_000,
      useStaticIp: false,
      headers: {},
      url: '',
      forwardHeaders: null,
      headerTemplates: {},
    };
    expect((await create({ name: 'With defaults', type: 's3', config: s3, ...defaults })).status).toBe(201);
    const others = {
      method: 'PUT',
      authType: 'bearer',
      timeoutMs: 10_000,
      useStaticIp: true,
      forwardHeaders: ['X-A'],
      headerTemplates: { 'X-A': 'a' },
    };
    for (const [field, value] of Object.entries(others)) {
      const { status, body } = await create({ name: 'x', type: 's3', config: s3, ...defaults, [field]: value });
      expect([status, body.message]).toEqual([400, `${field} does not belong to type s3.`]);
    }
  });

  test('config does not belong to http, and a type cannot be changed', async () => {
    expect((await create({ name: 'x', url: 'https://a.example', config: s3 })).body.message).toContain(
      'config does not belong to type http',
    );
    const id = await made({ name: 'Stays', type: 's3', config: s3 });
    expect((await change(id, { type: 'gcs' })).status).toBe(400);
    expect((await change(id, { type: 's3' })).status).toBe(200);
  });
});

describe('a field mapping', () => {
  const rule = { source: '$.payload.id', target: 'id', type: 'string', default: 'none' };

  test.each([
    [[{ ...rule, source: 'payload.id' }], 'fieldMapping[0].source'],
    [[rule, rule], 'fieldMapping[1].target'],
    [[{ ...rule, type: 'number' }], 'fieldMapping[0].default'],
    [[{ ...rule, type: 'date' }], 'type'],
    [[{ source: '$.a', target: 'a' }], 'type'],
    [Array.from({ length: 51 }, (_, i) => ({ ...rule, target: `c${i}` })), 'fieldMapping'],
  ])('%j is refused', async (fieldMapping, named) => {
    const { status, body } = await create({ name: 'x', type: 's3', config: s3, fieldMapping });
    expect([status, body.error]).toEqual([400, 'Bad Request']);
    expect(body.message).toContain(named);
  });
});

describe('plans', () => {
  test.each([
    ['free', 403],
    ['starter', 403],
    ['pro', 201],
    ['business', 201],
    ['enterprise', 201],
  ] as const)('%s answers a warehouse destination with %d', async (plan, expected) => {
    await world.addOrganization(`w-${plan}`, plan);
    const key = await world.addKey(`w-${plan}`);
    const { status, body } = await create({ name: 'x', type: 's3', config: s3 }, { key });
    expect(status).toBe(expected);
    if (expected === 403) expect(body).toMatchObject({ error: 'Forbidden', message: expect.stringMatching(/plan pro/) });
  });

  test.each([
    ['free', 403],
    ['starter', 201],
  ] as const)('%s answers a throttle with %d', async (plan, expected) => {
    await world.addOrganization(`t-${plan}`, plan);
    const key = await world.addKey(`t-${plan}`);
    const throttles = [
      { mode: 'rate', rateLimit: 1, rateUnit: 'second' },
      { mode: 'concurrency', maxConcurrency: 1 },
    ];
    for (const throttle of throttles)
      expect((await create({ name: 'x', url: 'https://a.example', throttle }, { key })).status).toBe(expected);
    expect((await create({ name: 'x', url: 'https://a.example', throttle: { mode: 'off' } }, { key })).status).toBe(201);
  });
});

test('no credential of a warehouse is in clear in Redis or in a log', async () => {
  await made({ name: 'Canary', type: 's3', config: s3 });
  const found: string[] = [];
  for (const key of await world.redis.client.keys('*')) {
    const dump = await world.redis.client.dumpBuffer(key);
    if (dump?.includes('canary-s3-key')) found.push(key);
  }
  expect(found).toEqual([]);
  expect(world.logLines.join('\n')).not.toContain('canary');
});

test('a test writes a file with one record, and says what the store answered when it does not', async () => {
  const server = await startS3Server();
  const worker = await world.startWorker({ warehouse: { endpoints: { s3: server.url } } });
  try {
    const config = { ...s3, ...s3Keys, bucket: server.bucket, region: 'us-east-1', prefix: 'raw' };
    const id = await made({ name: 'Tested', type: 's3', config });
    const testOf = (body: object) => world.request('POST', `/api/destinations/${id}/test`, { body });
    const { status, body } = await testOf({ payload: { order: 7 } });
    const objects = [...(await server.objects())];
    expect([status, body]).toEqual([
      200,
      { success: true, result: { key: objects[0]?.[0], size: objects[0]?.[1].length, count: 1 }, message: expect.any(String) },
    ]);
    expect(objects).toHaveLength(1);
    expect(objects[0]?.[0]).toMatch(/^raw\/date=\d{4}-\d\d-\d\d\/test_[a-z2-7]{16}\.jsonl$/);
    expect(JSON.parse(String(objects[0]?.[1]))).toMatchObject({ source: 'test', payload: { order: 7 } });
    await change(id, { config: { secretAccessKey: 'canary-wrong-key' } });
    const failed = await testOf({});
    expect([failed.status, failed.body]).toEqual([
      200,
      {
        success: false,
        statusCode: 403,
        latency: expect.any(Number),
        status: 403,
        latencyMs: failed.body.latency,
        error: 'http_error',
        message: expect.stringMatching(/^the store answered 403 \([A-Za-z]+\)$/),
      },
    ]);
  } finally {
    await worker.stop(0);
    await server.stop();
  }
});

describe('the identity of the platform, in an installation that does not lend it,', () => {
  const config = { bucket: 'acme-events', region: 'eu-central-1', identity: 'platform' };
  const message = expect.stringMatching(/^config\.identity cannot be platform: .*POSTHORN_WAREHOUSE_PLATFORM_IDENTITY/);
  const store = new MemoryStore(systemClock);
  let strict: FacadeWorld;
  beforeAll(async () => {
    strict = await startFacadeWorld({ store, allowsPlatformIdentity: false, inForceTimeoutMs: 200 });
  });
  afterAll(() => strict.stop());

  test('the identity of the platform, in an installation that does not lend it, is refused when a destination is made, changed or imported', async () => {
    const refused = { status: 400, body: { error: 'Bad Request', message } };
    expect(await strict.request('POST', '/api/destinations', { body: { name: 'Lake', type: 's3', config } })).toMatchObject(refused);
    const { id } = await strict.create('destinations', { name: 'Keys', type: 's3', config: s3 });
    expect(await strict.request('PATCH', `/api/destinations/${id}`, { body: { config: { identity: 'platform' } } })).toMatchObject(refused);
    const { body: document } = await strict.request('GET', '/api/destinations/export');
    const destinations = document.destinations.map((each: object) => ({ ...each, slug: 'imported', name: 'Imported', config }));
    const imported = await strict.request('POST', '/api/destinations/import', {
      body: { ...document, destinations, conflictStrategy: 'skip' },
    });
    expect(imported.text).toContain('POSTHORN_WAREHOUSE_PLATFORM_IDENTITY');
    expect((await strict.request('GET', '/api/destinations/imported')).status).toBe(404);
  });

  test('the identity of the platform, in an installation that does not lend it, is a condition of the custom resource, which users can still rename and disable', async () => {
    const spec = { type: 's3', s3: { bucket: 'acme-events', region: 'eu-central-1' }, warehouse: { identity: 'platform' } } as const;
    await store.create({ kind: 'Destination', metadata: { name: 'lake', namespace: 'acme' }, spec }, { manager: 'posthorn-api' });
    await eventually(async () => {
      const lake = await store.get('Destination', { namespace: 'acme', name: 'lake' });
      expect(lake?.status?.conditions).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            type: 'Accepted',
            status: 'False',
            reason: 'PlatformIdentityNotAllowed',
            message: expect.stringContaining('POSTHORN_WAREHOUSE_PLATFORM_IDENTITY'),
          }),
          expect.objectContaining({ type: 'Programmed', status: 'False' }),
        ]),
      );
    });
    const changed = await strict.request('PATCH', '/api/destinations/lake', { body: { name: 'Old lake', enabled: false } });
    expect(changed).toMatchObject({ status: 200, body: { name: 'Old lake', enabled: false, config: { identity: 'platform' } } });
  });
});
