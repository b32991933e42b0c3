import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';
import { signingSecret, portableRequests as varied, portableWarehouses as warehouses } from './portable-destinations.ts';

/** Export and import of destinations, with any store behind the API. */
export function describeDestinationTransfer(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  /** Admin keys of organizations of their own. */
  const keys: string[] = [];
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  async function organization(plan?: 'free'): Promise<string> {
    const slug = `org-${keys.length + 1}`;
    await world.addOrganization(slug, plan);
    const key = await world.addKey(slug);
    keys.push(key);
    return key;
  }
  const url = 'https://hooks.example.com/in';
  const create = (key: string, body: object) => world.create('destinations', { url, ...body }, key);
  const exportOf = async (key: string, query = '') => (await world.request('GET', `/api/destinations/export${query}`, { key })).body;
  const importInto = (key: string, body: object) => world.request('POST', '/api/destinations/import', { key, body });
  const read = async (key: string, slug: string) => world.request('GET', `/api/destinations/${slug}`, { key });
  // biome-ignore lint/suspicious/noExplicitAny: parts of a JSON document
  const apart = ({ exportedAt, organizationSlug, ...rest }: any) => rest;

  describe('an export', () => {
    test('an export holds exactly the portable fields, credentials redacted', async () => {
      const key = await organization();
      const made = await create(key, {
        name: 'One',
        authType: 'bearer',
        authConfig: { token: 'a-long-token-0000001' },
        signingSecret,
      });
      const document = await exportOf(key);
      expect(document).toEqual({
        version: '1.0',
        exportedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        organizationSlug: expect.stringMatching(/^org-/),
        destinations: [
          {
            name: 'One',
            slug: made.slug,
            description: null,
            type: 'http',
            url,
            method: 'POST',
            headers: {},
            headerTemplates: {},
            authType: 'bearer',
            authConfig: '***REDACTED***',
            timeoutMs: 30_000,
            tls: null,
            useStaticIp: false,
            forwardQuery: false,
            forwardHeaders: null,
            payloadForm: 'full',
            ordered: false,
            throttle: { mode: 'off', rateLimit: null, rateUnit: null, strict: null, maxConcurrency: null, queueLimit: null },
            retryPolicy: { maxRetries: 10, initialDelay: 1000, maxDelay: 3_600_000, backoffMultiplier: 4, delays: null },
            expiresAfterSeconds: null,
            hasSigningSecret: true,
            signatureScheme: 'hmac-sha256',
            isActive: true,
          },
        ],
      });
    });

    test('an export holds every documented field for each type, the literal text for credentials also where there are none', async () => {
      const key = await organization();
      for (const body of [...varied, ...warehouses]) await create(key, body);
      const unused = { url: '', method: 'POST', headers: {}, authType: 'none', timeoutMs: 30_000 };
      const fields = ['name', 'slug', 'type', 'url', 'method', 'headers', 'authType', 'authConfig', 'timeoutMs', 'throttle', 'isActive'];
      for (const record of (await exportOf(key)).destinations) {
        expect([record.slug, Object.keys(record)]).toEqual([record.slug, expect.arrayContaining(fields)]);
        expect([record.slug, record.authConfig]).toEqual([record.slug, '***REDACTED***']);
        if (record.type !== 'http') expect(record).toMatchObject(unused);
      }
      for (const record of (await exportOf(key, '?includeSensitive=true')).destinations)
        if (record.authType === 'none') expect([record.slug, record.authConfig]).toEqual([record.slug, null]);
    });

    test('an export shows credentials to admins who request them, and to nobody else', async () => {
      const key = await organization();
      const organizationSlug = `org-${keys.length}`;
      await create(key, { name: 'One', authType: 'bearer', authConfig: { token: 'a-long-token-0000001' }, signingSecret });
      const { destinations } = await exportOf(key, '?includeSensitive=true');
      expect(destinations[0]).toMatchObject({ authConfig: { token: 'a-long-token-0000001' }, signingSecret });
      for (const role of ['developer', 'viewer'] as const) {
        const other = await world.addKey(organizationSlug, { role });
        const answer = await world.request('GET', '/api/destinations/export?includeSensitive=true', { key: other });
        expect([answer.status, answer.body.code]).toEqual([403, 'FORBIDDEN']);
        expect((await exportOf(other)).destinations[0].authConfig).toBe('***REDACTED***');
      }
    });

    test.each([
      ['application/yaml', 'application/yaml; charset=utf-8'],
      ['application/json', 'application/json; charset=utf-8'],
      ['*/*', 'application/json; charset=utf-8'],
      ['text/csv', 'application/json; charset=utf-8'],
    ])('an export with Accept: %s is %s', async (accept, type) => {
      expect((await world.request('GET', '/api/destinations/export', { headers: { accept } })).headers.get('content-type')).toBe(type);
    });

    test('an export is of the ids and slugs that are named', async () => {
      const key = await organization();
      const [one, two] = [await create(key, { name: 'One' }), await create(key, { name: 'Two' })];
      await create(key, { name: 'Three' });
      const { destinations } = await exportOf(key, `?ids=${one.id},${two.slug},nobody`);
      expect(destinations.map(({ slug }: { slug: string }) => slug)).toEqual(['one', 'two']);
    });
  });

  test('an export that is imported into another organization is exported there as the same document', async () => {
    const [from, to] = [await organization(), await organization()];
    const all = [...varied, ...warehouses];
    for (const body of all) await create(from, body);
    const document = await exportOf(from, '?includeSensitive=true');
    const answer = await importInto(to, { ...document, conflictStrategy: 'skip' });
    expect(answer.body).toEqual({
      success: true,
      summary: { imported: all.length, skipped: 0, overwritten: 0, failed: 0 },
      details: { imported: document.destinations.map(({ name }: { name: string }) => name), skipped: [], overwritten: [], failed: [] },
      errors: [],
      warnings: [],
    });
    expect(apart(await exportOf(to, '?includeSensitive=true'))).toEqual(apart(document));
    expect(apart(await exportOf(to))).toEqual(apart(await exportOf(from)));
  });

  test('slugs as long as the names of objects may be are imported as they are', async () => {
    const [from, to] = [await organization(), await organization()];
    const slugs = ['a'.repeat(63), `${'b'.repeat(50)}-1`, `${'b'.repeat(50)}-2`];
    for (const name of slugs) {
      const metadata = { name, namespace: `org-${keys.length - 1}` };
      await world.store.apply({ kind: 'Destination', metadata, spec: { type: 'http', http: { url } } }, { manager: 'kubectl' });
    }
    await eventually(async () => expect((await exportOf(from)).destinations).toHaveLength(slugs.length));
    const document = await exportOf(from);
    for (const [conflictStrategy, outcome] of [
      ['overwrite', 'imported'],
      ['overwrite', 'overwritten'],
      ['rename', 'imported'],
    ] as const) {
      const { body } = await importInto(to, { ...document, conflictStrategy });
      expect(body).toMatchObject({ errors: [], summary: { [outcome]: slugs.length } });
      if (conflictStrategy === 'overwrite') expect(apart(await exportOf(to))).toEqual(apart(document));
    }
  });

  test('what holds no credentials comes through an export without them as it is, and stays enabled', async () => {
    const [from, to] = [await organization(), await organization()];
    const open = [varied.at(0) ?? {}, varied.at(-1) ?? {}, warehouses.at(-1) ?? {}];
    for (const body of open) await create(from, body);
    const document = await exportOf(from);
    const answer = await importInto(to, { ...document, conflictStrategy: 'skip' });
    expect(answer.body).toMatchObject({ success: true, summary: { imported: open.length }, warnings: [] });
    expect(apart(await exportOf(to))).toEqual(apart(document));
    // What is there and the document does not have goes.
    for (const { slug, type } of document.destinations) {
      const changed = { description: 'Changed', ...(type === 'http' && { useStaticIp: true }) };
      const { status } = await world.request('PATCH', `/api/destinations/${slug}`, { key: to, body: changed });
      expect([slug, status]).toEqual([slug, 200]);
    }
    const again = await importInto(to, { ...document, conflictStrategy: 'overwrite' });
    expect(again.body).toMatchObject({ success: true, summary: { overwritten: open.length }, warnings: [] });
    expect(apart(await exportOf(to))).toEqual(apart(document));
    for (const { slug } of document.destinations) {
      const { createdAt: _, updatedAt: __, id: ___, organizationId: ____, ...record } = (await read(from, slug)).body;
      expect((await read(to, slug)).body).toMatchObject(record);
    }
  });

  describe('a conflict of slugs', () => {
    const records = [
      { name: 'There', slug: 'there', url: 'https://new.example.com/', isActive: true },
      { name: 'New', slug: 'new', url, isActive: true },
    ];
    const setup = async () => {
      const key = await organization();
      await create(key, { name: 'Old', slug: 'there', headers: { 'X-Kept': '1' } });
      return key;
    };

    test('a conflict of slugs with skip leaves what is there', async () => {
      const key = await setup();
      const { body } = await importInto(key, { destinations: records, conflictStrategy: 'skip' });
      expect(body).toMatchObject({
        success: true,
        summary: { imported: 1, skipped: 1 },
        details: { imported: ['New'], skipped: ['There'] },
      });
      expect((await read(key, 'there')).body).toMatchObject({ name: 'Old', url });
    });

    test('a conflict of slugs with rename gives the new one a numeric suffix', async () => {
      const key = await setup();
      const { body } = await importInto(key, { destinations: [...records, records[0]], conflictStrategy: 'rename' });
      expect(body).toMatchObject({ summary: { imported: 3 }, details: { imported: ['There', 'New', 'There'] } });
      expect((await read(key, 'there')).body).toMatchObject({ name: 'Old' });
      for (const slug of ['there-2', 'there-3'])
        expect((await read(key, slug)).body).toMatchObject({ name: 'There', url: 'https://new.example.com/' });
    });

    test('a conflict of slugs with overwrite changes what is there', async () => {
      const key = await setup();
      const before = (await read(key, 'there')).body;
      const { body } = await importInto(key, { destinations: records, conflictStrategy: 'overwrite' });
      expect(body).toMatchObject({ summary: { imported: 1, overwritten: 1 }, details: { imported: ['New'], overwritten: ['There'] } });
      expect((await read(key, 'there')).body).toMatchObject({ id: before.id, name: 'There', url: 'https://new.example.com/' });
    });

    test.each(['skip', 'rename', 'overwrite'])(
      'with validateOnly and %s writes nothing and says what would be',
      async (conflictStrategy) => {
        const key = await setup();
        const before = apart(await exportOf(key));
        const destinations = [...records, { name: 'Bad', slug: 'bad', url: 'nowhere' }];
        const dry = await importInto(key, { destinations, conflictStrategy, validateOnly: true });
        expect(apart(await exportOf(key))).toEqual(before);
        const real = await importInto(key, { destinations, conflictStrategy });
        expect(dry.body).toEqual(real.body);
      },
    );
  });

  describe('records are validated one by one', () => {
    test('what is wrong fails by name with its reason, and the rest is imported', async () => {
      const key = await organization();
      const destinations = [
        { name: 'Good', slug: 'good', url },
        { name: 'Bad url', slug: 'bad-url', url: 'nowhere' },
        { name: 'Unknown field', slug: 'unknown', url, colour: 'red' },
        { slug: 'nameless', url },
        { name: 'Reserved', slug: 'export', url },
        { name: 'Header', slug: 'header', url, headers: { Host: 'x' } },
        { name: 'No password', slug: 'no-password', url, authType: 'basic', authConfig: { username: 'a' } },
        { name: 'Without slug', url },
      ];
      const { status, body } = await importInto(key, { destinations, conflictStrategy: 'skip' });
      expect(status).toBe(200);
      expect(body.success).toBe(false);
      expect(body.details.imported).toEqual(['Good', 'Without slug']);
      expect(body.details.failed).toEqual(['Bad url', 'Unknown field', 'nameless', 'Reserved', 'Header', 'No password']);
      expect(body.errors.map(({ code }: { code: string }) => code)).toEqual([
        'INVALID_URL',
        'UNKNOWN_FIELD',
        'VALIDATION_FAILED',
        'VALIDATION_FAILED',
        'VALIDATION_FAILED',
        'VALIDATION_FAILED',
      ]);
      expect((await exportOf(key)).destinations.map(({ slug }: { slug: string }) => slug)).toEqual(['good', 'without-slug']);
    });

    test('a throttle and a static address fail on the free plan', async () => {
      const key = await organization('free');
      const throttle = { mode: 'concurrency', maxConcurrency: 2 };
      const destinations = [
        { name: 'Rated', slug: 'rated', url, throttle },
        { name: 'Fixed', url, useStaticIp: true },
      ];
      const { body } = await importInto(key, { destinations, conflictStrategy: 'skip' });
      expect(body).toMatchObject({
        success: false,
        errors: [
          { name: 'Rated', code: 'FORBIDDEN' },
          { name: 'Fixed', code: 'FORBIDDEN' },
        ],
      });
    });

    test('what Git owns is not overwritten, and a dry run reports it', async () => {
      const key = await organization();
      const namespace = `org-${keys.length}`;
      const spec = { name: 'Git', type: 'http', http: { url } };
      await world.store.apply({ kind: 'Destination', metadata: { name: 'git', namespace }, spec }, { manager: 'argocd' });
      const destinations = [{ name: 'Git', slug: 'git', url: 'https://other.example.com/' }];
      for (const validateOnly of [true, false]) {
        const { body } = await importInto(key, { destinations, conflictStrategy: 'overwrite', validateOnly });
        expect(body).toMatchObject({ success: false, details: { overwritten: [], failed: ['Git'] } });
        expect(body.errors).toEqual([{ name: 'Git', code: 'FIELD_MANAGED', message: expect.stringContaining('argocd') }]);
      }
    });
  });

  describe('redacted credentials', () => {
    const types = varied.slice(2, 6);

    test('redacted credentials make a disabled destination that waits for its own', async () => {
      const [from, to] = [await organization(), await organization()];
      for (const body of types) await create(from, body);
      const { body } = await importInto(to, { ...(await exportOf(from)), conflictStrategy: 'skip' });
      expect(body.summary.imported).toBe(types.length);
      expect(body.warnings).toHaveLength(types.length);
      for (const { slug, authType } of (await exportOf(from)).destinations) {
        const record = (await read(to, slug)).body;
        expect([record.enabled, record.authType]).toEqual([false, authType]);
        const refused = await world.request('PATCH', `/api/destinations/${slug}`, { key: to, body: { enabled: true } });
        expect([refused.status, refused.body.code]).toEqual([400, 'CREDENTIALS_REQUIRED']);
      }
      const given = { authConfig: { token: 'another-long-token-1' }, signingSecret, enabled: true };
      const enabled = await world.request('PATCH', '/api/destinations/bearer', { key: to, body: given });
      expect([enabled.status, enabled.body.enabled, enabled.body.authConfig.token]).toEqual([200, true, '••••en-1']);
    });

    test('redacted credentials leave disabled, however often they come, what has not been given its own yet', async () => {
      const [from, to] = [await organization(), await organization()];
      for (const body of types) await create(from, body);
      const document = await exportOf(from);
      const first = await importInto(to, { ...document, conflictStrategy: 'skip' });
      const imported = await exportOf(to);
      for (const validateOnly of [true, false]) {
        const again = await importInto(to, { ...document, conflictStrategy: 'overwrite', validateOnly });
        expect(again.body).toMatchObject({ success: true, summary: { overwritten: types.length }, warnings: first.body.warnings });
        expect(apart(await exportOf(to))).toEqual(apart(imported));
      }
      const given = { username: 'me', password: 'another-long-password' };
      const change = await world.request('PATCH', '/api/destinations/basic', { key: to, body: { authConfig: given } });
      expect([change.status, change.body.enabled]).toEqual([200, false]);
      const last = await importInto(to, { ...document, conflictStrategy: 'overwrite' });
      expect(last.body.warnings).toEqual(first.body.warnings.filter((text: string) => !text.includes('"basic"')));
      const { destinations } = await exportOf(to, '?ids=basic&includeSensitive=true');
      expect(destinations).toMatchObject([{ isActive: true, authConfig: given }]);
    });

    test('redacted credentials keep the stored ones on overwrite', async () => {
      const key = await organization();
      for (const body of types) await create(key, body);
      const before = await exportOf(key, '?includeSensitive=true');
      const document = await exportOf(key);
      for (const record of document.destinations) record.timeoutMs = 4321;
      const { body } = await importInto(key, { ...document, conflictStrategy: 'overwrite' });
      expect(body).toMatchObject({ success: true, summary: { overwritten: types.length }, warnings: [] });
      const after = await exportOf(key, '?includeSensitive=true');
      for (const record of before.destinations) record.timeoutMs = 4321;
      expect(apart(after)).toEqual(apart(before));
    });

    test('redacted credentials are not carried to another host by who is no admin', async () => {
      const admin = await organization();
      await create(admin, types[1] ?? {});
      const developer = await world.addKey(`org-${keys.length}`, { role: 'developer' });
      const document = await exportOf(admin);
      document.destinations[0].url = 'https://elsewhere.example.com/';
      const { body } = await importInto(developer, { ...document, conflictStrategy: 'overwrite' });
      expect(body.errors).toMatchObject([{ code: 'CREDENTIALS_REQUIRED' }]);
      expect((await read(admin, 'bearer')).body.url).toBe(url);
    });

    test.each([
      ['http of the same host', 'http://hooks.example.com/in'],
      ['HTTP in capitals', 'HTTP://hooks.example.com/in'],
      ['http of the port of https', 'http://hooks.example.com:443/in'],
      ['http of another host', 'http://elsewhere.example.com/in'],
    ])('redacted credentials are carried to %s by nobody, an admin no more than a developer', async (_, plain) => {
      const admin = await organization();
      const authConfig = { token: 'a-long-token-0000002' };
      await create(admin, { name: 'Bearer', authType: 'bearer', authConfig });
      const developer = await world.addKey(`org-${keys.length}`, { role: 'developer' });
      const document = await exportOf(admin);
      document.destinations[0].url = plain;
      for (const key of [admin, developer]) {
        const { body } = await importInto(key, { ...document, conflictStrategy: 'overwrite' });
        expect(body.errors).toMatchObject([{ code: 'CREDENTIALS_REQUIRED' }]);
      }
      expect((await read(admin, 'bearer')).body.url).toBe(url);
      document.destinations[0].authConfig = authConfig;
      expect((await importInto(admin, { ...document, conflictStrategy: 'overwrite' })).body.errors).toEqual([]);
      expect((await read(admin, 'bearer')).body.url).toBe(plain);
    });
  });

  test.each([
    ['no conflictStrategy', { destinations: [] }],
    ['an unknown strategy', { destinations: [], conflictStrategy: 'merge' }],
    ['no list', { conflictStrategy: 'skip' }],
    ['a list of something else', { destinations: ['a'], conflictStrategy: 'skip' }],
    ['1001 records', { destinations: Array.from({ length: 1001 }, () => ({})), conflictStrategy: 'skip' }],
    ['another version', { destinations: [], conflictStrategy: 'skip', version: '2.0' }],
  ])('an import with %s is 400', async (_, body) => {
    expect((await importInto(world.admin, body)).status).toBe(400);
  });
}
