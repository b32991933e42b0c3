import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { SharedKind } from '../../../src/resources/sharing.ts';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** Records that organizations share, with any store behind the API. */
export function describeSharing(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  const keys: Record<string, string> = {};
  beforeAll(async () => {
    world = await start();
    keys['acme'] = world.admin;
    for (const slug of ['globex', 'initech']) {
      await world.addOrganization(slug);
      keys[slug] = await world.addKey(slug);
    }
  });
  afterAll(() => world.stop());

  const ask = (organization: string, method: string, path: string, body?: object) =>
    world.request(method, `/api/${path}`, { key: keys[organization] ?? '', ...(body !== undefined && { body }) });
  const read = async (organization: string, path: string) => (await ask(organization, 'GET', path)).body;

  const exists = { field: 'payload.id', operator: 'exists' };
  const both = { type: 'object', required: ['id'] };
  const families: {
    kind: SharedKind;
    path: string;
    noun: string;
    reference: string;
    content: object;
    other: object;
    lost: object;
    tried: (id: string) => [method: string, path: string, body: object, answer: object];
  }[] = [
    {
      kind: 'Transform',
      path: 'transforms',
      noun: 'transform',
      reference: 'transformId',
      content: { type: 'javascript', code: '(event) => ({ id: event.payload.id })' },
      other: { type: 'liquid', code: '{{ payload.id }}' },
      lost: { code: '' },
      tried: (id) => [
        'POST',
        'transforms/test',
        { transformId: id, payload: { id: 'o-1', more: 1 } },
        { success: true, output: { id: 'o-1' } },
      ],
    },
    {
      kind: 'Filter',
      path: 'filters',
      noun: 'filter',
      reference: 'filterId',
      content: { conditions: [exists], logic: 'OR' },
      other: { conditions: [{ ...exists, operator: 'not_exists' }], logic: 'AND' },
      lost: { conditions: [] },
      tried: (id) => ['POST', 'filters/test', { filterId: id, payload: { id: 1 } }, { matches: true, logic: 'OR' }],
    },
    {
      kind: 'PayloadSchema',
      path: 'schemas',
      noun: 'schema',
      reference: 'schemaId',
      content: { jsonSchema: both },
      other: { jsonSchema: { type: 'array' } },
      lost: { jsonSchema: { not: {} } },
      tried: (id) => ['POST', `schemas/${id}/validate`, { payload: { id: 1 } }, { valid: true, errors: [] }],
    },
  ];

  describe.each(families)('$path', ({ kind, path, noun, reference, content, other, lost, tried }) => {
    const slug = `shared-${path}`;
    const from = (organization = 'acme') => ({ sharedFrom: { organization, slug } });

    test(`${path} are shared with named organizations, which see and try them under ids of their own`, async () => {
      const shared = await ask('acme', 'POST', path, { name: 'Shared', slug, ...content, sharedWith: ['globex'] });
      expect([shared.status, shared.body.sharedWith, shared.body.sharedFrom]).toEqual([201, ['globex'], null]);
      const taken = await ask('globex', 'POST', path, { name: 'Taken', ...from() });
      expect([taken.status, taken.headers.get('warning')]).toEqual([201, null]);
      expect(taken.body).toMatchObject({ ...content, sharedWith: [], ...from(), organizationId: await world.organizationId('globex') });
      expect(taken.body.id).not.toBe(shared.body.id);
      const [method, where, body, answer] = tried(taken.body.id);
      expect((await ask('globex', method, where, body)).body).toMatchObject(answer);
      // The record of the owner stays that of its owner.
      for (const organization of ['globex', 'initech'])
        expect((await ask(organization, 'GET', `${path}/${shared.body.id}`)).status).toBe(404);
    });

    test(`${path} that are not shared with the organization, and those that are not there, are refused in the same words`, async () => {
      const said = (organization: string, of: string) =>
        `sharedFrom: the organization ${organization} shares no ${noun} "${of}" with this one.`;
      for (const [organization, of] of [
        ['acme', slug],
        ['acme', 'nothing-such'],
        ['nobody', slug],
        ['globex', 'taken'],
      ] as const) {
        const { status, body } = await ask('initech', 'POST', path, { name: 'Wanted', sharedFrom: { organization, slug: of } });
        expect([status, body.code, body.message]).toEqual([400, 'VALIDATION_FAILED', said(organization, of)]);
      }
      for (const organization of ['ACME', 'acme*', ''])
        expect((await ask('initech', 'POST', path, { name: 'Wanted', ...from(organization) })).status).toBe(400);
    });

    test(`a record of ${path} that was taken over has no content of its own, and can be sent back as it was shown`, async () => {
      const shown = await read('globex', `${path}/taken`);
      expect((await ask('globex', 'PATCH', `${path}/taken`, shown)).body).toEqual(shown);
      for (const body of [other, { sharedWith: ['initech'] }, { sharedFrom: null }]) {
        const { status, body: answer } = await ask('globex', 'PATCH', `${path}/taken`, body);
        expect([status, answer.code]).toEqual([400, 'VALIDATION_FAILED']);
      }
      expect((await ask('globex', 'POST', path, { name: 'Both', ...from(), ...content })).status).toBe(400);
      expect((await ask('globex', 'POST', path, { name: 'Neither', sharedFrom: null })).status).toBe(400);
      expect(await read('globex', `${path}/taken`)).toEqual(shown);
      const own = await ask('globex', 'PATCH', `${path}/taken`, { sharedFrom: null, ...other });
      expect(own.body).toMatchObject({ ...other, sharedFrom: null });
      expect((await ask('globex', 'PATCH', `${path}/taken`, from())).body).toMatchObject({ ...content, ...from() });
    });

    test(`a route shows what it uses of ${path} as its own, and a change of the owner reaches it`, async () => {
      const key = keys['globex'] ?? '';
      const source = await world.create('sources', {}, key);
      const destination = await world.create('destinations', { url: 'https://hooks.example.com/in' }, key);
      const { id } = await read('globex', `${path}/taken`);
      const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id], [reference]: id }, key);
      expect([route[reference], route[noun]]).toEqual([id, { id, name: 'Taken' }]);
      await ask('acme', 'PATCH', `${path}/${slug}`, other);
      await eventually(async () => expect(await read('globex', `${path}/taken`)).toMatchObject(other));
      await eventually(async () => expect((await read('acme', `${path}/${slug}`)).routeCount).toBe(0));
      expect((await ask('globex', 'DELETE', `${path}/taken`)).body).toMatchObject({ code: 'IN_USE' });
    });

    test(`what is shared of ${path} cannot be deleted while it is used; without the consent its content is gone`, async () => {
      await ask('acme', 'PATCH', `${path}/${slug}`, { sharedWith: ['globex', 'initech', 'nobody'] });
      const { status, body } = await ask('acme', 'DELETE', `${path}/${slug}`);
      expect([status, body.code, body.message]).toEqual([409, 'IN_USE', `The ${noun} is used by the organizations globex.`]);
      expect((await ask('acme', 'PATCH', `${path}/${slug}`, { sharedWith: [] })).body.sharedWith).toEqual([]);
      await eventually(async () => expect(await read('globex', `${path}/taken`)).toMatchObject({ ...lost, ...from() }));
      const [method, where, sent] = tried('taken');
      const { status: refused, body: answer } = await ask('globex', method, where, sent);
      expect([refused, answer.message]).toEqual([400, `sharedFrom: the organization acme shares no ${noun} "${slug}" with this one.`]);
      await eventually(async () => {
        const { status: seen } = await world.store.get(kind, { namespace: 'globex', name: 'taken' });
        expect(seen?.conditions).toContainEqual(expect.objectContaining({ type: 'ResolvedRefs', reason: 'RefNotPermitted' }));
      });
      expect((await ask('acme', 'DELETE', `${path}/${slug}`)).status).toBe(204);
    });
  });
}
