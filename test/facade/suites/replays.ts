import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld, RequestOptions } from '../facade-world.ts';

/** How replays are made, read, changed and deleted, with any store behind the API. */
export function describeReplays(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let ids: { source: string; destination: string; other: string; route: string };
  beforeAll(async () => {
    world = await start();
    const source = await world.create('sources', { name: 'Shop' });
    const destination = await world.create('destinations', { name: 'Target', url });
    const other = await world.create('destinations', { name: 'Standby', url });
    const route = await world.create('routes', { name: 'Orders', sourceId: source.id, destinationIds: [destination.id] });
    ids = { source: source.id, destination: destination.id, other: other.id, route: route.id };
  });
  afterAll(() => world.stop());

  const url = 'https://hooks.example.com/in';
  const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const replays = (method: string, path = '', options?: RequestOptions) => world.request(method, `/api/replays${path}`, options);
  const create = async (body: object) => {
    const created = await replays('POST', '', { body });
    expect([created.status, created.text]).toEqual([201, created.text]);
    return created.body;
  };
  const read = async (id: string) => (await replays('GET', `/${id}`)).body;

  describe('a replay', () => {
    test('a replay keeps the hops of the request that makes it, and is refused above 8', async () => {
      const make = (hop: string) => replays('POST', '', { body: { what: 'messages' }, headers: { 'x-posthorn-hop': hop } });
      const { status, body } = await make('8');
      expect(status).toBe(201);
      const object = await world.store.get('Replay', { namespace: 'acme', name: body.slug });
      expect(object.metadata.annotations).toMatchObject({ 'posthorn.dev/hop': '8' });
      await eventually(async () => expect(await world.registry.getOfAny('replay', body.id)).toMatchObject({ hop: 8 }));
      const plain = await create({ what: 'messages' });
      expect(await world.registry.getOfAny('replay', plain.id)).not.toHaveProperty('hop');
      for (const hop of ['9', '-1', 'two']) expect(await make(hop)).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
      for (const { id } of [body, plain]) await replays('DELETE', `/${id}`);
    });

    test('a replay is made with its defaults under a random slug, and reads as it was answered', async () => {
      const created = await create({ what: 'messages' });
      expect(created).toEqual({
        id: expect.stringMatching(/^rep_[a-z2-7]{26}$/),
        organizationId: expect.stringMatching(/^org_/),
        name: created.slug,
        slug: expect.stringMatching(/^replay-[a-z2-7]{16}$/),
        what: 'messages',
        filter: {},
        ratePerSecond: 100,
        toDestinationId: null,
        stopAfterFailurePercent: null,
        ttlSecondsAfterFinished: 604_800,
        dryRun: false,
        suspend: false,
        cancel: false,
        phase: 'Planning',
        plan: null,
        queued: 0,
        skipped: 0,
        skippedByReason: {},
        delivered: 0,
        failed: 0,
        endedOtherwise: 0,
        waiting: null,
        failure: null,
        alreadyRan: false,
        createdAt: iso,
        updatedAt: iso,
        startedAt: null,
        completedAt: null,
        estimatedCompletionAt: null,
      });
      expect(await read(created.id)).toEqual(created);
      expect(await read(created.slug)).toEqual(created);
      expect((await create({ what: 'messages' })).slug).not.toBe(created.slug);
    });

    test('a replay of deliveries takes every filter of their list; days become times, and names ids', async () => {
      const filter = {
        id: ['msg_b', 'msg_a', 'msg_b'],
        status: ['dlq', 'failed'],
        routeId: 'orders',
        destinationId: ids.destination,
        errorType: ['timeout', 'circuit_open'],
        responseStatus: ['5XX', '429'],
        attemptsMin: 2,
        attemptsMax: 11,
        from: '2026-01-30',
        to: '2026-01-31',
        failedFrom: '2026-01-31T02:10:00+01:00',
        failedTo: '2026-01-31T03:44:00Z',
        where: 'event.data.amount > 10.0 && headers["x-shop"] == "north"',
      };
      const all = { ratePerSecond: 7, stopAfterFailurePercent: 20, dryRun: true, suspend: true, ttlSecondsAfterFinished: null };
      const created = await create({ name: 'shop-outage', what: 'deliveries', filter, toDestinationId: 'standby', ...all });
      expect(created).toMatchObject({
        name: 'shop-outage',
        slug: 'shop-outage',
        ...all,
        toDestinationId: ids.other,
        filter: {
          ...filter,
          id: ['msg_b', 'msg_a'],
          routeId: ids.route,
          responseStatus: ['5xx', '429'],
          from: '2026-01-30T00:00:00.000Z',
          to: '2026-01-31T23:59:59.999Z',
          failedFrom: '2026-01-31T01:10:00.000Z',
          failedTo: '2026-01-31T03:44:00.000Z',
        },
        phase: 'Suspended',
      });
      const { spec } = await world.store.get('Replay', { namespace: 'acme', name: created.slug });
      expect(spec).toMatchObject({
        destinationRef: { name: 'standby' },
        filter: {
          routeRef: { name: 'orders' },
          destinationRef: { name: 'target' },
          ids: ['msg_b', 'msg_a'],
          responseStatuses: ['5xx', '429'],
        },
      });
      expect(await read(created.id)).toEqual(created);
    });

    test('a replay takes several values where the list does; one alone makes the spec that it makes without a list', async () => {
      const filter = { routeId: ['orders', ids.route], destinationId: [ids.destination, 'standby', 'target'] };
      const created = await create({ name: 'of-several', what: 'deliveries', filter, suspend: true });
      const shown = { routeId: ids.route, destinationId: [ids.destination, ids.other] };
      expect(created.filter).toEqual(shown);
      const { spec } = await world.store.get('Replay', { namespace: 'acme', name: 'of-several' });
      expect(spec.filter).toEqual({ routeRef: { name: 'orders' }, destinationRefs: [{ name: 'target' }, { name: 'standby' }] });
      await eventually(async () =>
        expect(await world.registry.getOfAny('replay', created.id)).toMatchObject({ filter: { statuses: ['dlq'], ...shown } }),
      );
      expect((await replays('PATCH', `/${created.id}`, { body: await read(created.id) })).status).toBe(200);
      const unknown = await replays('POST', '', { body: { what: 'deliveries', filter: { destinationId: ['target', 'nobody'] } } });
      expect([unknown.status, unknown.body.message]).toEqual([400, 'filter.destinationId: there is no destination "nobody".']);
      const foreign = await replays('POST', '', { body: { what: 'messages', filter: { routeId: ['orders', 'other'] } } });
      expect(foreign.body.message).toMatch(/^filter\.routeId/);
    });

    test('a replay of messages takes the filters of their list', async () => {
      const application = (await world.request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data;
      const endpoint = (
        await world.request('POST', '/api/webhook-endpoints', {
          body: { applicationId: application.id, url: 'https://customer.example.com/' },
        })
      ).body.data;
      await world.create('event-types', { name: 'order.paid' });
      const filter = { status: ['exhausted'], applicationId: application.id, endpointId: endpoint.id, eventType: 'order.paid' };
      expect(await create({ what: 'messages', filter })).toMatchObject({ filter });
      await world.create('event-types', { name: 'order.made' });
      const several = { ...filter, eventType: ['order.paid', 'order.made'] };
      expect((await create({ what: 'messages', filter: several })).filter).toEqual(several);
      const wrong = await replays('POST', '', { body: { what: 'messages', filter: { eventType: ['order.paid', 'order.payed'] } } });
      expect([wrong.status, wrong.body.message]).toEqual([400, expect.stringMatching(/^filter\.eventType .*"order\.payed"/)]);
    });

    test('a replay of events takes the filters of their list, and the route and destination by which they are sent', async () => {
      const filter = {
        id: ['evt_a'],
        status: ['filtered'],
        sourceId: 'shop',
        routeId: 'orders',
        destinationId: 'target',
        from: '2026-01-30T00:00:00.000Z',
        to: '2026-01-31T00:00:00.000Z',
        where: 'event.data.amount > 1',
      };
      const shown = { ...filter, sourceId: ids.source, routeId: ids.route, destinationId: ids.destination };
      expect(await create({ what: 'events', filter })).toMatchObject({ filter: shown });
    });

    test('a name that is taken is refused', async () => {
      await create({ name: 'taken', what: 'deliveries' });
      const again = await replays('POST', '', { body: { name: 'taken', what: 'messages' } });
      expect(again).toMatchObject({ status: 409, body: { code: 'ALREADY_EXISTS' } });
    });

    test('what another organization has is as unknown as what nobody has', async () => {
      await world.addOrganization('rival');
      const key = await world.addKey('rival');
      const refusal = async (body: object) => {
        const { status, text } = await replays('POST', '', { key, body });
        return { status, text: text.replaceAll(/"(dst|rte|app|ep|rep)_[a-z0-9]+/g, '"…') };
      };
      for (const [name, what, id] of [
        ['routeId', 'deliveries', ids.route],
        ['destinationId', 'deliveries', ids.destination],
        ['applicationId', 'messages', (await world.request('GET', '/api/webhook-applications')).body.data[0].id],
        ['endpointId', 'messages', (await world.request('GET', '/api/webhook-endpoints')).body.data[0].id],
      ]) {
        const foreign = await refusal({ what, filter: { [name]: id } });
        expect(foreign.status).toBe(400);
        expect(foreign.text).toContain(`filter.${name}`);
        const unknown = await refusal({ what, filter: { [name]: `${id.slice(0, -10)}${'a'.repeat(10)}` } });
        expect(withoutIds(foreign.text)).toBe(withoutIds(unknown.text));
      }
      expect((await replays('POST', '', { key, body: { what: 'deliveries', toDestinationId: ids.other } })).text).toContain(
        'toDestinationId: ',
      );
      const own = (await create({ what: 'deliveries' })).id;
      for (const [method, body] of [['GET'], ['PATCH', { suspend: true }], ['DELETE']] as const)
        expect((await replays(method, `/${own}`, { key, body })).status).toBe(404);
      expect((await replays('GET', '', { key })).body.data).toEqual([]);
      expect((await world.request('GET', `/api/explain/${own}`, { key })).status).toBe(404);
    });
  });

  describe('a change of a replay', () => {
    test('a replay is suspended, resumed and cancelled; what was read can be sent back', async () => {
      const { id, slug } = await create({ name: 'changed', what: 'deliveries', filter: { routeId: ids.route, status: ['dlq'] } });
      const suspended = await replays('PATCH', `/${id}`, { body: { suspend: true } });
      expect(suspended).toMatchObject({ status: 200, body: { id, slug, suspend: true, cancel: false, phase: 'Suspended' } });
      expect((await replays('PATCH', `/${id}`, { body: suspended.body })).body).toEqual(suspended.body);
      const resumed = await replays('PATCH', `/${id}`, { body: { suspend: false } });
      // What replays begins with it at once.
      expect(resumed.body).toMatchObject({ suspend: false, phase: expect.stringMatching(/^(Planning|Running)$/) });
      expect((await replays('PATCH', `/${id}`, { body: { cancel: true } })).body).toMatchObject({ cancel: true, phase: 'Cancelled' });
      const back = await replays('PATCH', `/${id}`, { body: { cancel: false } });
      expect([back.status, back.body.message]).toEqual([400, 'cancel cannot be taken back.']);
    });

    test.each<[field: string, value: unknown]>([
      ['name', 'otherwise'],
      ['slug', 'otherwise'],
      ['what', 'messages'],
      ['filter', { status: ['failed'] }],
      ['ratePerSecond', 5],
      ['toDestinationId', 'standby'],
      ['stopAfterFailurePercent', 5],
      ['ttlSecondsAfterFinished', null],
      ['dryRun', true],
    ])('%s cannot be changed to %j', async (field, value) => {
      const before = await create({ what: 'deliveries', filter: { status: ['dlq'] }, suspend: true });
      const { status, body } = await replays('PATCH', `/${before.id}`, { body: { [field]: value } });
      expect([status, body.message]).toEqual([400, `${field} cannot be changed: a replay is immutable but for suspend and cancel.`]);
      expect(await read(before.id)).toEqual(before);
    });

    test('a field that Git owns is changed there, and so is a replay of it deleted', async () => {
      const spec = { what: 'deliveries', suspend: true } as const;
      await world.store.apply({ kind: 'Replay', metadata: { name: 'of-git', namespace: 'acme' }, spec }, { manager: 'argocd' });
      await eventually(async () => expect((await read('of-git')).phase).toBe('Suspended'));
      for (const [method, body] of [['PATCH', { suspend: false }], ['DELETE']] as const)
        expect(await replays(method, '/of-git', { body })).toMatchObject({ status: 409, body: { code: 'FIELD_MANAGED' } });
      expect(await replays('PATCH', '/of-git', { body: { cancel: true } })).toMatchObject({ status: 200, body: { phase: 'Cancelled' } });
    });

    test('a replay is deleted', async () => {
      const { id } = await create({ what: 'deliveries' });
      expect((await replays('DELETE', `/${id}`)).status).toBe(204);
      expect((await replays('GET', `/${id}`)).status).toBe(404);
      expect((await replays('DELETE', `/${id}`)).status).toBe(404);
    });
  });

  describe('the explanation of a replay', () => {
    const explain = async (id: string) => (await world.request('GET', `/api/explain/${id}`)).body;
    const commands = (advice: { command?: string }[]) => advice.map(({ command }) => command);
    const patch = (id: string, body: object) =>
      `curl -X PATCH "$URL/api/replays/${id}" -H "x-api-key: $KEY" -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;

    test('a replay shows what it does, and how it is suspended, resumed and cancelled', async () => {
      const { id } = await create({ name: 'told', what: 'deliveries', ratePerSecond: 7 });
      const begun = await explain(id);
      expect(begun).toMatchObject({ id, kind: 'replay', state: 'Planning', waitsFor: null });
      expect(begun.summary).toBe(
        'The replay "told" is being planned. Of what it selects, 0 messages were queued and 0 originals skipped; 0 were delivered and 0 failed.',
      );
      expect(begun.story).toContainEqual(
        expect.objectContaining({ what: 'selects', text: 'It sends deliveries again, at most 7 in a second.' }),
      );
      expect(commands(begun.advice)).toEqual([patch(id, { suspend: true }), patch(id, { cancel: true })]);
      await replays('PATCH', `/${id}`, { body: { suspend: true } });
      const suspended = await explain(id);
      expect(suspended.state).toBe('Suspended');
      expect(commands(suspended.advice)).toEqual([patch(id, { suspend: false }), patch(id, { cancel: true })]);
      await replays('PATCH', `/${id}`, { body: { cancel: true } });
      expect(await explain(id)).toMatchObject({ state: 'Cancelled', advice: [] });
    });

    test('what Git owns of a replay is changed there', async () => {
      const spec = { what: 'messages', dryRun: true, suspend: true } as const;
      await world.store.apply({ kind: 'Replay', metadata: { name: 'told-of-git', namespace: 'acme' }, spec }, { manager: 'argocd' });
      const { id } = await eventually(async () => {
        const body = await read('told-of-git');
        expect(body.phase).toBe('Suspended');
        return body;
      });
      // Before a controller has seen it, it shows that it waits for that.
      await eventually(async () => {
        const { summary, advice } = await explain(id);
        expect(summary).toBe('The replay "told-of-git" is suspended. It is a dry run, which sends nothing; it has found nothing yet.');
        expect(advice).toEqual([
          { text: 'Resume the replay where it is managed, for example in Git: by argocd.' },
          { text: 'Cancel the replay; what is queued is delivered all the same.', command: patch(id, { cancel: true }) },
        ]);
      });
    });
  });

  describe('the list of replays', () => {
    test('replays are listed in pages, newest first, and by phase', async () => {
      await world.addOrganization('lister');
      const key = await world.addKey('lister');
      const list = async (query = '') => (await replays('GET', query, { key })).body;
      for (const [name, body] of [['one'], ['two', { suspend: true }], ['three']] as const)
        expect((await replays('POST', '', { key, body: { name, what: 'deliveries', ...body } })).status).toBe(201);
      const slugs = ({ data }: { data: { slug: string }[] }): string[] => data.map(({ slug }) => slug);
      const all = await list();
      expect(slugs(all).sort()).toEqual(['one', 'three', 'two']);
      expect(all.data).toContainEqual((await replays('GET', '/one', { key })).body);
      const times: string[] = all.data.map(({ createdAt }: { createdAt: string }) => createdAt);
      expect(times).toEqual(times.toSorted().reverse());
      const pages = [await list('?pageSize=2'), await list('?page=2&pageSize=2')];
      expect(pages.flatMap(({ data }) => data)).toEqual(all.data);
      expect(pages[1].pagination).toEqual({ total: 3, page: 2, pageSize: 2 });
      expect(slugs(await list('?phase=Suspended'))).toEqual(['two']);
      expect((await list('?phase=Planning&pageSize=1')).pagination).toEqual({ total: 2, page: 1, pageSize: 1 });
      expect((await replays('GET', '?phase=Asleep', { key })).status).toBe(400);
    });
  });

  describe('who may replay', () => {
    test('a developer makes, changes and deletes replays; a viewer reads them', async () => {
      const key = await world.addKey('acme', { role: 'developer' });
      const created = await replays('POST', '', { key, body: { what: 'deliveries' } });
      expect(created.status).toBe(201);
      const viewer = await world.addKey('acme', { role: 'viewer' });
      expect((await replays('GET', `/${created.body.id}`, { key: viewer })).status).toBe(200);
      for (const [method, path, body] of [
        ['POST', '', { what: 'deliveries' }],
        ['PATCH', `/${created.body.id}`, { suspend: true }],
        ['DELETE', `/${created.body.id}`],
      ] as const)
        expect((await replays(method, path, { key: viewer, body })).status).toBe(403);
      expect((await replays('PATCH', `/${created.body.id}`, { key, body: { suspend: true } })).status).toBe(200);
      expect((await replays('DELETE', `/${created.body.id}`, { key })).status).toBe(204);
    });

    test('an equal request with the same Idempotency-Key makes one replay', async () => {
      const options = { headers: { 'idempotency-key': 'once' }, body: { what: 'deliveries' } };
      const [first, again] = [await replays('POST', '', options), await replays('POST', '', options)];
      expect([first.status, again.status]).toEqual([201, 201]);
      expect(again.body).toEqual(first.body);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
      expect((await replays('POST', '', { ...options, body: { what: 'messages' } })).status).toBe(409);
    });
  });

  function withoutIds(text: string): string {
    return text.replaceAll(/(dst|rte|app|ep)_[a-z0-9]+/g, '…');
  }
}
