import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { serviceAccountKey } from '../../support/service-account.ts';
import type { FacadeWorld } from '../facade-world.ts';

const gcsKey = serviceAccountKey({ private_key_id: 'canary-gcs-key' });
const s3 = { bucket: 'acme-events', region: 'eu-central-1', accessKeyId: 'AKIA1', secretAccessKey: 'canary-s3-key' };
const types = [
  {
    type: 's3',
    config: s3,
    secret: 'secretAccessKey',
    shown: '••••-key',
    other: 'a-new-secret-key',
    host: null,
    elsewhere: { region: 'us-east-1', bucket: 'other' },
    sameHost: {},
  },
  {
    type: 'r2',
    config: { bucket: 'acme-events', endpoint: 'https://acme.r2.example', accessKeyId: 'a', secretAccessKey: 'canary-r2-key' },
    secret: 'secretAccessKey',
    shown: '••••-key',
    other: 'short',
    host: 'endpoint',
    elsewhere: { endpoint: 'https://other.r2.example/in' },
    sameHost: { endpoint: 'https://other.r2.example/elsewhere', bucket: 'other' },
  },
  {
    type: 'gcs',
    config: { bucket: 'acme-events', projectId: 'acme', serviceAccountKey: gcsKey },
    secret: 'serviceAccountKey',
    shown: `••••${gcsKey.slice(-4)}`,
    other: serviceAccountKey({ client_email: 'c@d.example' }),
    host: null,
    elsewhere: { projectId: 'other', bucket: 'other' },
    sameHost: {},
  },
  {
    type: 'azure_blob',
    config: { accountName: 'acme', containerName: 'events', accountKey: 'Y2FuYXJ5Y2FuYXJ5' },
    secret: 'accountKey',
    shown: '••••YXJ5',
    other: 'b3RoZXI=',
    host: 'accountName',
    elsewhere: { accountName: 'other' },
    sameHost: { containerName: 'other' },
  },
] as const;

/** Destinations of each kind of object storage and their credentials, with any store behind the API. */
export function describeWarehouses(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const create = (body: object, options: object = {}) => world.request('POST', '/api/destinations', { body, ...options });
  const read = (id: string) => world.request('GET', `/api/destinations/${id}`);
  const change = (id: string, body: object, options: object = {}) =>
    world.request('PATCH', `/api/destinations/${id}`, { body, ...options });
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

  describe.each(types)('a destination of type $type', ({ type, config, secret, shown, other, host, elsewhere, sameHost }) => {
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

    test('has a bucket or container whose name has 3 to 63 characters', async () => {
      const field = 'bucket' in config ? 'bucket' : 'containerName';
      for (const [length, expected] of [
        [2, 400],
        [3, 201],
        [63, 201],
        [64, 400],
      ] as const) {
        const { status, body } = await create({ name: `Of ${length}`, type, config: { ...config, [field]: 'a'.repeat(length) } });
        expect([length, status]).toEqual([length, expected]);
        if (status === 400) expect(body).toMatchObject({ error: 'Bad Request', message: expect.stringContaining(field) });
      }
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

    test('is not led to another host with a kept credential by who is no admin', async () => {
      const developer = { key: await world.addKey('acme', { role: 'developer' }) };
      const id = await made({ name: `Led ${type}`, type, config });
      const before = (await read(id)).body.config;
      for (const sent of [elsewhere, { ...elsewhere, [secret]: shown }, { ...before, ...elsewhere }]) {
        const { status, body } = await change(id, { config: sent }, developer);
        if (host === null) expect(status).toBe(200);
        else
          expect([status, body.code, body.message]).toEqual([
            400,
            'CREDENTIALS_REQUIRED',
            `config.${host} names another host: send config.${secret} with it.`,
          ]);
      }
      if (host !== null) expect((await read(id)).body.config).toEqual(before);
      const given = { ...elsewhere, [secret]: config[secret as keyof typeof config] };
      const answer = await change(id, { config: given }, developer);
      expect([answer.status, answer.body.config]).toEqual([200, { ...before, ...elsewhere }]);
      // The rest of the path, the same host in another spelling, and whatever an admin sends.
      expect((await change(id, { config: { ...answer.body.config, prefix: 'raw', ...sameHost } }, developer)).status).toBe(200);
      expect((await change(id, { config: host === null ? {} : { [host]: config[host as keyof typeof config] } })).status).toBe(200);
    });

    test('is exported masked, imported disabled, and enabled once its credential is sent', async () => {
      const slug = `moves-${type.replace('_', '-')}`;
      const id = await made({
        name: `Moves ${type}`,
        slug,
        type,
        config,
        fieldMapping: [{ source: '$.id', target: 'id', type: 'string' }],
      });
      const { body: document } = await world.request('GET', `/api/destinations/export?ids=${id}`);
      expect(document.destinations).toMatchObject([{ slug, type, config: { [secret]: shown }, fieldMapping: [{ source: '$.id' }] }]);
      await world.request('DELETE', `/api/destinations/${id}`);
      const imported = await world.request('POST', '/api/destinations/import', { body: { ...document, conflictStrategy: 'skip' } });
      expect(imported.body).toMatchObject({ success: true, warnings: [expect.stringContaining('disabled')] });
      expect((await read(slug)).body).toMatchObject({ enabled: false, type });
      expect((await change(slug, { enabled: true })).body.code).toBe('CREDENTIALS_REQUIRED');
      const same = await world.request('POST', '/api/destinations/import', { body: { ...document, conflictStrategy: 'overwrite' } });
      expect(same.body).toMatchObject({ success: true, summary: { overwritten: 1 }, warnings: imported.body.warnings });
      expect((await read(slug)).body).toMatchObject({ enabled: false, type });
      expect((await change(slug, { enabled: true, config: { [secret]: other } })).body).toMatchObject({ enabled: true });
      const again = await world.request('POST', '/api/destinations/import', { body: { ...document, conflictStrategy: 'overwrite' } });
      expect(again.body).toMatchObject({ success: true, warnings: [] });
      expect(await stored(slug)).toContain(JSON.stringify(other));
    });
  });

  test.each<[field: string, shown: string, value: unknown]>(
    [
      ['prefix', ''],
      ['prefix', 'p'.repeat(512)],
      ['fileFormat', 'jsonl'],
      ['fileFormat', 'json'],
      ['partitionBy', 'date'],
      ['partitionBy', 'hour'],
      ['partitionBy', 'source'],
      ['accessKeyId', 'k'.repeat(256)],
      ['region', 'us-gov-east-1'],
    ].map(([field = '', value = '']) => [field, `${value.slice(0, 20)} (${value.length})`, value]),
  )('config.%s may be %s', async (field, _, value) => {
    const created = await create({ name: 'Made', type: 's3', config: { ...s3, [field]: value } });
    expect([created.status, created.body.config?.[field]]).toEqual([201, value]);
    const id = await made({ name: 'Changed', type: 's3', config: s3 });
    const changed = await change(id, { config: { [field]: value } });
    const masked = { ...s3, secretAccessKey: '••••-key', fileFormat: 'jsonl', partitionBy: 'date', identity: 'keys' };
    expect([changed.status, changed.body.config]).toEqual([200, { ...masked, [field]: value }]);
    expect((await read(id)).body).toEqual(changed.body);
  });

  test('an access key id that no header can carry is refused', async () => {
    const refused = [400, 'config.accessKeyId must have no control characters and none beyond Latin-1.'];
    const config = { ...s3, accessKeyId: 'AKIA€' };
    const created = await create({ name: 'Unsendable', type: 's3', config });
    expect([created.status, created.body.message]).toEqual(refused);
    const id = await made({ name: 'Sendable', type: 's3', config: s3 });
    const changed = await change(id, { config: { accessKeyId: 'AKIA\n' } });
    expect([changed.status, changed.body.message]).toEqual(refused);
  });

  test('a field mapping has up to 50 rules, each with its bounds', async () => {
    const rule = (n: number) => ({ source: `$.payload.c${n}`, target: `c${n}`, type: 'string' });
    const rules = (count: number) => Array.from({ length: count }, (_, n) => rule(n));
    const long = { source: `$.payload.${'s'.repeat(502)}`, target: 't'.repeat(256), type: 'string', default: 'd'.repeat(1024) };
    const types = ['number', 'boolean', 'timestamp', 'json'].map((type, n) => ({ ...rule(n), type }));
    const id = await made({ name: 'Fifty', type: 's3', config: s3, fieldMapping: rules(50) });
    expect((await read(id)).body.fieldMapping).toEqual(rules(50));
    expect((await change(id, { fieldMapping: [long, ...types] })).body.fieldMapping).toEqual([long, ...types]);
    expect((await change(id, { fieldMapping: rules(50) })).body.fieldMapping).toEqual(rules(50));
    for (const answer of [
      await create({ name: 'Fifty-one', type: 's3', config: s3, fieldMapping: rules(51) }),
      await change(id, { fieldMapping: rules(51) }),
    ])
      expect([answer.status, answer.body.message]).toEqual([400, 'fieldMapping must be at most 50 items long.']);
    for (const [field, value] of [
      ['source', `${long.source}s`],
      ['target', `${long.target}t`],
      ['default', `${long.default}d`],
    ] as const) {
      const { status, body } = await change(id, { fieldMapping: [{ ...long, [field]: value }] });
      expect([status, body.message]).toEqual([400, expect.stringContaining(`fieldMapping[0].${field}`)]);
    }
    expect((await read(id)).body.fieldMapping).toEqual(rules(50));
  });

  test('a field mapping is kept, replaced, and removed by null', async () => {
    const rule = { source: '$.payload.id', target: 'id', type: 'string', default: 'none' };
    const id = await made({ name: 'Mapped', type: 's3', config: s3, fieldMapping: [rule] });
    expect((await read(id)).body.fieldMapping).toEqual([rule]);
    expect((await change(id, { name: 'Mapped on' })).body.fieldMapping).toEqual([rule]);
    const two = [{ source: '$.source', target: 'source', type: 'string' }, rule];
    expect((await change(id, { fieldMapping: two })).body.fieldMapping).toEqual(two);
    expect((await change(id, { fieldMapping: null })).body.fieldMapping).toEqual([]);
  });
}
