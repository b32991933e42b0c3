import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { FacadeWorld } from '../facade-world.ts';

/** Changes and deletions of many at once, with any store behind the API. */
export function describeBulk(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  let named = 0;
  const destination = () => world.create('destinations', { url: 'https://hooks.example.com/in' });
  async function route(body: object = {}) {
    const source = await world.create('sources', {});
    return world.create('routes', { sourceId: source.id, destinationIds: [(await destination()).id], ...body });
  }
  const get = async (path: string) => world.request('GET', `/api/${path}`);
  const bulk = (method: string, collection: string, body: object, key?: string) =>
    world.request(method, `/api/${collection}/bulk`, { body, key });
  const unknown = (prefix: string): string => `${prefix}_${'a'.repeat(26)}`;
  async function byGit(kind: 'Route' | 'Destination', spec: object): Promise<string> {
    const name = `git-${++named}`;
    await world.store.apply({ kind, metadata: { name, namespace: 'acme' }, spec }, { manager: 'argocd' });
    return name;
  }

  describe('destinations deleted in bulk', () => {
    test('destinations deleted in bulk leave their routes, are counted, and unknown or repeated ids are skipped', async () => {
      const [one, two, kept] = [await destination(), await destination(), await destination()];
      const { id } = await route({ destinationIds: [one.id, kept.id], failoverDestinationIds: [two.id] });
      const answer = await bulk('DELETE', 'destinations', { ids: [one.id, one.slug, two.slug, unknown('dst'), 'nobody'] });
      expect([answer.status, answer.body]).toEqual([200, { success: true, deleted: 2 }]);
      expect((await get(`routes/${id}`)).body).toMatchObject({ destinationIds: [kept.id], failoverDestinationIds: [] });
      for (const gone of [one, two]) expect((await get(`destinations/${gone.id}`)).status).toBe(404);
    });

    test('destinations deleted in bulk stay, all of them, when Git owns the list of a route: 409 names it', async () => {
      const [one, two] = [await destination(), await destination()];
      const source = await world.create('sources', {});
      const name = await byGit('Route', { sourceRef: { name: source.slug }, destinationRefs: [{ name: one.slug }] });
      const { id } = await world.create('routes', { sourceId: source.id, destinationIds: [one.id, two.id] });
      const answer = await bulk('DELETE', 'destinations', { ids: [two.id, one.id] });
      expect([answer.status, answer.body.code]).toEqual([409, 'FIELD_MANAGED']);
      expect(answer.body.message).toContain(name);
      expect(answer.body.message).toContain('argocd');
      expect((await get(`routes/${id}`)).body.destinationIds).toEqual([one.id, two.id]);
      for (const each of [one, two]) expect((await get(`destinations/${each.id}`)).status).toBe(200);

      const single = await world.request('DELETE', `/api/destinations/${one.id}`);
      expect([single.status, single.body.code]).toEqual([409, 'FIELD_MANAGED']);
      expect((await get(`routes/${id}`)).body.destinationIds).toEqual([one.id, two.id]);
    });

    test('destinations deleted in bulk stay when Git owns one of them', async () => {
      const one = await destination();
      const name = await byGit('Destination', { type: 'http', http: { url: 'https://hooks.example.com/in' } });
      const answer = await bulk('DELETE', 'destinations', { ids: [one.id, name] });
      expect([answer.status, answer.body.code]).toEqual([409, 'FIELD_MANAGED']);
      expect((await get(`destinations/${one.id}`)).status).toBe(200);
    });

    test('destinations deleted in bulk of another organization are unknown', async () => {
      await world.addOrganization('other');
      const one = await destination();
      const answer = await bulk('DELETE', 'destinations', { ids: [one.id] }, await world.addKey('other'));
      expect(answer.body).toEqual({ success: true, deleted: 0 });
      expect((await get(`destinations/${one.id}`)).status).toBe(200);
    });
  });

  describe('routes in bulk', () => {
    test('routes in bulk are paused and resumed', async () => {
      const [one, two] = [await route(), await route({ enabled: false })];
      const paused = await bulk('PATCH', 'routes', { ids: [one.id, two.slug, unknown('rte')], isActive: false });
      expect([paused.status, paused.body]).toEqual([200, { success: true, updated: 2 }]);
      expect(paused.headers.get('warning')).toBeNull();
      for (const { id } of [one, two]) expect((await get(`routes/${id}`)).body.enabled).toBe(false);
      expect((await bulk('PATCH', 'routes', { ids: [one.id, two.id], isActive: true })).body).toEqual({ success: true, updated: 2 });
      for (const { id } of [one, two]) expect((await get(`routes/${id}`)).body.enabled).toBe(true);
    });

    test('routes in bulk are not paused, none of them, when Git owns the flag of one', async () => {
      const one = await route();
      const name = await byGit('Route', { sourceRef: { name: 'x' }, destinationRefs: [], enabled: true });
      const answer = await bulk('PATCH', 'routes', { ids: [one.id, name], isActive: false });
      expect([answer.status, answer.body.code]).toEqual([409, 'FIELD_MANAGED']);
      expect(answer.body.message).toContain(name);
      expect((await get(`routes/${one.id}`)).body.enabled).toBe(true);
      expect((await bulk('PATCH', 'routes', { ids: [one.id, name], isActive: true })).status).toBe(200);
    });

    test('routes in bulk are deleted, and what they connect stays', async () => {
      const [one, two] = [await route(), await route()];
      const answer = await bulk('DELETE', 'routes', { ids: [one.id, two.slug, 'nobody'] });
      expect([answer.status, answer.body]).toEqual([200, { success: true, deleted: 2 }]);
      expect((await get(`routes/${one.id}`)).status).toBe(404);
      expect((await get(`destinations/${one.destinationIds[0]}`)).status).toBe(200);
      expect((await get(`sources/${one.sourceId}`)).status).toBe(200);
    });
  });

  test.each([
    ['DELETE', 'destinations', {}],
    ['DELETE', 'routes', {}],
    ['PATCH', 'routes', { isActive: true }],
  ])('%s /%s/bulk takes 1 to 100 ids', async (method, collection, rest) => {
    const ids = (count: number) => Array.from({ length: count }, (_, i) => `nobody-${i}`);
    expect((await bulk(method, collection, { ids: ids(100), ...rest })).status).toBe(200);
    for (const wrong of [{ ids: ids(101) }, { ids: [] }, {}, { ids: 'a' }, { ids: ids(1), more: 1 }])
      expect((await bulk(method, collection, { ...rest, ...wrong })).status).toBe(400);
  });

  test('pausing needs isActive, and deleting the scope delete', async () => {
    expect((await bulk('PATCH', 'routes', { ids: ['a'] })).status).toBe(400);
    const key = await world.addKey('acme', { scopes: ['read', 'write'] });
    for (const collection of ['routes', 'destinations']) expect((await bulk('DELETE', collection, { ids: ['a'] }, key)).status).toBe(403);
  });
}
