import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { Answer, FacadeWorld } from '../facade-world.ts';
import { portableRequests, portableWarehouses } from './portable-destinations.ts';

/** What is written through the API, with any store behind the API. */
export function describeWrites(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const url = 'https://hooks.example.com/in';
  let named = 0;
  const post = async (collection: string, body: object, key?: string) => world.request('POST', `/api/${collection}`, { body, key });
  const patch = async (path: string, body: object, key?: string) => world.request('PATCH', `/api/${path}`, { body, key });
  /** Through a replica that does not wait for what will not come into force. */
  const impatient = async () => {
    const request = await world.startReplica({ inForceTimeoutMs: 200 });
    return (path: string, body: object) => request('PATCH', `/api/${path}`, { body });
  };
  const get = async (path: string) => (await world.request('GET', `/api/${path}`)).body;
  const destination = (body: object = {}) => world.create('destinations', { url, ...body });
  async function route(body: object = {}) {
    const source = await world.create('sources', {});
    const target = await destination();
    return world.create('routes', { sourceId: source.id, destinationIds: [target.id], ...body });
  }

  describe('destinations', () => {
    test.each([
      ['no url', {}, undefined],
      ['a url that is none', { url: 'nowhere' }, 'INVALID_URL'],
      ['a url of another scheme', { url: 'ftp://example.com/' }, 'INVALID_URL'],
      ['a timeout over 60 s', { url, timeoutMs: 60_001 }, undefined],
      ['another method', { url, method: 'GET' }, undefined],
      ['a rate without its unit', { url, throttle: { mode: 'rate', rateLimit: 5 } }, undefined],
      ['concurrency without its limit', { url, throttle: { mode: 'concurrency' } }, undefined],
      ['26 retries', { url, retryPolicy: { maxRetries: 26 } }, undefined],
      ['basic without a password', { url, authType: 'basic', authConfig: { username: 'a' } }, undefined],
      ['a header of ours', { url, headers: { 'webhook-id': 'x' } }, undefined],
      ['a slug that is reserved', { url, slug: 'bulk' }, undefined],
      ['a warehouse type', { type: 's3', config: {} }, undefined],
    ])('destinations with %s are 400', async (_, body, code) => {
      const answer = await post('destinations', { name: 'Wrong', ...body });
      expect(answer.status).toBe(400);
      expect(answer.body.code).toEqual(code ?? expect.any(String));
      expect(answer.body.message.length).toBeGreaterThan(0);
    });

    test.each<[string, unknown]>([
      ['is none', 'nowhere'],
      ['has another scheme', 'ftp://example.com/'],
      ['has a user', 'https://user@example.com/'],
      ['is empty', ''],
      ['is longer than 2048 characters', `https://example.com/${'x'.repeat(2029)}`],
      ['is a number', 5],
      ['is null', null],
      ['is a list', [url]],
    ])('destinations whose url %s are INVALID_URL when made, changed and imported', async (_, wrong) => {
      const refused = (answer: Answer) => [answer.status, answer.body.error, answer.body.code, answer.headers.get('x-error-code')];
      const expected = [400, 'Bad Request', 'INVALID_URL', 'INVALID_URL'];
      expect(refused(await post('destinations', { name: 'Wrong', url: wrong }))).toEqual(expected);
      const { id } = await destination();
      expect(refused(await patch(`destinations/${id}`, { url: wrong }))).toEqual(expected);
      expect((await get(`destinations/${id}`)).url).toBe(url);
      const imported = await post('destinations/import', { destinations: [{ name: 'Wrong', url: wrong }], conflictStrategy: 'skip' });
      expect(imported.body.errors).toEqual([{ name: 'Wrong', code: 'INVALID_URL', message: expect.stringMatching(/^url /) }]);
    });

    test.each([
      ['http://', true],
      ['HTTP://', true],
      ['https://', false],
      ['HTTPS://', false],
    ])('destinations over %s are made, of http with a warning', async (scheme, warns) => {
      const { status, headers } = await post('destinations', { name: 'Any scheme', url: `${scheme}hooks.example.com/` });
      expect([status, headers.get('warning') !== null]).toEqual([201, warns]);
    });

    test('answer their list by search and by enabled', async () => {
      const off = await destination({ name: 'Needle off', enabled: false });
      await destination({ name: 'Needle on' });
      const ids = async (query: string) => (await get(`destinations?${query}`)).data.map(({ id }: { id: string }) => id);
      expect(await ids('search=needle')).toHaveLength(2);
      expect(await ids('search=needle&enabled=false')).toEqual([off.id]);
    });

    test('destinations are found by a part of their name or of their url, whatever the case, and not by their slug', async () => {
      const made = await destination({ name: 'Haystack', slug: 'pitchfork', url: 'https://barn.example.com/Wagon?load=1' });
      await destination({ name: 'Elsewhere' });
      const found = async (search: string) =>
        (await get(`destinations?search=${encodeURIComponent(search)}`)).data.map(({ id }: { id: string }) => id);
      for (const search of ['haystack', 'AYST', 'barn.example', '/wagon?LOAD='])
        expect([search, await found(search)]).toEqual([search, [made.id]]);
      expect(await found('pitchfork')).toEqual([]);
    });

    test('change what a PATCH names and keep the rest', async () => {
      const before = await destination({ headers: { 'X-A': '1', 'X-B': '2' }, retryPolicy: { maxRetries: 4 } });
      const { status, body } = await patch(`destinations/${before.id}`, { headers: { 'X-C': '3' }, retryPolicy: { initialDelay: 500 } });
      expect(status).toBe(200);
      expect(body).toMatchObject({ name: before.name, headers: { 'X-C': '3' }, retryPolicy: { maxRetries: 4, initialDelay: 500 } });
      expect(body.headers).toEqual({ 'X-C': '3' });
      expect(await get(`destinations/${before.slug}`)).toEqual(body);
    });

    test('keep a header of any name, and any text, when something else changes', async () => {
      const headers = { 'X-R&D': 'caf\u00e9 \u0085\u009f\u00a0', 'X-B': '2' };
      const name = 'One\u2028two \ufeff日本 😀';
      const { id } = await destination({ name, headers });
      expect((await patch(`destinations/${id}`, { timeoutMs: 1234 })).body).toMatchObject({ name, timeoutMs: 1234, headers });
      expect(await get(`destinations/${id}`)).toMatchObject({ name, headers });
      expect((await patch(`destinations/${id}`, { headers: { 'X-B': '2' } })).body.headers).toEqual({ 'X-B': '2' });
    });

    test('take back what they gave, read-only fields and isActive included', async () => {
      const before = await destination();
      const { enabled: _, ...rest } = await get(`destinations/${before.id}`);
      const { status, body } = await patch(`destinations/${before.id}`, { ...rest, isActive: false });
      expect(status).toBe(200);
      expect(body).toMatchObject({ id: before.id, url, enabled: false });
    });

    test('take back what they gave, whatever they hold, and nothing is written', async () => {
      for (const sent of [...portableRequests, ...portableWarehouses]) {
        const { id, slug } = await destination(sent);
        const before = await get(`destinations/${id}`);
        const stored = () => world.store.get('Destination', { namespace: 'acme', name: slug });
        const { spec, metadata } = await stored();
        const answer = await patch(`destinations/${id}`, before);
        expect([answer.status, answer.body]).toEqual([200, before]);
        expect(await stored()).toMatchObject({ spec, metadata: { generation: metadata.generation } });
        const changed = await patch(`destinations/${id}`, { ...before, name: 'New' });
        expect([changed.status, changed.body]).toEqual([200, { ...before, name: 'New', updatedAt: expect.any(String) }]);
      }
    });

    test('keep their type', async () => {
      const before = await destination();
      expect((await patch(`destinations/${before.id}`, { type: 'http' })).status).toBe(200);
      expect((await patch(`destinations/${before.id}`, { type: 's3' })).status).toBe(400);
    });

    test('of one name made at the same time get slugs of their own', async () => {
      const answers = await Promise.all(Array.from({ length: 64 }, () => post('destinations', { name: 'Same name', url })));
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 64 }, () => 201));
      expect(new Set(answers.map(({ body }) => body.slug)).size).toBe(64);
    });

    test('destinations that change in two fields at the same time have both changes', async () => {
      const { id } = await destination();
      await Promise.all([patch(`destinations/${id}`, { name: 'New name' }), patch(`destinations/${id}`, { timeoutMs: 1234 })]);
      expect(await get(`destinations/${id}`)).toMatchObject({ name: 'New name', timeoutMs: 1234 });
    });

    test('destinations that are deleted leave their routes', async () => {
      const one = await destination();
      const two = await destination();
      const source = await world.create('sources', {});
      const { id } = await world.create('routes', { sourceId: source.id, destinationIds: [one.id, two.id] });
      expect((await world.request('DELETE', `/api/destinations/${one.id}`)).status).toBe(204);
      expect((await get(`routes/${id}`)).destinationIds).toEqual([two.id]);
      expect((await world.request('GET', `/api/destinations/${one.id}`)).status).toBe(404);
    });
  });

  describe('secrets', () => {
    const canary = 'canary-secret-0123456789';

    test('secrets are masked in every answer, logged nowhere, and sealed in Redis', async () => {
      const { id } = await destination({ authType: 'bearer', authConfig: { token: canary } });
      for (const role of ['admin', 'developer', 'viewer'] as const) {
        const { text } = await world.request('GET', `/api/destinations/${id}`, { key: await world.addKey('acme', { role }) });
        expect(text).not.toContain(canary);
        expect(JSON.parse(text).authConfig.token).toBe('••••6789');
      }
      expect(world.logLines.join('')).not.toContain(canary);
      for (const key of await world.redis.client.keys('*')) {
        const dump = await world.redis.client.dumpBuffer(key);
        expect(dump?.includes(canary) ?? false).toBe(false);
      }
    });

    test('sent back masked are kept, and new ones take their place', async () => {
      const { id, slug } = await destination({ authType: 'bearer', authConfig: { token: canary } });
      const before = (await world.store.get('Destination', { namespace: 'acme', name: slug })).spec.http?.auth?.tokenSecretRef;
      await patch(`destinations/${id}`, { authType: 'bearer', authConfig: { token: '••••6789' } });
      expect((await world.store.get('Destination', { namespace: 'acme', name: slug })).spec.http?.auth?.tokenSecretRef).toEqual(before);
      const { body } = await patch(`destinations/${id}`, { authConfig: { token: 'another-canary-000042' } });
      expect(body.authConfig.token).toBe('••••0042');
    });

    test('secrets must be sent again by a developer who changes the host', async () => {
      const key = await world.addKey('acme', { role: 'developer' });
      const { id } = await destination({ authType: 'bearer', authConfig: { token: canary } });
      const answer = await patch(`destinations/${id}`, { url: 'https://elsewhere.example.com/' }, key);
      expect([answer.status, answer.body.code]).toEqual([400, 'CREDENTIALS_REQUIRED']);
      expect((await patch(`destinations/${id}`, { url: 'https://elsewhere.example.com/' })).status).toBe(200);
    });
  });

  describe('routes', () => {
    test('routes are made with the documented defaults and read with what they refer to', async () => {
      const made = await route();
      expect(await get(`routes/${made.id}`)).toMatchObject({
        id: expect.stringMatching(/^rte_/),
        priority: 0,
        enabled: true,
        filterId: null,
        filterConditions: null,
        filterLogic: 'AND',
        failoverDestinationIds: [],
        failoverAfterAttempts: 3,
        circuitState: 'closed',
        circuitCooldownSeconds: 300,
        circuitFailureThreshold: 5,
        circuitProbeSuccessThreshold: 2,
        expectedResponse: null,
        source: { id: made.sourceId, name: expect.any(String) },
        destinations: [{ id: made.destinationIds[0], name: expect.any(String) }],
        eventsRouted: 0,
        lastEventAt: null,
      });
    });

    test.each(['source', 'destination'])('routes that name a missing %s are 400 INVALID_SOURCE', async (missing) => {
      const source = missing === 'source' ? 'src_aaaaaaaaaaaaaaaaaaaaaaaaaa' : (await world.create('sources', {})).id;
      const target = missing === 'destination' ? 'dst_aaaaaaaaaaaaaaaaaaaaaaaaaa' : (await destination()).id;
      const answer = await post('routes', { name: 'Missing', sourceId: source, destinationIds: [target] });
      expect([answer.status, answer.body.code]).toEqual([400, 'INVALID_SOURCE']);
    });

    test('routes with the source and destinations of another are 409 DUPLICATE_ROUTE, also when both come at once', async () => {
      const { id: sourceId } = await world.create('sources', {});
      const { id } = await destination();
      const answers = await Promise.all([1, 2].map((n) => post('routes', { name: `Twin ${n}`, sourceId, destinationIds: [id] })));
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
      expect(answers.find(({ status }) => status === 409)?.body.code).toBe('DUPLICATE_ROUTE');
    });

    test('keep their source', async () => {
      const made = await route();
      expect((await patch(`routes/${made.id}`, { sourceId: made.sourceId, description: 'same' })).status).toBe(200);
      const other = await world.create('sources', {});
      expect((await patch(`routes/${made.id}`, { sourceId: other.id })).status).toBe(400);
    });

    test('lose their filter by null', async () => {
      const filter = await world.create('filters', { conditions: [{ field: 'a', operator: 'exists' }] });
      const made = await route({ filterId: filter.id });
      expect(made.filterId).toBe(filter.id);
      expect((await patch(`routes/${made.id}`, { filterId: null })).body.filterId).toBeNull();
    });

    test('keep what they use from being deleted', async () => {
      const filter = await world.create('filters', { conditions: [{ field: 'a', operator: 'exists' }] });
      const made = await route({ filterId: filter.id });
      for (const path of [`filters/${filter.id}`, `sources/${made.sourceId}`]) {
        const answer = await world.request('DELETE', `/api/${path}`);
        expect([answer.status, answer.body.code]).toEqual([409, 'IN_USE']);
      }
      expect((await world.request('DELETE', `/api/routes/${made.id}`)).status).toBe(204);
      expect((await world.request('DELETE', `/api/filters/${filter.id}`)).status).toBe(204);
    });

    test('take filterLogic with filterConditions, and as it is shown', async () => {
      const filterConditions = [{ field: 'a', operator: 'exists' }];
      const made = await route({ filterLogic: 'AND' });
      for (const answer of [
        await patch(`routes/${made.id}`, { filterLogic: 'OR' }),
        await patch(`routes/${made.id}`, { filterLogic: 'OR', filterConditions: [] }),
        await post('routes', { name: 'Other', sourceId: made.sourceId, destinationIds: [(await destination()).id], filterLogic: 'OR' }),
      ])
        expect([answer.status, answer.body.message]).toEqual([400, 'filterLogic is valid only with filterConditions: send both.']);
      expect((await patch(`routes/${made.id}`, { filterLogic: 'OR', filterConditions })).body).toMatchObject({ filterLogic: 'OR' });
      expect((await patch(`routes/${made.id}`, { filterLogic: 'OR', filterConditions: null })).body).toMatchObject({ filterLogic: 'AND' });
    });

    test('take back what they gave, although it could not be sent again', async () => {
      const { id: sourceId } = await world.create('sources', {});
      const [kept, gone, last] = [await destination(), await destination(), await destination()];
      const both = await world.create('routes', { sourceId, destinationIds: [kept.id, gone.id] });
      const one = await world.create('routes', { sourceId, destinationIds: [kept.id] });
      const bare = await world.create('routes', { sourceId, destinationIds: [last.id] });
      for (const { id } of [gone, last]) expect((await world.request('DELETE', `/api/destinations/${id}`)).status).toBe(204);
      const slug = `by-kubectl-${++named}`;
      const spec = {
        sourceRef: { name: (await get(`sources/${sourceId}`)).slug },
        destinationRefs: [{ name: kept.slug }, { name: 'not-there' }],
        filter: { conditions: [{ field: 'a', operator: 'matches', value: '(' }] },
        notifications: { emails: [], channelRefs: [] },
      };
      await world.store.apply({ kind: 'Route', metadata: { name: slug, namespace: 'acme' }, spec }, { manager: 'kubectl' });
      await eventually(async () => expect((await world.request('GET', `/api/routes/${slug}`)).status).toBe(200));

      const change = await impatient();
      for (const path of [`routes/${both.id}`, `routes/${one.id}`, `routes/${bare.id}`, `routes/${slug}`]) {
        const before = await get(path);
        const answer = await change(path, before);
        expect([answer.status, answer.body]).toEqual([200, before]);
        expect((await change(path, { ...before, priority: 9 })).body).toMatchObject({ priority: 9, destinationIds: before.destinationIds });
      }
      const emptied = await patch(`routes/${one.id}`, { destinationIds: [] });
      expect([emptied.status, emptied.body.message]).toEqual([400, 'destinationIds must not be empty.']);
    });

    test('routes with a filter that does not compile are 400', async () => {
      const body = { conditions: [{ field: 'a', operator: 'matches', value: '(' }] };
      expect((await post('filters', { name: 'Broken', ...body })).status).toBe(400);
      const made = await route();
      expect((await patch(`routes/${made.id}`, { filterConditions: body.conditions })).status).toBe(400);
    });
  });

  describe('what Git owns', () => {
    async function owned() {
      const name = `owned-${++named}`;
      const spec = { name: 'By Git', type: 'http', http: { url } };
      await world.store.apply({ kind: 'Destination', metadata: { name, namespace: 'acme' }, spec }, { manager: 'argocd' });
      return name;
    }
    const settled = (name: string) =>
      eventually(async () => expect((await world.request('GET', `/api/destinations/${name}`)).status).toBe(200));

    test('what Git owns is not changed through the API, and the answer names the manager', async () => {
      const name = await owned();
      await settled(name);
      const answer = await patch(`destinations/${name}`, { url: 'https://other.example.com/' });
      expect([answer.status, answer.body.code]).toEqual([409, 'FIELD_MANAGED']);
      expect(answer.body.message).toContain('argocd');
      expect((await get(`destinations/${name}`)).url).toBe(url);
    });

    test('what Git owns may be sent back as it is, and beside it other fields change', async () => {
      const name = await owned();
      await settled(name);
      const answer = await patch(`destinations/${name}`, { url, timeoutMs: 4321 });
      expect([answer.status, answer.body.timeoutMs]).toEqual([200, 4321]);
    });

    const conditions = [{ field: 'a', operator: 'exists' }];
    test.each([
      ['destinations', 'Destination', { type: 'http', http: { url } }, { enabled: false }],
      ['routes', 'Route', { sourceRef: { name: 'none' }, destinationRefs: [] }, { description: null }],
      ['sources', 'Source', { provider: 'github' }, { description: null }],
      ['filters', 'Filter', { conditions, logic: 'AND' }, { description: null }],
      ['transforms', 'Transform', { type: 'jsonata', code: '1' }, { description: null }],
      ['schemas', 'PayloadSchema', { jsonSchema: { type: 'object' } }, { description: null }],
      ['notification-channels', 'NotificationChannel', { type: 'email', email: { addresses: ['a@example.com'] } }, { enabled: false }],
      ['cron', 'HttpCronJob', { schedule: '0 6 * * *', url }, { description: null }],
    ] as const)('among %s is neither changed, taken away nor deleted, and what is equal is no write', async (family, kind, spec, other) => {
      const name = `owned-${++named}`;
      const ours = 'description' in other ? { description: 'By Git' } : { enabled: true };
      const object = { kind, metadata: { name, namespace: 'acme' }, spec: { name: 'By Git', ...ours, ...spec } };
      await world.store.apply(object, { manager: 'argocd' });
      const path = `${family}/${name}`;
      const before = await eventually(async () => {
        const answer = await world.request('GET', `/api/${path}`);
        expect(answer.status).toBe(200);
        return answer.body;
      });
      const refused = { status: 409, body: { error: expect.any(String) } };
      for (const change of [{ name: 'By hand' }, family === 'cron' ? { description: null } : other]) {
        const answer = await patch(path, change);
        expect(answer).toMatchObject(refused);
        expect([answer.headers.get('x-error-code'), answer.text]).toEqual(['FIELD_MANAGED', expect.stringContaining('argocd')]);
      }
      const { metadata } = await world.store.get(kind, object.metadata);
      const change = await impatient();
      expect((await change(path, before.cronJob ?? before)).status).toBe(200);
      expect((await world.store.get(kind, object.metadata)).metadata.generation).toBe(metadata.generation);
      const deletion = await world.request('DELETE', `/api/${path}`);
      expect([deletion.status, deletion.headers.get('x-error-code')]).toEqual([409, 'FIELD_MANAGED']);
      expect(await get(path)).toEqual(before);
    });

    test('what Git owns is not deleted through the API', async () => {
      const name = await owned();
      await settled(name);
      const answer = await world.request('DELETE', `/api/destinations/${name}`);
      expect([answer.status, answer.body.code]).toEqual([409, 'FIELD_MANAGED']);
      expect((await world.request('GET', `/api/destinations/${name}`)).status).toBe(200);
    });
  });

  describe('API keys', () => {
    test('API keys are shown once, work, and do not work once deleted', async () => {
      const { status, body } = await post('api-keys', { name: 'CI', role: 'viewer' });
      expect(status).toBe(201);
      expect(body).toMatchObject({ apiKey: { id: expect.stringMatching(/^key_/), name: 'CI', role: 'viewer', scopes: expect.any(Array) } });
      expect(body.key).toMatch(/^ph_/);
      expect((await world.request('GET', '/api/sources', { key: body.key })).status).toBe(200);
      expect((await world.request('GET', '/api/api-keys')).text).not.toContain(body.key);
      expect([200, 204]).toContain((await world.request('DELETE', `/api/api-keys/${body.apiKey.id}`)).status);
      await eventually(async () => expect((await world.request('GET', '/api/sources', { key: body.key })).status).toBe(401));
    });
  });
}
