import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '../../src/runtime/clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { s3Keys, startS3Server } from '../support/object-stores.ts';
import { passes } from '../support/passes.ts';
import { serviceAccountKey } from '../support/service-account.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const gcsKey = serviceAccountKey({ private_key_id: 'canary-gcs-key' });
const s3 = { bucket: 'acme-events', region: 'eu-central-1', accessKeyId: 'AKIA1', secretAccessKey: 'canary-s3-key' };
const types = [
  { type: 's3', config: s3, secret: 'secretAccessKey', shown: '••••-key', other: 'a-new-secret-key' },
  {
    type: 'r2',
    config: { bucket: 'acme-events', endpoint: 'https://acme.r2.example', accessKeyId: 'a', secretAccessKey: 'canary-r2-key' },
    secret: 'secretAccessKey',
    shown: '••••-key',
    other: 'short',
  },
  {
    type: 'gcs',
    config: { bucket: 'acme-events', projectId: 'acme', serviceAccountKey: gcsKey },
    secret: 'serviceAccountKey',
    shown: `••••${gcsKey.slice(-4)}`,
    other: serviceAccountKey({ client_email: 'c@d.example' }),
  },
  {
    type: 'azure_blob',
    config: { accountName: 'acme', containerName: 'events', accountKey: 'Y2FuYXJ5' },
    secret: 'accountKey',
    shown: '••••YXJ5',
    other: 'b3RoZXI=',
  },
] as const;

const create = (body: object, options: object = {}) => world.request('POST', '/api/destinations', { body, ...options });
const read = (id: string) => world.request('GET', `/api/destinations/${id}`);
const change = (id: string, body: object, options: object = {}) => world.request('PATCH', `/api/destinations/${id}`, { body, ...options });
async function made(body: object): Promise<string> {
  const { status, body: record, text } = await create(body);
  if (status !== 201) throw new Error(text);
  return record.id;
}
/** The value that is stored for a destination. */
async function stored(slug: string): Promise<string> {
  const { data } = await world
    .request('GET', '/api/destinations/export?includeSensitive=true')
    .then(({ body }) => ({ data: body.destinations }));
  return JSON.stringify(data.find((each: { slug: string }) => each.slug === slug)?.config);
}

describe.each(types)('a destination of type $type', ({ type, config, secret, shown, other }) => {
  test('is made, read and listed with its config, the credential masked', async () => {
    const { status, body, text } = await create({ name: `A ${type}`, type, config });
    expect(status).toBe(201);
    const expected = { ...config, [secret]: shown, fileFormat: 'jsonl', partitionBy: 'date', identity: 'keys' };
    expect(body).toMatchObject({ type, url: '', enabled: true, config: expected, fieldMapping: [] });
    expect(body.config).toEqual(expected);
    expect((await read(body.id)).body.config).toEqual(expected);
    const list = await world.request('GET', `/api/destinations?search=${encodeURIComponent(`A ${type}`)}`);
    expect(list.body.data).toMatchObject([{ id: body.id, type, url: '', config: expected }]);
    expect(text + list.text).not.toContain('canary');
    expect(body).not.toHaveProperty('method');
  });

  test('keeps its credential when the mask is sent back, and takes a new one', async () => {
    const id = await made({ name: `Keeps ${type}`, slug: `keeps-${type.replace('_', '-')}`, type, config });
    const { body } = await read(id);
    const kept = await change(id, { config: { ...body.config, prefix: 'raw' } });
    expect(kept.body.config).toEqual({ ...body.config, prefix: 'raw' });
    expect(await stored(body.slug)).toContain(JSON.stringify(config[secret as keyof typeof config]));
    expect((await change(id, { config: { [secret]: other } })).status).toBe(200);
    expect(await stored(body.slug)).toContain(JSON.stringify(other));
    expect((await change(id, { config: { [secret]: '••••nope' } })).body.message).toMatch(
      new RegExp(`^config\\.${secret} is a masked value`),
    );
  });

  test('needs each of its fields, and takes none of another type', async () => {
    for (const field of Object.keys(config)) {
      const { [field]: _, ...rest } = config as Record<string, string>;
      const { status, body } = await create({ name: 'x', type, config: rest });
      expect([status, body.error, body.message]).toEqual([400, 'Bad Request', `config.${field} is required.`]);
    }
    const foreign = type === 'gcs' ? { region: 'x' } : { projectId: 'x' };
    expect((await create({ name: 'x', type, config: { ...config, ...foreign } })).body.message).toContain(
      `config.${Object.keys(foreign)[0]}`,
    );
    expect((await create({ name: 'x', type })).body.message).toBe('config is required.');
    expect((await create({ name: 'x', type, config, url: 'https://a.example' })).body.message).toContain('url does not belong');
  });

  test('needs no keys with the identity of the platform, which r2 cannot have', async () => {
    const place = Object.fromEntries(Object.entries(config).filter(([field]) => field !== secret && field !== 'accessKeyId'));
    const { status, body } = await create({ name: `Platform ${type}`, type, config: { ...place, identity: 'platform' } });
    if (type === 'r2') {
      expect([status, body.message]).toEqual([400, 'config.identity cannot be platform with type r2.']);
      return;
    }
    expect(status).toBe(201);
    expect(body.config).toEqual({ ...place, identity: 'platform', fileFormat: 'jsonl', partitionBy: 'date' });
    const back = await change(body.id, { config: { identity: 'keys' } });
    expect(back.status).toBe(400);
  });

  test('is exported masked, imported disabled, and enabled once its credential is sent', async () => {
    const slug = `moves-${type.replace('_', '-')}`;
    const id = await made({ name: `Moves ${type}`, slug, type, config, fieldMapping: [{ source: '$.id', target: 'id', type: 'string' }] });
    const { body: document } = await world.request('GET', `/api/destinations/export?ids=${id}`);
    expect(document.destinations).toMatchObject([{ slug, type, config: { [secret]: shown }, fieldMapping: [{ source: '$.id' }] }]);
    await world.request('DELETE', `/api/destinations/${id}`);
    const imported = await world.request('POST', '/api/destinations/import', { body: { ...document, conflictStrategy: 'skip' } });
    expect(imported.body).toMatchObject({ success: true, warnings: [expect.stringContaining('disabled')] });
    expect((await read(slug)).body).toMatchObject({ enabled: false, type });
    expect((await change(slug, { enabled: true })).body.code).toBe('CREDENTIALS_REQUIRED');
    expect((await change(slug, { enabled: true, config: { [secret]: other } })).body).toMatchObject({ enabled: true });
    const again = await world.request('POST', '/api/destinations/import', { body: { ...document, conflictStrategy: 'overwrite' } });
    expect(again.body).toMatchObject({ success: true, warnings: [] });
    expect(await stored(slug)).toContain(JSON.stringify(other));
  });
});

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

  test('of r2 must have an https endpoint, and its host takes the credential along', async () => {
    const config = { bucket: 'events', endpoint: 'https://a.r2.example', accessKeyId: 'a', secretAccessKey: 'canary-r2' };
    expect((await create({ name: 'x', type: 'r2', config: { ...config, endpoint: 'http://a.example' } })).status).toBe(400);
    const id = await made({ name: 'Elsewhere', type: 'r2', config });
    const key = await world.addKey('acme', { role: 'developer' });
    const elsewhere = { endpoint: 'https://b.r2.example' };
    expect((await change(id, { config: elsewhere }, { key })).body.code).toBe('CREDENTIALS_REQUIRED');
    expect((await change(id, { config: { ...elsewhere, secretAccessKey: 'canary-r2' } }, { key })).status).toBe(200);
  });

  test('does not belong to http, and a type cannot be changed', async () => {
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

  test('is kept, replaced, and removed by null', async () => {
    const id = await made({ name: 'Mapped', type: 's3', config: s3, fieldMapping: [rule] });
    expect((await read(id)).body.fieldMapping).toEqual([rule]);
    expect((await change(id, { name: 'Mapped on' })).body.fieldMapping).toEqual([rule]);
    const two = [{ source: '$.source', target: 'source', type: 'string' }, rule];
    expect((await change(id, { fieldMapping: two })).body.fieldMapping).toEqual(two);
    expect((await change(id, { fieldMapping: null })).body.fieldMapping).toEqual([]);
  });

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

test('no credential of a warehouse stands in clear in Redis or in a log', async () => {
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
        error: 'http_error',
        message: expect.stringMatching(/^the store answered 403 \([A-Za-z]+\)$/),
      },
    ]);
  } finally {
    await worker.stop(0);
    await server.stop();
  }
}, 60_000);

describe('the identity of the platform, in an installation that does not lend it,', () => {
  const config = { bucket: 'acme-events', region: 'eu-central-1', identity: 'platform' };
  const message = expect.stringMatching(/^config\.identity cannot be platform: .*POSTHORN_WAREHOUSE_PLATFORM_IDENTITY/);
  const store = new MemoryStore(systemClock);
  let strict: FacadeWorld;
  beforeAll(async () => {
    strict = await startFacadeWorld({ store, allowsPlatformIdentity: false, inForceTimeoutMs: 200 });
  });
  afterAll(() => strict.stop());

  test('is refused when a destination is made, changed or imported', async () => {
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

  test('is a condition of the custom resource, which users can still rename and disable', async () => {
    const spec = { type: 's3', s3: { bucket: 'acme-events', region: 'eu-central-1' }, warehouse: { identity: 'platform' } } as const;
    await store.create({ kind: 'Destination', metadata: { name: 'lake', namespace: 'acme' }, spec }, { manager: 'posthorn-api' });
    await passes(async () => {
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
