import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';
import { variedRoutes } from './varied-routes.ts';

/** Exports and imports of routes, with any store behind the API. */
export function describeRouteTransfer(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let organizations = 0;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  /** Admin key of a new organization with sources, destinations, a filter, a transform, a schema and a channel. */
  async function organization(): Promise<string> {
    const slug = `routes-${++organizations}`;
    await world.addOrganization(slug);
    const key = await world.addKey(slug);
    const url = 'https://hooks.example.com/in';
    const config = { webhookUrl: 'https://hooks.slack.com/services/T000/B000/XXXX' };
    await Promise.all([
      ...['shop', 'bank'].map((name) => create(key, 'sources', { name })),
      ...['one', 'two', 'three', 'spare'].map((name) => create(key, 'destinations', { name, url })),
      create(key, 'filters', { name: 'large', conditions: [{ field: 'amount', operator: 'gt', value: 10 }] }),
      create(key, 'transforms', { name: 'reshape', code: '{"id": payload.id}' }),
      create(key, 'schemas', { name: 'order', jsonSchema: { type: 'object' } }),
      create(key, 'notification-channels', { name: 'ops', type: 'slack', config }),
    ]);
    return key;
  }
  const create = (key: string, collection: string, body: object) => world.create(collection, body, key);
  const exportOf = async (key: string, query = '') => (await world.request('GET', `/api/routes/export${query}`, { key })).body;
  const importInto = async (key: string, body: object) => {
    const answer = await world.request('POST', '/api/routes/import', { key, body });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    return answer.body;
  };
  const named = async (key: string): Promise<string[]> => (await exportOf(key)).routes.map(({ name }: { name: string }) => name).sort();
  // biome-ignore lint/suspicious/noExplicitAny: parts of a JSON document
  const apart = ({ exportedAt, organizationSlug, ...rest }: any) => rest;

  describe('an export', () => {
    test('an export holds exactly the portable fields, what it refers to by slug', async () => {
      const key = await organization();
      for (const body of variedRoutes) await create(key, 'routes', body);
      const document = await exportOf(key, '?ids=full-unicode');
      expect(document).toEqual({
        version: '1.0',
        exportedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        organizationSlug: expect.stringMatching(/^routes-/),
        routes: [
          {
            name: 'Full & ünïcode',
            description: 'everything',
            sourceSlug: 'bank',
            destinationSlug: 'three',
            destinationSlugs: ['three', 'one'],
            filterSlug: null,
            transformSlug: 'reshape',
            schemaSlug: 'order',
            filterConditions: [{ field: 'payload.kind', operator: 'in', value: ['a', 'b'] }],
            filterLogic: 'OR',
            priority: 0,
            isActive: true,
            notifyOnFailure: true,
            notifyOnSuccess: true,
            notifyOnRecovery: true,
            notifyEmails: 'a@example.com,b@example.com',
            notificationChannelSlugs: ['ops'],
            failureThreshold: 5,
            failoverDestinationSlugs: ['spare', 'two'],
            failoverAfterAttempts: 2,
            circuitCooldownSeconds: 60,
            circuitFailureThreshold: 9,
            circuitProbeSuccessThreshold: 4,
            expectedResponse: { statusCodes: [200, 202], bodyContains: 'ok' },
          },
        ],
      });
      expect(await named(key)).toHaveLength(3);
    });
  });

  test('an export that is imported into another organization is exported there as the same document', async () => {
    const [from, to] = [await organization(), await organization()];
    for (const body of variedRoutes) await create(from, 'routes', body);
    const document = await exportOf(from);
    const answer = await importInto(to, { ...document, conflictStrategy: 'skip' });
    expect(answer).toEqual({
      imported: 3,
      skipped: 0,
      overwritten: 0,
      errors: [],
      warnings: [],
      routes: document.routes.map(({ name }: { name: string }) => ({ id: expect.stringMatching(/^rte_/), name, status: 'created' })),
    });
    expect(apart(await exportOf(to))).toEqual(apart(document));
  });

  test.each(['skip', 'rename', 'overwrite'])(
    'routes that repeat a name or a connection, or have lost their destinations, are exported, imported elsewhere with %s, and exported as the same',
    async (conflictStrategy) => {
      const [from, to] = [await organization(), await organization()];
      // Routes that connect the same are imported by rename alone.
      const mayCopy = conflictStrategy === 'rename';
      for (const body of [
        { name: 'B', slug: 'a', sourceId: 'shop', destinationIds: [mayCopy ? 'one' : 'spare'] },
        { name: 'A', slug: 'z', sourceId: 'shop', destinationIds: ['one', 'two'] },
        { name: 'Same', sourceId: 'bank', destinationIds: ['one'], priority: 9 },
        { name: 'Same', sourceId: 'bank', destinationIds: ['spare'], priority: 1 },
        { name: 'Bare', sourceId: 'bank', destinationIds: ['two'] },
        { name: 'Bare too', sourceId: 'bank', destinationIds: ['three'] },
      ])
        await create(from, 'routes', body);
      for (const slug of ['two', 'three']) await world.request('DELETE', `/api/destinations/${slug}`, { key: from });
      const copy = { name: 'A', sourceSlug: 'shop', destinationSlugs: ['one'] };
      if (mayCopy) await importInto(from, { routes: [copy], conflictStrategy });
      const document = await exportOf(from);
      const names = ['A', ...(mayCopy ? ['A (2)'] : []), 'B', 'Bare', 'Bare too', 'Same', 'Same'];
      expect(document.routes.map(({ name }: { name: string }) => name)).toEqual(names);

      const answer = await importInto(to, { ...document, conflictStrategy });
      expect(answer).toMatchObject({ imported: names.length, skipped: 0, overwritten: 0, errors: [] });
      expect(answer.routes.map(({ name }: { name: string }) => name)).toEqual(names);
      expect(apart(await exportOf(to))).toEqual(apart(document));
      expect(await importInto(to, { ...document, conflictStrategy: 'skip' })).toMatchObject({ skipped: names.length, errors: [] });
    },
  );

  describe('a route that connects what one that is there does', () => {
    const setup = async () => {
      const key = await organization();
      await create(key, 'routes', { name: 'There', sourceId: 'shop', destinationIds: ['one', 'two'] });
      await create(key, 'routes', { name: 'Changed', sourceId: 'shop', destinationIds: ['three'] });
      return key;
    };
    const twin = { name: 'New', sourceSlug: 'shop', destinationSlugs: ['two', 'one'] };
    const changed = { name: 'Changed', sourceSlug: 'shop', destinationSlugs: ['one', 'two'] };

    test.each([
      ['skip', [twin]],
      ['overwrite', [twin]],
      ['overwrite', [changed]],
    ])('a route that connects what one that is there does is an error with %s', async (conflictStrategy, routes) => {
      const key = await setup();
      const before = apart(await exportOf(key));
      const errors = [expect.stringContaining('the route "There" connects the same source and destinations')];
      expect(await importInto(key, { routes, conflictStrategy })).toMatchObject({ imported: 0, overwritten: 0, errors });
      expect(apart(await exportOf(key))).toEqual(before);
    });

    test('a route that connects what one that is there does is imported with rename, and with overwrite when the document has the other one as something else', async () => {
      const key = await setup();
      expect(await importInto(key, { routes: [twin], conflictStrategy: 'rename', validateOnly: true })).toMatchObject({ imported: 1 });
      const routes = [changed, { name: 'There', sourceSlug: 'shop', destinationSlugs: ['three'] }];
      expect(await importInto(key, { routes, conflictStrategy: 'overwrite' })).toMatchObject({ overwritten: 2, errors: [], warnings: [] });
      expect((await exportOf(key)).routes).toMatchObject(routes);
    });
  });

  describe('a conflict of names', () => {
    const setup = async () => {
      const key = await organization();
      const made = await create(key, 'routes', {
        name: 'There',
        sourceId: 'shop',
        destinationIds: ['one'],
        description: 'old',
        priority: 3,
      });
      return { key, made };
    };
    const routes = [
      { name: 'There', sourceSlug: 'shop', destinationSlugs: ['two'] },
      { name: 'New', sourceSlug: 'shop', destinationSlug: 'three', isActive: false },
    ];

    test('a conflict of names with skip keeps the route that is there', async () => {
      const { key, made } = await setup();
      const answer = await importInto(key, { routes, conflictStrategy: 'skip' });
      expect(answer).toMatchObject({ imported: 1, skipped: 1, overwritten: 0, errors: [] });
      expect(answer.routes).toEqual([
        { id: made.id, name: 'There', status: 'skipped' },
        { id: expect.stringMatching(/^rte_/), name: 'New', status: 'created' },
      ]);
      expect((await world.request('GET', `/api/routes/${made.id}`, { key })).body).toMatchObject({ description: 'old', priority: 3 });
      expect((await world.request('GET', '/api/routes/new', { key })).body.enabled).toBe(false);
    });

    test('a conflict of names with rename appends a number, also to copies of what is there', async () => {
      const { key } = await setup();
      const copy = { name: 'There', sourceSlug: 'shop', destinationSlugs: ['one'] };
      const answer = await importInto(key, { routes: [copy, copy], conflictStrategy: 'rename' });
      expect(answer).toMatchObject({ imported: 2, skipped: 0, overwritten: 0, errors: [] });
      expect(answer.routes.map(({ name, status }: { name: string; status: string }) => [name, status])).toEqual([
        ['There (2)', 'created'],
        ['There (3)', 'created'],
      ]);
      expect(answer.warnings).toHaveLength(2);
      expect(await named(key)).toEqual(['There', 'There (2)', 'There (3)']);
    });

    test('a conflict of names with overwrite replaces the route: what the record leaves out has its default', async () => {
      const { key, made } = await setup();
      const answer = await importInto(key, { routes, conflictStrategy: 'overwrite' });
      expect(answer).toMatchObject({ imported: 1, skipped: 0, overwritten: 1, errors: [] });
      const { body } = await world.request('GET', `/api/routes/${made.id}`, { key });
      expect(body).toMatchObject({ id: made.id, description: null, priority: 0, destinations: [{ name: 'two' }] });
    });

    test('a conflict of names with overwrite is an error where the route has another source, which cannot be changed, and nothing is imported', async () => {
      const { key, made } = await setup();
      const answer = await importInto(key, {
        routes: [{ name: 'There', sourceSlug: 'bank', destinationSlugs: ['two'] }, ...routes.slice(1)],
        conflictStrategy: 'overwrite',
      });
      expect(answer).toMatchObject({ imported: 0, overwritten: 0, routes: [] });
      expect(answer.errors).toEqual([expect.stringContaining('its source is "shop" and cannot be changed to "bank"')]);
      expect((await world.request('GET', `/api/routes/${made.id}`, { key })).body).toMatchObject({ description: 'old' });
      expect(await named(key)).toEqual(['There']);
    });

    test('a conflict of names is none within the document; with a route that is there, both are skipped or renamed, and cannot both overwrite it', async () => {
      const { key } = await setup();
      const twice = (name: string) => ['one', 'two'].map((slug) => ({ name, sourceSlug: 'bank', destinationSlugs: [slug] }));
      const outcome = async (name: string, conflictStrategy: string) => {
        const answer = await importInto(key, { routes: twice(name), conflictStrategy, validateOnly: true });
        return answer.routes.map((each: { name: string; status: string }) => `${each.name} ${each.status}`);
      };
      for (const strategy of ['skip', 'rename', 'overwrite'])
        expect(await outcome('Twin', strategy)).toEqual(['Twin created', 'Twin created']);
      expect(await outcome('There', 'skip')).toEqual(['There skipped', 'There skipped']);
      expect(await outcome('There', 'rename')).toEqual(['There (2) created', 'There (3) created']);
      const { errors } = await importInto(key, { routes: twice('There'), conflictStrategy: 'overwrite' });
      expect(errors).toEqual(Array(2).fill(expect.stringContaining('several routes of the document have this name')));
    });

    test('a conflict of names with rename takes no name that a later record has', async () => {
      const { key } = await setup();
      const routes = ['There', 'There (2)'].map((name) => ({ name, sourceSlug: 'bank', destinationSlugs: ['one'] }));
      await importInto(key, { routes, conflictStrategy: 'rename' });
      expect(await named(key)).toEqual(['There', 'There (2)', 'There (3)']);
    });

    test('a conflict of names of which several routes have the name is an error with overwrite: none of them is taken by chance', async () => {
      const { key } = await setup();
      await create(key, 'routes', { name: 'There', sourceId: 'bank', destinationIds: ['one'] });
      const before = apart(await exportOf(key));
      expect(await importInto(key, { routes, conflictStrategy: 'overwrite' })).toMatchObject({
        overwritten: 0,
        errors: [expect.stringContaining('several routes')],
      });
      expect(apart(await exportOf(key))).toEqual(before);
    });

    test.each(['skip', 'rename', 'overwrite'])(
      'with validateOnly and %s writes nothing and says what would be',
      async (conflictStrategy) => {
        const { key } = await setup();
        const before = apart(await exportOf(key));
        const dry = await importInto(key, { routes, conflictStrategy, validateOnly: true });
        expect(apart(await exportOf(key))).toEqual(before);
        const real = await importInto(key, { routes, conflictStrategy });
        const withoutIds = ({ routes: of, ...rest }: { routes: { id: string }[] }) => ({
          ...rest,
          routes: of.map(({ id: _, ...each }) => each),
        });
        expect(withoutIds(dry)).toEqual(withoutIds(real));
      },
    );
  });

  test('imports of the same routes at the same time make each route once', async () => {
    const key = await organization();
    const slugs = ['one', 'two', 'three', 'spare'];
    const routes = slugs.flatMap((first, i) =>
      ['shop', 'bank'].map((sourceSlug) => ({ name: `Route ${i} of ${sourceSlug}`, sourceSlug, destinationSlugs: [first] })),
    );
    const answers = await Promise.all([1, 2, 3].map(() => importInto(key, { routes, conflictStrategy: 'skip' })));
    expect(answers.map(({ imported, skipped }) => [imported, skipped]).sort()).toEqual([
      [0, 8],
      [0, 8],
      [8, 0],
    ]);
    expect(await named(key)).toEqual(routes.map(({ name }) => name).sort());
  });

  describe('all or nothing', () => {
    const good = { name: 'Good', sourceSlug: 'shop', destinationSlugs: ['one'] };
    /** Nothing is ever imported into it. */
    let empty: string;
    beforeAll(async () => {
      empty = await organization();
    });

    test('each missing reference is an error that names it, and nothing is imported', async () => {
      const key = empty;
      const routes = [
        good,
        {
          name: 'Bad',
          sourceSlug: 'no-source',
          destinationSlugs: ['one', 'no-destination'],
          failoverDestinationSlugs: ['no-spare'],
          filterSlug: 'no-filter',
          transformSlug: 'no-transform',
          schemaSlug: 'no-schema',
          notificationChannelSlugs: ['no-channel'],
        },
      ];
      for (const validateOnly of [true, false]) {
        const answer = await importInto(key, { routes, conflictStrategy: 'skip', validateOnly });
        expect(answer).toMatchObject({ imported: 0, skipped: 0, overwritten: 0, routes: [] });
        for (const missing of ['source', 'destination', 'spare', 'filter', 'transform', 'schema', 'channel'])
          expect(answer.errors.filter((text: string) => text.includes(`"no-${missing}"`))).toHaveLength(1);
      }
      expect(await named(key)).toEqual([]);
    });

    test.each([
      ['a filter that does not compile', { filterConditions: [{ field: 'a', operator: 'matches', value: '(' }] }],
      ['a filter by reference and inline', { filterSlug: 'large', filterConditions: [{ field: 'a', operator: 'exists' }] }],
      ['a filterLogic without conditions', { filterLogic: 'OR' }],
      ['a failover destination that is a destination too', { failoverDestinationSlugs: ['two'] }],
      ['a destination that is named twice', { destinationSlugs: ['two', 'two'] }],
    ])('%s is an error, and nothing is imported', async (_, body) => {
      const key = empty;
      const routes = [good, { name: 'Bad', sourceSlug: 'shop', destinationSlugs: ['two'], ...body }];
      const answer = await importInto(key, { routes, conflictStrategy: 'skip' });
      expect(answer).toMatchObject({ imported: 0, errors: [expect.stringContaining('"Bad"')], routes: [] });
      expect(await named(key)).toEqual([]);
    });

    test('another source of a route that is there is an error with overwrite', async () => {
      const key = await organization();
      await create(key, 'routes', { name: 'There', sourceId: 'shop', destinationIds: ['one'] });
      const routes = [{ name: 'There', sourceSlug: 'bank', destinationSlugs: ['one'] }];
      expect(await importInto(key, { routes, conflictStrategy: 'overwrite' })).toMatchObject({
        overwritten: 0,
        errors: [expect.stringContaining('bank')],
      });
    });

    test('what Git owns is 409 and named, changed or left out, in a dry run too, and nothing is imported', async () => {
      const key = await organization();
      const namespace = `routes-${organizations}`;
      for (const name of ['one', 'two']) {
        const spec = { name, sourceRef: { name: 'bank' }, destinationRefs: [{ name }], description: 'By Git', priority: 5 };
        await world.store.apply({ kind: 'Route', metadata: { name, namespace }, spec }, { manager: 'argocd' });
      }
      await eventually(async () => expect(await named(key)).toEqual(['one', 'two']));
      const routes = [
        good,
        { name: 'one', sourceSlug: 'bank', destinationSlugs: ['one'], description: 'By Git', priority: 6 },
        { name: 'two', sourceSlug: 'bank', destinationSlugs: ['two'], priority: 5 },
      ];
      const managed = '"one": spec.priority is managed by "argocd"; Route "two": spec.description is managed by "argocd"';
      for (const validateOnly of [true, false]) {
        const body = { routes, conflictStrategy: 'overwrite', validateOnly };
        const answer = await world.request('POST', '/api/routes/import', { key, body });
        expect(answer).toMatchObject({ status: 409, body: { code: 'FIELD_MANAGED', message: `Route ${managed}. Change it there.` } });
      }
      expect(await named(key)).toEqual(['one', 'two']);
    });
  });

  const record = { name: 'A', sourceSlug: 'shop', destinationSlugs: ['one'] };

  test.each([
    ['no name', { sourceSlug: 'shop', destinationSlugs: ['one'] }, 'name'],
    ['no source', { name: 'A', destinationSlugs: ['one'] }, 'sourceSlug'],
    ['an unknown field', { ...record, colour: 'red' }, 'colour'],
    ['no destination', { name: 'A', sourceSlug: 'shop' }, 'destinationSlugs'],
    [
      'two first destinations',
      { name: 'A', sourceSlug: 'shop', destinationSlug: 'one', destinationSlugs: ['two', 'one'] },
      'destinationSlug ',
    ],
    ['a priority out of bounds', { ...record, priority: 100_000 }, 'priority'],
    ['four failover destinations', { ...record, failoverDestinationSlugs: ['a', 'b', 'c', 'd'] }, 'failoverDestinationSlugs'],
  ])('a record with %s is 400, and the field is named', async (_, route, field) => {
    const { status, body } = await world.request('POST', '/api/routes/import', { body: { routes: [route], conflictStrategy: 'skip' } });
    expect([status, body.message]).toEqual([400, expect.stringContaining(`routes[0].${field}`)]);
  });

  test('an import needs a conflictStrategy', async () => {
    expect((await world.request('POST', '/api/routes/import', { body: { routes: [] } })).status).toBe(400);
  });

  test('a route without destinations, exported when it had lost them, is imported so', async () => {
    const key = await organization();
    const routes = [{ name: 'Bare', sourceSlug: 'shop', destinationSlug: null, destinationSlugs: [] }];
    expect(await importInto(key, { routes, conflictStrategy: 'skip' })).toMatchObject({ imported: 1, errors: [] });
    expect((await exportOf(key)).routes).toMatchObject(routes);
  });
}
