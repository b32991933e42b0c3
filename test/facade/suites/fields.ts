import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { Answer, FacadeWorld } from '../facade-world.ts';
import { acceptedOfDestinations, refusedOfDestinations } from './destination-values.ts';
import { acceptedValues, refusedValues } from './field-values.ts';
import { describeLists } from './lists.ts';

interface Unchanged {
  // biome-ignore lint/suspicious/noExplicitAny: as the API answers
  record: any;
  /** What another one would be made of. */
  wanted: Record<string, unknown>;
}

/** Defaults and bounds of each field, on create and on change, with any store behind the API. */
export function describeFields(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let sourceId: string;
  const destinations: string[] = [];
  const unchanged = new Map<string, Promise<Unchanged>>();
  let made = 0;

  beforeAll(async () => {
    world = await start();
    sourceId = (await post('sources', { name: 'Shop' })).body.id;
    for (let n = 0; n < 5; n++) destinations.push((await post('destinations', { name: `Target ${n}`, url })).body.id);
  });
  afterAll(() => world.stop());

  const url = 'https://hooks.example.com/in';
  const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
  const post = (path: string, body: object) => world.request('POST', `/api/${path}`, { body });
  const patch = (path: string, body: object) => world.request('PATCH', `/api/${path}`, { body });

  const families = ['routes', 'destinations', 'filters', 'sources', 'transforms', 'schemas', 'notification-channels'];

  /** What a create needs, new each time. */
  async function least(family: string): Promise<Record<string, unknown>> {
    const name = `${family} ${++made}`;
    switch (family) {
      case 'destinations':
        return { name, url };
      case 'routes':
        return { name, sourceId, destinationIds: [(await post('destinations', { name: `For ${name}`, url })).body.id] };
      case 'filters':
        return { name, conditions: [{ field: 'payload.a', operator: 'exists' }] };
      case 'transforms':
        return { name, code: '1' };
      case 'schemas':
        return { name, jsonSchema: {} };
      case 'notification-channels':
        return { name, type: 'email', config: { addresses: ['team@example.com'] } };
      default:
        return { name };
    }
  }

  /** One for all refusals of a family, of which no other test makes use. */
  function unchangedOf(family: string): Promise<Unchanged> {
    const make = async (): Promise<Unchanged> => ({ record: (await post(family, await least(family))).body, wanted: await least(family) });
    const found = unchanged.get(family) ?? make();
    unchanged.set(family, found);
    return found;
  }

  function expectRefused(answer: Answer, field: string): void {
    expect([answer.status, answer.body.error]).toEqual([400, 'Bad Request']);
    expect(answer.body.message).toContain(field);
  }

  describe('a record made with the least', () => {
    test('a record made with the least has the defaults of a destination', async () => {
      expect((await post('destinations', await least('destinations'))).body).toMatchObject({
        type: 'http',
        enabled: true,
        description: null,
        method: 'POST',
        headers: {},
        headerTemplates: {},
        authType: 'none',
        authConfig: null,
        timeoutMs: 30_000,
        tls: null,
        useStaticIp: false,
        forwardQuery: false,
        forwardHeaders: null,
        payloadForm: 'full',
        awaitsSigningSecret: false,
        ordered: false,
        throttle: { mode: 'off', rateLimit: null, rateUnit: null, strict: null, maxConcurrency: null, queueLimit: null },
        retryPolicy: { maxRetries: 10, initialDelay: 1000, maxDelay: 3_600_000, backoffMultiplier: 4, delays: null },
      });
    });

    test('a record made with the least has the defaults of a route', async () => {
      expect((await post('routes', await least('routes'))).body).toMatchObject({
        id: expect.stringMatching(/^rte_/),
        description: null,
        filterId: null,
        filterConditions: null,
        filterLogic: 'AND',
        priority: 0,
        failoverDestinationIds: [],
        failoverAfterAttempts: 3,
        circuitState: 'closed',
        circuitCooldownSeconds: 300,
        circuitFailureThreshold: 5,
        circuitProbeSuccessThreshold: 2,
        notifyOnFailure: false,
        notifyOnSuccess: false,
        notifyOnRecovery: false,
        notifyEmails: null,
        expectedResponse: null,
        enabled: true,
        source: { id: sourceId, name: 'Shop' },
        destinations: [{ id: expect.stringMatching(/^dst_/), name: expect.any(String) }],
        filter: null,
        transformId: null,
        transform: null,
        schemaId: null,
        schema: null,
        notificationChannelIds: null,
        failureThreshold: 3,
        eventsRouted: 0,
        lastEventAt: null,
        createdAt: expect.stringMatching(isoTime),
        updatedAt: expect.stringMatching(isoTime),
      });
    });

    test('a record made with the least has the defaults of a source', async () => {
      const { body } = await post('sources', await least('sources'));
      expect(body).toEqual({
        id: expect.stringMatching(/^src_[a-z2-7]{26}$/),
        name: expect.any(String),
        slug: expect.any(String),
        description: null,
        provider: 'generic',
        verification: null,
        handshake: null,
        hasVerifyToken: false,
        hasSigningSecret: false,
        awaitsSigningSecret: false,
        signingSecretLast4: null,
        rejectInvalidSignatures: false,
        rateLimitPerMinute: null,
        ipFilterMode: 'none',
        ipAllowlist: [],
        ipDenylist: [],
        dedupStrategy: 'auto',
        dedupHeader: null,
        dedupWindowHours: 24,
        dedupCustomHeader: null,
        dedupEnabled: true,
        allowedMethods: ['POST'],
        enabled: true,
        isActive: true,
        organizationId: expect.stringMatching(/^org_/),
        ingestUrl: `/ingest/acme/${body.slug}`,
        eventsCount: 0,
        eventCount: 0,
        routeCount: 0,
        lastEventAt: null,
        createdAt: expect.stringMatching(isoTime),
        updatedAt: expect.stringMatching(isoTime),
      });
    });

    test('a record made with the least has the defaults of a filter', async () => {
      const wanted = await least('filters');
      expect((await post('filters', wanted)).body).toEqual({
        ...wanted,
        id: expect.stringMatching(/^flt_[a-z2-7]{26}$/),
        slug: expect.any(String),
        description: null,
        logic: 'AND',
        sharedWith: [],
        sharedFrom: null,
        organizationId: expect.stringMatching(/^org_/),
        routeCount: 0,
        createdAt: expect.stringMatching(isoTime),
        updatedAt: expect.stringMatching(isoTime),
      });
    });

    test.each([
      ['destinations', ['name', 'url']],
      ['routes', ['name', 'sourceId', 'destinationIds']],
      ['filters', ['name', 'conditions']],
      ['sources', ['name']],
      ['transforms', ['name', 'code']],
      ['schemas', ['name', 'jsonSchema']],
      ['notification-channels', ['name', 'type', 'config']],
    ])('a record made with the least of %s needs each of %j', async (family, fields) => {
      const { wanted } = await unchangedOf(family);
      for (const field of fields) {
        const { [field]: _, ...rest } = wanted;
        expectRefused(await post(family, rest), field);
      }
    });
  });

  describe('on create and on change', () => {
    test.each([...acceptedValues, ...acceptedOfDestinations].map((row) => [`${row[0]}.${row[1]}`, shown(row[2]), row] as const))(
      '%s may be %s',
      async (_, __, [family, field, value, beside, reads = value]) => {
        const created = await post(family, { ...(await least(family)), ...beside, [field]: value });
        expect([created.status, created.body[field]]).toEqual([201, reads]);
        if (field === 'slug') return;
        const other = await post(family, await least(family));
        const changed = await patch(`${family}/${other.body.id}`, { ...beside, [field]: value });
        expect([changed.status, changed.body[field]]).toEqual([200, reads]);
        const sentBack = await patch(`${family}/${other.body.id}`, changed.body);
        expect([sentBack.status, sentBack.body]).toEqual([200, changed.body]);
      },
    );

    test.each([...refusedValues, ...refusedOfDestinations].map((row) => [`${row[0]}.${row[1]}`, shown(row[2]), row] as const))(
      '%s may not be %s',
      async (_, __, [family, field, value, says = field, beside]) => {
        const { record, wanted } = await unchangedOf(family);
        expectRefused(await post(family, { ...wanted, ...beside, [field]: value }), says);
        expectRefused(await patch(`${family}/${record.id}`, { ...beside, [field]: value }), field === 'slug' ? field : says);
        expect((await world.request('GET', `/api/${family}/${record.id}`)).body).toEqual(record);
      },
    );
  });

  describe('authConfig', () => {
    test.each([
      ['basic', { username: 'shop', password: 'a-password-of-the-shop' }, { username: 'shop', password: '••••shop' }],
      ['bearer', { token: 'a-token-of-the-shop' }, { token: '••••shop' }],
      ['api_key', { headerName: 'X-Key', key: 'a-key-of-the-shop' }, { headerName: 'X-Key', key: '••••shop' }],
      ['custom_header', { headerName: 'X-Auth', headerValue: 'a-value-of-the-shop' }, { headerName: 'X-Auth', headerValue: '••••shop' }],
    ])('of %s has its fields, each of which is needed, and shows the end of its secret', async (authType, authConfig, read) => {
      const { status, body } = await post('destinations', { name: 'With auth', url, authType, authConfig });
      expect([status, body.authType, body.authConfig]).toEqual([201, authType, read]);
      for (const field of Object.keys(authConfig)) {
        const rest = Object.fromEntries(Object.entries(authConfig).filter(([name]) => name !== field));
        expectRefused(await post('destinations', { name: 'Without', url, authType, authConfig: rest }), field);
      }
      expectRefused(await post('destinations', { name: 'More', url, authType, authConfig: { ...authConfig, realm: 'x' } }), 'realm');
    });

    test('is none with authType none, and a short secret shows nothing of itself', async () => {
      expectRefused(await post('destinations', { name: 'None', url, authType: 'none', authConfig: { token: 'x' } }), 'authConfig');
      const short = await post('destinations', { name: 'Short', url, authType: 'bearer', authConfig: { token: 'eleven-char' } });
      expect(short.body.authConfig).toEqual({ token: '••••' });
    });
  });

  describe('routes', () => {
    test('routes have at most 3 failover destinations, none of which is their own', async () => {
      const [own = '', ...spares] = destinations;
      const base = { name: 'With failover', sourceId, destinationIds: [own] };
      expectRefused(await post('routes', { ...base, failoverDestinationIds: spares }), 'failoverDestinationIds');
      expect((await post('routes', { ...base, failoverDestinationIds: [own] })).status).toBe(400);
      const created = await post('routes', { ...base, failoverDestinationIds: spares.slice(0, 3) });
      expect([created.status, created.body.failoverDestinationIds]).toEqual([201, spares.slice(0, 3)]);
    });

    test('routes are listed by enabled, source and destination', async () => {
      const on = (await post('routes', await least('routes'))).body;
      const off = (await post('routes', { ...(await least('routes')), enabled: false })).body;
      const ids = async (query: string) =>
        (await world.request('GET', `/api/routes?pageSize=100&${query}`)).body.data.map(({ id }: { id: string }) => id);
      for (const route of [on, off]) {
        expect(await ids(`destinationId=${route.destinationIds[0]}`)).toEqual([route.id]);
        expect(await ids(`sourceId=${sourceId}`)).toContain(route.id);
        expect(await ids(`search=${route.slug}`)).toEqual([route.id]);
      }
      for (const unknown of ['sourceId=src_aaaaaaaaaaaaaaaaaaaaaaaaaa', 'destinationId=dst_aaaaaaaaaaaaaaaaaaaaaaaaaa'])
        expect((await world.request('GET', `/api/routes?${unknown}`)).status).toBe(404);
      expect(await ids('enabled=true')).toEqual(expect.arrayContaining([on.id]));
      expect(await ids('enabled=true')).not.toContain(off.id);
      expect(await ids('enabled=false')).toEqual(expect.arrayContaining([off.id]));
      expect(await ids('enabled=false')).not.toContain(on.id);
      expect(await ids(`enabled=false&destinationId=${on.destinationIds[0]}`)).toEqual([]);
    });
  });

  describeLists({ world: () => world, least });

  test('a slug cannot be changed; the same one is taken', async () => {
    for (const family of families) {
      const before = (await post(family, await least(family))).body;
      const answer = await patch(`${family}/${before.id}`, { slug: 'another', name: 'New' });
      expect([family, answer.status, answer.body.message]).toEqual([family, 400, 'slug cannot be changed.']);
      expect((await world.request('GET', `/api/${family}/${before.id}`)).body).toEqual(before);
      const same = await patch(`${family}/${before.id}`, { slug: before.slug, name: 'New' });
      expect([same.status, same.body.slug, same.body.name]).toEqual([200, before.slug, 'New']);
    }
  });

  test('a record is read, changed and deleted by its slug as by its id, also under the path of its organization', async () => {
    for (const family of families) {
      const { id, slug } = (await post(family, await least(family))).body;
      const organization = await world.organizationId('acme');
      const record = (await patch(`${family}/${slug}`, { name: `${family} by slug` })).body;
      expect(record).toMatchObject({ id, slug, name: `${family} by slug` });
      for (const path of [family, `organizations/acme/${family}`, `organizations/${organization}/${family}`])
        for (const named of [id, slug]) expect((await world.request('GET', `/api/${path}/${named}`)).body).toEqual(record);
      expect((await world.request('DELETE', `/api/${family}/${slug}`)).status).toBe(204);
      expect((await world.request('GET', `/api/${family}/${id}`)).status).toBe(404);
    }
  });

  test('a record reports when it was made and when it was last changed', async () => {
    const tells = async (family: string): Promise<void> => {
      const { id, createdAt, updatedAt } = (await post(family, await least(family))).body;
      expect([createdAt, updatedAt]).toEqual([expect.stringMatching(isoTime), expect.stringMatching(isoTime)]);
      expect(Date.parse(updatedAt)).toBeGreaterThanOrEqual(Date.parse(createdAt));
      // The clock of the store may count seconds alone.
      await eventually(async () => {
        const changed = (await patch(`${family}/${id}`, { name: `${family} ${++made}` })).body;
        expect(changed.createdAt).toBe(createdAt);
        expect(Date.parse(changed.updatedAt)).toBeGreaterThan(Date.parse(updatedAt));
      });
    };
    await Promise.all(families.map(tells));
  });

  test('a deleted record is gone, and the answer is 204 without a body', async () => {
    for (const family of families) {
      const { id } = (await post(family, await least(family))).body;
      const answer = await world.request('DELETE', `/api/${family}/${id}`);
      expect([answer.status, answer.text]).toEqual([204, '']);
      const gone = await world.request('GET', `/api/${family}/${id}`);
      expect([gone.status, gone.body.error, gone.body.code]).toEqual([404, 'Not Found', 'RESOURCE_NOT_FOUND']);
    }
  });

  test('a static address needs a paid plan', async () => {
    await world.addOrganization('modest', 'free');
    const key = await world.addKey('modest');
    const send = (method: string, path: string, body: object) => world.request(method, `/api/destinations${path}`, { key, body });
    const refused = { status: 403, body: { error: 'Forbidden', code: 'FORBIDDEN', message: 'useStaticIp needs a paid plan.' } };
    expect(await send('POST', '', { name: 'Fixed', url, useStaticIp: true })).toMatchObject(refused);
    const { status, body } = await send('POST', '', { name: 'Fixed', url, useStaticIp: false });
    expect([status, body.useStaticIp]).toEqual([201, false]);
    expect(await send('PATCH', `/${body.id}`, { useStaticIp: true })).toMatchObject(refused);
  });

  test('throttle modes other than off need a paid plan', async () => {
    await world.addOrganization('small', 'free');
    const key = await world.addKey('small');
    const create = (throttle: object) => world.request('POST', '/api/destinations', { key, body: { name: 'Small', url, throttle } });
    for (const throttle of [
      { mode: 'rate', rateLimit: 1, rateUnit: 'second' },
      { mode: 'concurrency', maxConcurrency: 1 },
    ]) {
      const { status, body } = await create(throttle);
      expect([status, body.error]).toEqual([403, 'Forbidden']);
      expect(body.message).toMatch(/plan/);
    }
    expect((await create({ mode: 'off' })).status).toBe(201);
  });

  function shown(value: unknown): string {
    const text = JSON.stringify(value);
    return text.length > 40 ? `${text.slice(0, 40)}… (${text.length})` : text;
  }
}
