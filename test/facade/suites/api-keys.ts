import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hashApiKey } from '../../../src/core/api-key-hash.ts';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld, RequestOptions } from '../facade-world.ts';

/** What API keys are made with, with any store behind the API. */
export function describeApiKeys(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const create = (body: object, options: RequestOptions = {}) => world.request('POST', '/api/api-keys', { body, ...options });
  const dayMs = 86_400_000;

  describe('a new API key', () => {
    test('a new API key is a developer without an end unless it says otherwise, and is shown once', async () => {
      const { status, body } = await create({ name: 'Plain' });
      expect(status).toBe(201);
      expect(body).toEqual({
        apiKey: {
          id: expect.stringMatching(/^key_[a-z2-7]{26}$/),
          organizationId: expect.stringMatching(/^org_/),
          name: 'Plain',
          key: body.key,
          prefix: body.key.slice(0, body.apiKey.prefix.length),
          keyPrefix: body.apiKey.prefix,
          role: 'developer',
          scopes: ['read', 'write', 'delete'],
          createdAt: expect.stringMatching(/Z$/),
          lastUsedAt: null,
          expiresAt: null,
          createdBy: { name: expect.stringMatching(/^key-/), keyId: expect.stringMatching(/^key_/) },
        },
        key: expect.stringMatching(/^ph_[\w-]{40,}$/),
      });
      expect(body.apiKey.prefix.length).toBeLessThan(12);
      const list = await world.request('GET', '/api/api-keys?pageSize=100');
      expect(list.text).not.toContain(body.key);
      expect(list.body.data.map(({ id }: { id: string }) => id)).toContain(body.apiKey.id);
    });

    test.each([
      ['admin', ['read', 'write', 'delete']],
      ['developer', ['read', 'write', 'delete']],
      ['viewer', ['read']],
    ])('a new API key of role %s has the scopes %j unless it names fewer', async (role, scopes) => {
      expect((await create({ name: 'All of it', role })).body.apiKey).toMatchObject({ role, scopes });
      expect((await create({ name: 'Less', role, scopes: ['read'] })).body.apiKey).toMatchObject({ role, scopes: ['read'] });
    });

    test('a new API key is made with what only reads show sent along, which is ignored', async () => {
      const { status, body } = await world.request('POST', '/api/api-keys', {
        body: { name: 'Again', id: 'key_other', prefix: 'ph_other' },
      });
      expect([status, body.apiKey.id === 'key_other', body.apiKey.prefix === 'ph_other']).toEqual([201, false, false]);
    });

    test.each([1, 2, 3650])('a new API key ends after the %i days that it names', async (expiresInDays) => {
      const before = Date.now();
      const { status, body } = await create({ name: 'n'.repeat(200), expiresInDays });
      expect([status, body.apiKey.name]).toEqual([201, 'n'.repeat(200)]);
      const madeAt = Date.parse(body.apiKey.expiresAt) - expiresInDays * dayMs;
      expect(madeAt).toBeGreaterThanOrEqual(Math.floor(before / 1000) * 1000);
      expect(madeAt).toBeLessThanOrEqual(Date.now() + 1000);
      expect((await world.request('GET', '/api/sources', { key: body.key })).status).toBe(200);
    });

    test.each([
      ['a scope that its role cannot have', { role: 'viewer', scopes: ['read', 'write'] }, 'scopes'],
      ['no scopes', { scopes: [] }, 'scopes'],
      ['another scope', { scopes: ['own'] }, 'scopes'],
      ['another role', { role: 'owner' }, 'role'],
      ['no days', { expiresInDays: 0 }, 'expiresInDays'],
      ['more than ten years', { expiresInDays: 3651 }, 'expiresInDays'],
      ['a key of its own', { key: 'ph_mine' }, 'key'],
      ['no name', { name: undefined }, 'name'],
      ['a name of 201 characters', { name: 'n'.repeat(201) }, 'name'],
      ['a blank name', { name: ' ' }, 'name'],
      ['half a day', { expiresInDays: 0.5 }, 'expiresInDays'],
    ])('a new API key with %s is 400', async (_, body, field) => {
      const answer = await create({ name: 'Wrong', ...body });
      expect(answer.status).toBe(400);
      expect(answer.body.message).toContain(field);
    });

    test('a new API key has no scope that the key of its maker does not have', async () => {
      const key = await world.addKey('acme', { scopes: ['read', 'write'] });
      expect((await create({ name: 'More than mine' }, { key })).status).toBe(403);
      expect((await create({ name: 'As much', scopes: ['read', 'write'] }, { key })).status).toBe(201);
    });

    test('a new API key reports when it was last used', async () => {
      const { body } = await create({ name: 'Used' });
      await world.request('GET', '/api/sources', { key: body.key });
      await eventually(async () => {
        const list = await world.request('GET', '/api/api-keys?pageSize=100');
        const shown = list.body.data.find(({ id }: { id: string }) => id === body.apiKey.id);
        expect(Date.parse(shown.lastUsedAt)).toBeGreaterThan(Date.parse(body.apiKey.createdAt) - 60_000);
      });
    });
  });

  describe('a key that a key made', () => {
    const made = async (key: string, body: object = {}): Promise<{ id: string; key: string }> => {
      const answer = await create({ name: 'Made', role: 'admin', ...body }, { key });
      expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
      return { id: answer.body.apiKey.id, key: answer.body.key };
    };
    const statusOf = async (key: string, method = 'GET', body?: object): Promise<number> =>
      (await world.request(method, '/api/api-keys', { key, ...(body !== undefined && { body }) })).status;
    // biome-ignore lint/suspicious/noExplicitAny: tests look into any JSON
    const shown = async (id: string): Promise<any> =>
      (await world.request('GET', '/api/api-keys?pageSize=100')).body.data.find((each: { id: string }) => each.id === id);
    const declared = (key: string) => ({ name: `key-${hashApiKey(key).slice(0, 12)}`, namespace: 'acme' });
    const change = (key: string, spec: object) =>
      world.store.apply(
        { kind: 'ApiKey', metadata: declared(key), spec: { sha256: hashApiKey(key), role: 'admin', ...spec } },
        { manager: 'kubectl', force: true },
      );
    const inDays = (days: number) => new Date(Math.floor(Date.now() / 1000) * 1000 + days * dayMs).toISOString().replace('.000Z', 'Z');

    test.each([
      ['names no end', {}],
      ['names a later one', { expiresInDays: 3650 }],
    ])('a key that a key made ends with its maker when it %s', async (_, body) => {
      const expiresAt = inDays(2);
      const maker = await world.addKey('acme', { expiresAt });
      const { id, key } = await made(maker, body);
      expect(Date.parse((await shown(id)).expiresAt)).toBe(Date.parse(expiresAt));
      expect(Date.parse((await shown((await made(key, body)).id)).expiresAt)).toBe(Date.parse(expiresAt));
      expect(Date.parse((await shown((await made(maker, { expiresInDays: 1 })).id)).expiresAt)).toBeLessThan(Date.parse(expiresAt));
    });

    test('a key that a key made ends when the end of its maker is brought forward', async () => {
      const maker = await world.addKey('acme');
      const { key } = await made((await made(maker)).key);
      expect(await statusOf(key)).toBe(200);
      await change(maker, { expiresAt: '2020-01-01T00:00:00Z' });
      await eventually(async () => expect(await statusOf(key)).toBe(401));
    });

    test('a key that a key made is deleted with its maker, and so are the keys that it made, and no others', async () => {
      const maker = await made(await world.addKey('acme'));
      const child = await made(maker.key);
      const grandchild = await made(child.key, { role: 'viewer' });
      const sibling = await made(world.admin);
      expect((await world.request('DELETE', `/api/api-keys/${maker.id}`)).status).toBe(204);
      for (const { id, key } of [maker, child, grandchild]) expect([await statusOf(key), await shown(id)]).toEqual([401, undefined]);
      expect([await statusOf(sibling.key), (await shown(sibling.id)).id]).toEqual([200, sibling.id]);
    });

    test('a key that a key made is refused once its maker is deleted as a resource, its condition reports it, and the list shows it still', async () => {
      const maker = await world.addKey('acme');
      const child = await made(maker);
      const grandchild = await made(child.key);
      await world.store.delete('ApiKey', declared(maker));
      for (const { key } of [child, grandchild]) await eventually(async () => expect(await statusOf(key)).toBe(401));
      // The list receives it by another way than the check of a key.
      await eventually(async () => expect((await shown(child.id)).createdBy).toEqual({ name: declared(maker).name, keyId: null }));
      const [object] = (await world.store.list('ApiKey', { namespace: 'acme' })).items.filter(({ status }) => status?.id === child.id);
      await eventually(async () => {
        const { status } = await world.store.get('ApiKey', { name: object?.metadata.name ?? '', namespace: 'acme' });
        expect(status?.conditions).toContainEqual(
          expect.objectContaining({ type: 'ResolvedRefs', status: 'False', reason: 'KeyNotFound' }),
        );
      });
    });

    test('a key that a key made is refused once its maker has another key', async () => {
      const maker = await world.addKey('acme');
      const { key } = await made(maker);
      await change(maker, { sha256: hashApiKey('another') });
      await eventually(async () => expect(await statusOf(key)).toBe(401));
    });

    test('a key that a key made does no more than its maker does now, and is shown so', async () => {
      const maker = await world.addKey('acme');
      const { id, key } = await made(maker);
      expect(await statusOf(key, 'POST', { name: 'More' })).toBe(201);
      await change(maker, { role: 'developer' });
      await eventually(async () => expect(await statusOf(key, 'POST', { name: 'More' })).toBe(403));
      await eventually(async () => expect(await shown(id)).toMatchObject({ role: 'developer', scopes: ['read', 'write', 'delete'] }));
      await change(maker, { role: 'admin', scopes: ['read'] });
      await eventually(async () => expect((await shown(id)).scopes).toEqual(['read']));
      expect(await statusOf(key, 'POST', { name: 'More' })).toBe(403);
    });

    test('a key that a key made says in the list which key made it', async () => {
      const maker = await made(world.admin, { name: 'Head of keys' });
      const { id } = await made(maker.key);
      expect((await shown(id)).createdBy).toEqual({ name: 'Head of keys', keyId: maker.id });
    });

    test('a key that a key made stays when another key that is declared with the hash of its maker is deleted', async () => {
      const maker = await world.addKey('acme');
      const child = await made(maker);
      const name = `z-${declared(maker).name}`;
      await world.store.apply(
        { kind: 'ApiKey', metadata: { name, namespace: 'acme' }, spec: { name: 'Twin', sha256: hashApiKey(maker), role: 'viewer' } },
        { manager: 'kubectl' },
      );
      const twin = await eventually(async () => {
        const { status } = await world.store.get('ApiKey', { name, namespace: 'acme' });
        expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Accepted', status: 'False', reason: 'KeyTaken' }));
        return status;
      });
      expect(await statusOf(maker, 'POST', { name: 'Still an admin' })).toBe(201);
      expect((await shown(child.id)).createdBy.keyId).not.toBe(twin?.id);
      await world.store.delete('ApiKey', { name, namespace: 'acme' });
      expect([await statusOf(maker), await statusOf(child.key)]).toEqual([200, 200]);
    });

    test('a key that a key made is in a chain of nine keys at most', async () => {
      let key = await world.addKey('acme');
      for (let makers = 1; makers <= 8; makers++) key = (await made(key)).key;
      expect(await statusOf(key)).toBe(200);
      expect(await statusOf(key, 'POST', { name: 'Too far' })).toBe(403);
    });

    test.each(['posthorn-bootstrap', 'posthorn-standalone'])(
      'a key that a key made stays when %s gives the installation another key',
      async (manager) => {
        const apply = (key: string) =>
          world.store.apply(
            {
              kind: 'ApiKey',
              metadata: { name: manager, namespace: 'acme' },
              spec: { name: 'Of all', sha256: hashApiKey(key), role: 'admin' },
            },
            { manager, force: true },
          );
        const key = `${manager}-before`;
        await apply(key);
        await eventually(async () => expect(await statusOf(key)).toBe(200));
        const child = await made(key);
        await apply(`${manager}-after`);
        await eventually(async () => expect(await statusOf(key)).toBe(401));
        await eventually(async () => expect((await shown(child.id)).createdBy).toEqual({ name: 'Of all', keyId: null }));
        expect(await statusOf(child.key)).toBe(200);
      },
    );
  });
}
