import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { PosthornKind } from '../../../src/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** What refers to what, slugs and URLs, with any store behind the API. */
export function describeReferences(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const url = 'https://hooks.example.com/in';
  const post = (path: string, body: object, key?: string) => world.request('POST', `/api/${path}`, { body, key });
  const patch = (path: string, body: object, key?: string) => world.request('PATCH', `/api/${path}`, { body, key });
  const get = async (path: string) => (await world.request('GET', `/api/${path}`)).body;
  const destination = (body: object = {}) => world.create('destinations', { url, ...body });
  const conditions = [{ field: 'a', operator: 'exists' }];
  async function route(body: object) {
    const [source, target] = [await world.create('sources'), await destination()];
    return world.create('routes', { sourceId: source.id, destinationIds: [target.id], ...body });
  }

  describe('what a route connects', () => {
    test('what a route connects may not be what another one connects, whatever the order, on create and on change', async () => {
      const source = await world.create('sources');
      const [a, b, c] = [await destination(), await destination(), await destination()];
      const connect = (destinationIds: string[]) => post('routes', { name: 'Connection', sourceId: source.id, destinationIds });
      const first = await connect([a.id, b.id]);
      expect(first.status).toBe(201);
      const twin = await connect([b.slug, a.slug]);
      expect([twin.status, twin.body.error, twin.body.code]).toEqual([409, 'Conflict', 'DUPLICATE_ROUTE']);
      const part = await connect([a.id]);
      expect(part.status).toBe(201);
      const changed = await patch(`routes/${part.body.id}`, { destinationIds: [b.id, a.id] });
      expect([changed.status, changed.body.code]).toEqual([409, 'DUPLICATE_ROUTE']);
      expect((await patch(`routes/${part.body.id}`, { destinationIds: [c.id, b.id] })).status).toBe(200);
      expect((await patch(`routes/${first.body.id}`, { destinationIds: [b.id, a.id], priority: 4 })).status).toBe(200);
    });

    test('what a route connects may be named by slug, and the source sent back so is no change', async () => {
      const [source, target] = [await world.create('sources'), await destination()];
      const route = await world.create('routes', { sourceId: source.slug, destinationIds: [target.slug] });
      expect(route).toMatchObject({ sourceId: source.id, destinationIds: [target.id] });
      expect((await patch(`routes/${route.id}`, { sourceId: source.slug, name: 'Renamed' })).body).toMatchObject({ name: 'Renamed' });
    });

    test.each(['destinationIds', 'failoverDestinationIds'])(
      'must be there: another in %s is 400 INVALID_SOURCE on change',
      async (field) => {
        const [source, target] = [await world.create('sources'), await destination()];
        const route = await world.create('routes', { sourceId: source.id, destinationIds: [target.id] });
        const answer = await patch(`routes/${route.id}`, { [field]: ['dst_aaaaaaaaaaaaaaaaaaaaaaaaaa'] });
        expect([answer.status, answer.body.code]).toEqual([400, 'INVALID_SOURCE']);
        expect(await get(`routes/${route.id}`)).toMatchObject({ destinationIds: [target.id], failoverDestinationIds: [] });
      },
    );

    test('what a route connects is shown with ids and the names of now', async () => {
      const [source, target, filter] = [
        await world.create('sources'),
        await destination(),
        await world.create('filters', { conditions: [{ field: 'a', operator: 'exists' }] }),
      ];
      const route = await world.create('routes', { sourceId: source.id, destinationIds: [target.id], filterId: filter.id });
      for (const [path, name] of [
        [`sources/${source.id}`, 'New source'],
        [`destinations/${target.id}`, 'New target'],
        [`filters/${filter.id}`, 'New filter'],
      ])
        expect((await patch(path ?? '', { name })).status).toBe(200);
      const expanded = {
        source: { id: source.id, name: 'New source' },
        destinations: [{ id: target.id, name: 'New target' }],
      };
      expect(await get(`routes/${route.id}`)).toMatchObject({ ...expanded, filter: { id: filter.id, name: 'New filter' } });
      expect((await get(`routes?sourceId=${source.slug}`)).data).toMatchObject([expanded]);
    });

    test.each([
      ['transformId', 'transforms', { code: '1' }],
      ['schemaId', 'schemas', { jsonSchema: {} }],
      ['filterId', 'filters', { conditions }],
    ])('what a route connects has a %s by id or slug, which null takes away', async (field, family, body) => {
      const shown = field.replace('Id', '');
      const [one, two] = [await world.create(family, body), await world.create(family, body)];
      const created = await route({ [field]: one.id });
      expect(created).toMatchObject({ [field]: one.id, [shown]: { id: one.id, name: one.name } });
      const path = `routes/${created.id}`;
      for (const [sent, { id, name }] of [
        [two.slug, two],
        [one.id, one],
      ]) {
        expect((await patch(path, { [field]: sent })).body).toMatchObject({ [field]: id, [shown]: { id, name } });
        expect(await get(path)).toMatchObject({ [field]: id, [shown]: { id, name } });
      }
      expect((await patch(path, { description: 'Other' })).body[field]).toBe(one.id);
      expect((await patch(path, { [field]: null })).body).toMatchObject({ [field]: null, [shown]: null });
      expect(await get(path)).toMatchObject({ [field]: null, [shown]: null });
    });

    test('what a route connects has failover destinations and channels by id or slug, in their order', async () => {
      const email = { type: 'email', config: { addresses: ['team@example.com'] } };
      const channels = [await world.create('notification-channels', email), await world.create('notification-channels', email)];
      const spares = [await destination(), await destination(), await destination()];
      const created = await route({
        failoverDestinationIds: [spares[2].id, spares[0].slug, spares[1].id],
        notificationChannelIds: [channels[1].slug, channels[0].id],
      });
      expect(created).toMatchObject({
        failoverDestinationIds: [spares[2].id, spares[0].id, spares[1].id],
        notificationChannelIds: [channels[1].id, channels[0].id],
      });
      const others = { failoverDestinationIds: [spares[1].id], notificationChannelIds: [channels[0].id] };
      expect((await patch(`routes/${created.id}`, others)).body).toMatchObject(others);
      expect((await patch(`routes/${created.id}`, { failoverDestinationIds: [] })).body).toMatchObject({
        ...others,
        failoverDestinationIds: [],
      });
      expect(await get(`routes/${created.id}`)).toMatchObject({ ...others, failoverDestinationIds: [] });
    });

    test('what a route connects may lose its last destination: the route stays, is not ready, and says why', async () => {
      const [source, target] = [await world.create('sources'), await destination()];
      const route = await world.create('routes', { sourceId: source.id, destinationIds: [target.id] });
      expect((await world.request('DELETE', `/api/destinations/${target.id}`)).status).toBe(204);
      expect((await get(`routes/${route.id}`)).destinationIds).toEqual([]);
      await eventually(async () => {
        const { status } = await world.store.get('Route', { namespace: 'acme', name: route.slug });
        const ready = status?.conditions?.find(({ type }) => type === 'Ready');
        expect([ready?.status, ready?.reason]).toEqual(['False', 'NoDestinations']);
      });
    });
  });

  describe('the filter of a route', () => {
    test('the filter of a route is a filter or conditions, not both, and each takes the place of the other', async () => {
      const { id: filterId } = await world.create('filters', { conditions });
      const { id } = await route({ filterConditions: conditions });
      expect((await patch(`routes/${id}`, { filterId, filterConditions: conditions })).status).toBe(400);
      expect((await patch(`routes/${id}`, { filterId })).body).toMatchObject({ filterId, filterConditions: null });
      expect((await patch(`routes/${id}`, { filterConditions: conditions })).body).toMatchObject({
        filterId: null,
        filter: null,
        filterConditions: conditions,
      });
      expect((await patch(`routes/${id}`, { filterConditions: null })).body).toMatchObject({ filterId: null, filterConditions: null });
    });

    test('the filter of a route keeps the logic of its conditions when either of them changes', async () => {
      const others = [{ field: 'b', operator: 'equals', value: 1 }];
      const { id } = await route({ filterConditions: conditions, filterLogic: 'OR' });
      const changed = async (body: object) => {
        const { filterLogic, filterConditions } = (await patch(`routes/${id}`, body)).body;
        return [filterLogic, filterConditions];
      };
      expect(await changed({ name: 'Renamed' })).toEqual(['OR', conditions]);
      expect(await changed({ filterConditions: others })).toEqual(['OR', others]);
      expect(await changed({ filterLogic: 'AND' })).toEqual(['AND', others]);
      expect(await changed({ filterLogic: 'OR' })).toEqual(['OR', others]);
      expect(await changed({ filterConditions: [] })).toEqual(['AND', null]);
    });
  });

  describe('a slug', () => {
    test('a slug is made from the name, accents folded, with a number when it is taken', async () => {
      expect((await destination({ name: 'Größe & Maß: Señor Ærø!' })).slug).toBe('grosse-mass-senor-aero');
      const slugs = [];
      for (let i = 0; i < 3; i++) slugs.push((await destination({ name: 'Twice' })).slug);
      expect(slugs).toEqual(['twice', 'twice-2', 'twice-3']);
      expect((await destination({ name: 'Export' })).slug).toBe('export-2');
      expect((await destination({ name: '日本' })).slug).toMatch(/^destination/);
    });

    test('a slug that was given and is taken is 409, and cannot be changed', async () => {
      const one = await destination({ slug: 'given' });
      const taken = await post('destinations', { name: 'Other', url, slug: 'given' });
      expect([taken.status, taken.body.error]).toEqual([409, 'Conflict']);
      expect((await patch(`destinations/${one.id}`, { slug: 'given', timeoutMs: 1000 })).status).toBe(200);
      expect((await patch(`destinations/${one.id}`, { slug: 'changed' })).status).toBe(400);
    });
  });

  describe('a slug as long as a name in Kubernetes may be', () => {
    const slug = (collection: string): string => collection.padEnd(63, 'x');
    const to = (collection: string) => ({ name: slug(collection) });
    const conditions = [{ field: 'payload.a', operator: 'exists' }];

    test.each<[collection: string, kind: PosthornKind, spec: object]>([
      ['sources', 'Source', {}],
      ['destinations', 'Destination', { type: 'http', http: { url } }],
      ['filters', 'Filter', { conditions }],
      ['transforms', 'Transform', { code: 'payload' }],
      ['schemas', 'PayloadSchema', { jsonSchema: { type: 'object' } }],
      ['notification-channels', 'NotificationChannel', { type: 'email', email: { addresses: ['team@example.com'] } }],
      ['cron', 'HttpCronJob', { schedule: '0 6 * * *', url }],
      ['routes', 'Route', { sourceRef: to('sources'), destinationRefs: [to('destinations')], filter: { conditions } }],
    ])(
      'a slug as long as a name in Kubernetes may be of %s is taken when it is sent back, and no other that long',
      async (collection, kind, spec) => {
        const key = { namespace: 'acme', name: slug(collection) };
        await world.store.apply({ kind, metadata: key, spec }, { manager: 'kubectl' });
        const path = `${collection}/${key.name}`;
        const read = async () => {
          const record = await get(path);
          return record.cronJob ?? record;
        };
        await eventually(async () => expect(await read()).toMatchObject({ slug: key.name, name: key.name }));
        const { generation } = (await world.store.get(kind, key)).metadata;
        const { status, text } = await patch(path, await read());
        expect([status, text]).toEqual([200, expect.any(String)]);
        expect((await world.store.get(kind, key)).metadata.generation).toBe(generation);
        expect((await patch(path, { slug: key.name.replace(/x$/, 'y') })).body).toMatchObject({ error: expect.anything() });
        const made = await post(collection, { ...(await read()), slug: `${collection}-`.padEnd(51, 'x') });
        expect([made.status, made.text]).toEqual([400, expect.stringContaining('slug must be at most 50')]);
      },
    );
  });

  describe('the URL of a destination', () => {
    test('the URL of a destination without TLS has a warning on change, too, and one that is none is 400', async () => {
      const { id } = await destination();
      const changed = await patch(`destinations/${id}`, { url: 'http://hooks.example.com/in' });
      expect([changed.status, changed.headers.get('warning')]).toEqual([200, expect.stringContaining('199')]);
      const wrong = await patch(`destinations/${id}`, { url: 'hooks.example.com' });
      expect([wrong.status, wrong.body.error, wrong.body.code]).toEqual([400, 'Bad Request', 'INVALID_URL']);
    });

    test('the URL of a destination is searched by its parts, as the name is', async () => {
      const one = await destination({ name: 'Searched', url: 'https://needle-in-url.example.com/x' });
      for (const search of ['needle-in-URL', 'searched'])
        expect((await get(`destinations?search=${search}`)).data.map(({ id }: { id: string }) => id)).toEqual([one.id]);
    });

    test('the URL of a destination may lead to another host only with the credentials sent again, unless an admin changes it', async () => {
      const developer = await world.addKey('acme', { role: 'developer' });
      const { id } = await destination({ authType: 'basic', authConfig: { username: 'me', password: 'a-long-password' } });
      const change = (body: object) => patch(`destinations/${id}`, body, developer);
      const refused = async (body: object) => {
        const answer = await change(body);
        expect([answer.status, answer.body.code]).toEqual([400, 'CREDENTIALS_REQUIRED']);
      };
      await refused({ url: 'https://hooks.example.com:8443/in' });
      await refused({ url: 'https://evil.example.com/in', authConfig: { username: 'me' } });
      await refused({ url: 'https://evil.example.com/in', authConfig: { username: 'me', password: '••••word' } });
      expect((await get(`destinations/${id}`)).url).toBe(url);
      expect((await change({ url: 'https://hooks.example.com/other-path' })).status).toBe(200);
      expect((await change({ url: 'https://evil.example.com/in', authConfig: { password: 'a-new-password-1' } })).status).toBe(200);
      expect((await change({ url: 'https://other.example.com/in', authType: 'none' })).status).toBe(200);
    });
  });
}
