import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PosthornError } from '../../../src/core/errors.ts';
import { maskedUnread } from '../../../src/core/masking.ts';
import type { Kind } from '../../../src/resources/kinds.ts';
import type { CompleteStore, ResourceStore } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { withMethod } from '../../support/with-method.ts';
import { breakOff } from '../broken-off.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** Requests with an Idempotency-Key that were aborted before their answer was kept, with any store behind the API. */
export function describeBrokenOffRequests(start: (around: (store: CompleteStore) => CompleteStore) => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let lostKind: Kind | null = null;
  let deathAfter: number | null = null;
  beforeAll(async () => {
    world = await start((store) => dying(losingAnswers(store, isLost), isDead));
  });
  afterAll(() => world.stop());

  function isLost(kind: Kind): boolean {
    if (kind !== lostKind) return false;
    lostKind = null;
    return true;
  }
  /** Whether the process that writes has died, for the store of the facade. */
  function isDead(): boolean {
    if (deathAfter === null) return false;
    if (deathAfter === 0) return true;
    deathAfter--;
    return false;
  }
  const url = 'https://hooks.example.com/in';
  let made = 0;
  const newKey = (): string => `key-${++made}`;
  const post = (path: string, key: string, body: unknown) => world.request('POST', path, { body, headers: { 'idempotency-key': key } });
  const countNamed = async (name: string): Promise<number> =>
    (await world.request('GET', `/api/destinations?search=${name}`)).body.pagination.total;

  /** Removes the credentials of a destination, and waits until they are not published any more. */
  async function loseSecret(slug: string): Promise<void> {
    const { spec } = await world.store.get('Destination', { namespace: 'acme', name: slug });
    await world.store.delete('Secret', { namespace: 'acme', name: spec.http?.auth?.tokenSecretRef?.name ?? '' });
    await eventually(async () =>
      expect((await world.request('GET', `/api/destinations/${slug}`)).body.authConfig).toEqual({ token: maskedUnread }),
    );
  }

  test('is completed by the next: the record is there once', async () => {
    const key = newKey();
    const body = { name: 'Completed', url, authType: 'bearer', authConfig: { token: 'a-long-token-000042' } };
    const first = await post('/api/destinations', key, body);
    await breakOff(world, key);
    const second = await post('/api/destinations', key, body);
    expect([second.status, second.body]).toEqual([201, first.body]);
    expect((await post('/api/destinations', key, body)).text).toBe(second.text);
    expect(await countNamed('Completed')).toBe(1);
  });

  test('and left a record without its Secret, is carried out again in its place', async () => {
    const key = newKey();
    const body = { name: 'Partial', url, authType: 'bearer', authConfig: { token: 'a-long-token-000042' } };
    const first = await post('/api/destinations', key, body);
    await loseSecret(first.body.slug);
    await breakOff(world, key);
    const second = await post('/api/destinations', key, body);
    expect([second.status, second.body.authConfig]).toEqual([201, { token: '••••0042' }]);
    expect([second.body.slug, second.body.id === first.body.id]).toEqual([first.body.slug, false]);
    await eventually(async () => expect(await countNamed('Partial')).toBe(1));
  });

  test('by an answer of the API server that was lost is completed at once', async () => {
    const key = newKey();
    const body = { name: 'Unanswered', url };
    lostKind = 'Destination';
    expect((await post('/api/destinations', key, body)).status).toBe(503);
    expect((await post('/api/destinations', key, body)).status).toBe(201);
    expect(await countNamed('Unanswered')).toBe(1);
  });

  describe('an import of routes', () => {
    /** A route of its own that a record conflicts with, and that record with two more. */
    async function setUp() {
      const source = await world.create('sources');
      const [one, two, three] = [
        await world.create('destinations', { url }),
        await world.create('destinations', { url }),
        await world.create('destinations', { url }),
      ];
      const there = await world.create('routes', { sourceId: source.id, destinationIds: [one.id], priority: 1 });
      const record = (name: string, ...to: { slug: string }[]) => ({
        name,
        sourceSlug: source.slug,
        destinationSlugs: to.map(({ slug }) => slug),
      });
      return {
        there,
        two,
        records: [record(there.name, two), record(`${there.name} new`, two, three), record(`${there.name} newer`, three)],
      };
    }
    const names = async (of: { name: string }) => {
      const { routes } = (await world.request('GET', '/api/routes/export')).body;
      return routes.map(({ name }: { name: string }) => name).filter((name: string) => name.startsWith(of.name));
    };

    test.each([
      ['skip', 3],
      ['rename', 3],
      ['overwrite', 3],
      ['overwrite', 1],
    ])('an import of routes with %s of %i routes one of whose answers is lost is taken back whole', async (conflictStrategy, count) => {
      const { there, records } = await setUp();
      const routes = records.slice(0, count);
      lostKind = 'Route';
      const answer = await world.request('POST', '/api/routes/import', { body: { routes, conflictStrategy } });
      expect([answer.status, lostKind]).toEqual([503, null]);
      await eventually(async () => expect(await names(there)).toEqual([there.name]));
      expect((await world.request('GET', `/api/routes/${there.id}`)).body).toMatchObject({
        priority: 1,
        destinationIds: there.destinationIds,
      });
    });

    test('one of whose answers was lost is carried out once by the next', async () => {
      const { there, records: routes } = await setUp();
      const key = newKey();
      const send = () => post('/api/routes/import', key, { routes, conflictStrategy: 'rename' });
      lostKind = 'Route';
      expect((await send()).status).toBe(503);
      expect(await send()).toMatchObject({ status: 200, body: { imported: 3, skipped: 0 } });
      expect(await names(there)).toEqual([there.name, `${there.name} (2)`, `${there.name} new`, `${there.name} newer`]);
    });

    test.each(['skip', 'rename'])('an import of routes with %s is completed by the next without copies', async (conflictStrategy) => {
      const { there, records: routes } = await setUp();
      const key = newKey();
      const send = () => post('/api/routes/import', key, { routes, conflictStrategy });
      const first = await send();
      const made = await names(there);
      await breakOff(world, key);
      expect((await send()).body).toEqual(first.body);
      const lost = `${there.slug}-new`;
      await world.store.delete('Route', { namespace: 'acme', name: lost });
      await eventually(async () => expect(await names(there)).toHaveLength(made.length - 1));
      await breakOff(world, key);
      const { routes: last } = (await send()).body;
      const expected = first.body.routes.map((route: { name: string }) =>
        route.name === `${there.name} new` ? { ...route, id: expect.stringMatching(/^rte_/) } : route,
      );
      expect(last).toEqual(expected);
      expect(await names(there)).toEqual(made);
    });

    test('an import of routes leaves nothing when the next finds it in error', async () => {
      const { there, two, records: routes } = await setUp();
      const key = newKey();
      const send = () => post('/api/routes/import', key, { routes, conflictStrategy: 'rename' });
      expect((await send()).body.imported).toBe(3);
      for (const [kind, name] of [
        ['Route', `${there.slug}-new`],
        ['Destination', two.slug],
      ] as const)
        await world.store.delete(kind, { namespace: 'acme', name });
      await eventually(async () => {
        expect(await names(there)).toHaveLength(3);
        expect((await world.request('GET', `/api/destinations/${two.slug}`)).status).toBe(404);
        expect((await world.request('GET', '/api/destinations?pageSize=100')).text).not.toContain(two.id);
      });
      await breakOff(world, key);
      expect((await send()).body).toMatchObject({ imported: 0, routes: [], errors: [expect.stringContaining(two.slug)] });
      await eventually(async () => expect(await names(there)).toEqual([there.name]));
    });
  });

  describe('an import of destinations', () => {
    /** A destination of its own that two records conflict with, those records, and two more of which one lacks its credentials. */
    async function setUp() {
      const { slug: base } = await world.create('destinations', { url });
      const record = { slug: base, type: 'http', url: `${url}/new`, authType: 'none', isActive: true };
      const token = { authType: 'bearer', authConfig: { token: 'a-long-token-000042' } };
      const records = [
        { ...record, name: 'Here' },
        { ...record, name: 'Here too', authType: 'bearer', authConfig: '***REDACTED***' },
        { ...record, name: 'New', slug: `${base}-new`, ...token },
        { ...record, name: 'Waiting', slug: `${base}-waiting`, authType: 'bearer', authConfig: '***REDACTED***' },
      ];
      const exported = async () => {
        const { destinations } = (await world.request('GET', '/api/destinations/export')).body;
        return destinations.filter(({ slug }: { slug: string }) => slug.startsWith(base));
      };
      return { base, records, exported };
    }
    const slugsOf = (destinations: { slug: string }[]) => destinations.map(({ slug }) => slug);

    test.each(['skip', 'rename', 'overwrite'])(
      'with %s is completed by the next: the same answer, and no copies',
      async (conflictStrategy) => {
        const { base, records, exported } = await setUp();
        const key = newKey();
        const send = () => post('/api/destinations/import', key, { destinations: records, conflictStrategy });
        const first = await send();
        expect([first.status, first.body.success]).toEqual([200, true]);
        const made = await exported();
        await breakOff(world, key);
        expect([(await send()).body, await exported()]).toEqual([first.body, made]);

        // It came so far that one was not made, and one was without its Secret.
        await world.store.delete('Destination', { namespace: 'acme', name: `${base}-waiting` });
        await loseSecret(`${base}-new`);
        await eventually(async () => expect(slugsOf(await exported())).not.toContain(`${base}-waiting`));
        await breakOff(world, key);
        expect([(await send()).body, await exported()]).toEqual([first.body, made]);
      },
    );

    test('one of whose answers was lost is carried out once by the next', async () => {
      const { base, records: destinations, exported } = await setUp();
      const key = newKey();
      const send = () => post('/api/destinations/import', key, { destinations, conflictStrategy: 'rename' });
      lostKind = 'Destination';
      expect((await send()).status).toBe(503);
      expect(await send()).toMatchObject({ status: 200, body: { summary: { imported: 4, skipped: 0, overwritten: 0, failed: 0 } } });
      expect(slugsOf(await exported())).toEqual([base, `${base}-2`, `${base}-3`, `${base}-new`, `${base}-waiting`]);
    });
  });

  describe('what takes several writes', () => {
    async function setUp() {
      const source = await world.create('sources');
      const [one, two, kept] = [
        await world.create('destinations', { url }),
        await world.create('destinations', { url }),
        await world.create('destinations', { url }),
      ];
      const channel = await world.create('notification-channels', { type: 'webhook', config: { url } });
      const route = (...destinations: { id: string }[]) =>
        world.create('routes', {
          sourceId: source.id,
          destinationIds: destinations.map(({ id }) => id),
          failoverDestinationIds: destinations.includes(two) ? [] : [two.id],
          notificationChannelIds: [channel.id],
        });
      return { one, two, kept, channel, routes: [await route(one, kept), await route(one, two, kept)] };
    }
    type Made = Awaited<ReturnType<typeof setUp>>;
    const ids = (records: { id: string }[]) => records.map(({ id }) => id);
    const read = async (collection: string, { id }: { id: string }) => world.request('GET', `/api/${collection}/${id}`);
    const cases: [
      what: string,
      send: (made: Made) => [method: string, path: string, body?: object],
      check: (made: Made) => Promise<void>,
    ][] = [
      [
        'deleting destinations',
        ({ one, two }) => ['DELETE', '/api/destinations/bulk', { ids: ids([one, two]) }],
        async ({ one, two, kept, routes }) => {
          for (const gone of [one, two]) expect((await read('destinations', gone)).status).toBe(404);
          for (const route of routes)
            expect((await read('routes', route)).body).toMatchObject({ destinationIds: [kept.id], failoverDestinationIds: [] });
        },
      ],
      [
        'deleting a destination',
        ({ one }) => ['DELETE', `/api/destinations/${one.id}`],
        async ({ one, two, kept, routes }) => {
          expect((await read('destinations', one)).status).toBe(404);
          const left = await Promise.all(routes.map(async (route) => (await read('routes', route)).body.destinationIds));
          expect(left).toEqual([[kept.id], [two.id, kept.id]]);
        },
      ],
      [
        'deleting a channel',
        ({ channel }) => ['DELETE', `/api/notification-channels/${channel.id}`],
        async ({ channel, routes }) => {
          expect((await read('notification-channels', channel)).status).toBe(404);
          for (const route of routes) expect((await read('routes', route)).body.notificationChannelIds).toEqual([]);
        },
      ],
      [
        'deleting routes',
        ({ routes }) => ['DELETE', '/api/routes/bulk', { ids: ids(routes) }],
        async ({ routes }) => {
          for (const route of routes) expect((await read('routes', route)).status).toBe(404);
        },
      ],
      [
        'pausing routes',
        ({ routes }) => ['PATCH', '/api/routes/bulk', { ids: ids(routes), isActive: false }],
        async ({ routes }) => {
          for (const route of routes) expect((await read('routes', route)).body.enabled).toBe(false);
        },
      ],
    ];

    test.each(cases)(
      '%s is finished by another process, when the one that began it dies before any of its writes',
      async (_, send, check) => {
        for (let writes = 0; ; writes++) {
          const made = await setUp();
          const [method, path, body] = send(made);
          deathAfter = writes;
          const { status } = await world.request(method, path, { body });
          const hasDied = deathAfter === 0 && status === 503;
          deathAfter = null;
          if (hasDied) await world.finishBegun();
          await eventually(() => check(made));
          if (!hasDied) return expect(writes).toBeGreaterThanOrEqual(2);
        }
      },
    );

    test('what takes several writes is finished before the next change of the organization', async () => {
      const { routes } = await setUp();
      const [first, second] = routes;
      deathAfter = 1;
      expect((await world.request('PATCH', '/api/routes/bulk', { body: { ids: ids(routes), isActive: false } })).status).toBe(503);
      deathAfter = null;
      expect((await world.request('PATCH', `/api/routes/${first.id}`, { body: { enabled: true } })).status).toBe(200);
      await world.finishBegun();
      expect([(await read('routes', first)).body.enabled, (await read('routes', second)).body.enabled]).toEqual([true, false]);
    });

    test('what takes several writes is finished but for what Git has taken over', async () => {
      const { one, two, kept, routes } = await setUp();
      deathAfter = 0;
      expect((await world.request('DELETE', '/api/destinations/bulk', { body: { ids: ids([one, two]) } })).status).toBe(503);
      deathAfter = null;
      const metadata = { namespace: 'acme', name: routes[1].slug };
      await world.store.apply({ kind: 'Route', metadata, spec: { destinationRefs: [{ name: one.slug }] } }, { manager: 'kubectl' });
      await world.finishBegun();
      expect([(await read('destinations', one)).status, (await read('destinations', two)).status]).toEqual([200, 404]);
      expect((await read('routes', routes[0])).body).toMatchObject({ destinationIds: [one.id, kept.id], failoverDestinationIds: [] });
      expect((await read('routes', routes[1])).body.destinationIds).toEqual([one.id, kept.id]);
    });

    test('touches nothing that has taken the name of what was to be deleted', async () => {
      const { one, two, routes } = await setUp();
      deathAfter = 0;
      expect((await world.request('DELETE', '/api/destinations/bulk', { body: { ids: ids([one, two]) } })).status).toBe(503);
      deathAfter = null;
      const name = { namespace: 'acme', name: one.slug };
      const { spec } = await world.store.get('Destination', name);
      await world.store.delete('Destination', name);
      await world.store.apply({ kind: 'Destination', metadata: name, spec }, { manager: 'kubectl' });
      await world.finishBegun();
      expect((await world.request('GET', `/api/destinations/${one.slug}`)).status).toBe(200);
      expect((await read('routes', routes[1])).body.destinationIds).toHaveLength(2);
      expect((await read('destinations', two)).status).toBe(404);
    });
  });

  test('leaves no API key that nobody has seen', async () => {
    const key = newKey();
    const first = await post('/api/api-keys', key, { name: 'Unseen' });
    await breakOff(world, key);
    const second = await post('/api/api-keys', key, { name: 'Unseen' });
    expect([second.status, second.body.key === first.body.key]).toEqual([201, false]);
    await eventually(async () => {
      const { data } = (await world.request('GET', '/api/api-keys?pageSize=100')).body;
      expect(data.filter(({ name }: { name: string }) => name === 'Unseen')).toHaveLength(1);
    });
    expect((await world.request('GET', '/api/sources', { key: second.body.key })).status).toBe(200);
  });
}

/** A store whose changes and deletions of what users make fail from one on: the process has died before it. */
function dying(store: CompleteStore, isNext: () => boolean): CompleteStore {
  const refuse = (kind: Kind): void => {
    if (mortal.has(kind) && isNext()) throw new PosthornError('UNAVAILABLE', 'the process has died');
  };
  const apply: ResourceStore['apply'] = async (object, options) => {
    refuse(object.kind);
    return await store.apply(object, options);
  };
  const remove: ResourceStore['delete'] = async (kind, name, options) => {
    refuse(kind);
    return await store.delete(kind, name, options);
  };
  return withMethod(withMethod(store, 'apply', apply), 'delete', remove);
}

const mortal: ReadonlySet<Kind> = new Set<Kind>(['Destination', 'Route', 'NotificationChannel']);

/** A store that carries a create or an apply out and then fails, as an API server whose answer is lost. */
function losingAnswers(store: CompleteStore, isNext: (kind: Kind) => boolean): CompleteStore {
  const create: ResourceStore['create'] = async (object, options) => {
    const made = await store.create(object, options);
    if (!isNext(object.kind)) return made;
    throw new PosthornError('UNAVAILABLE', 'the answer was lost');
  };
  const apply: ResourceStore['apply'] = async (object, options) => {
    const changed = await store.apply(object, options);
    if (!isNext(object.kind)) return changed;
    throw new PosthornError('UNAVAILABLE', 'the answer was lost');
  };
  return withMethod(withMethod(store, 'create', create), 'apply', apply);
}
