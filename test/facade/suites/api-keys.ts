import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { passes } from '../../support/passes.ts';
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
    test('is a developer without an end unless it says otherwise, and is shown once', async () => {
      const { status, body } = await create({ name: 'Plain' });
      expect(status).toBe(201);
      expect(body).toEqual({
        apiKey: {
          id: expect.stringMatching(/^key_[a-z2-7]{26}$/),
          name: 'Plain',
          prefix: body.key.slice(0, body.apiKey.prefix.length),
          role: 'developer',
          scopes: ['read', 'write', 'delete'],
          createdAt: expect.stringMatching(/Z$/),
          lastUsedAt: null,
          expiresAt: null,
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
    ])('of role %s has the scopes %j unless it names fewer', async (role, scopes) => {
      expect((await create({ name: 'All of it', role })).body.apiKey).toMatchObject({ role, scopes });
      expect((await create({ name: 'Less', role, scopes: ['read'] })).body.apiKey).toMatchObject({ role, scopes: ['read'] });
    });

    test('is made with what only reads show sent along, which is ignored', async () => {
      const { status, body } = await world.request('POST', '/api/api-keys', {
        body: { name: 'Again', id: 'key_other', prefix: 'ph_other' },
      });
      expect([status, body.apiKey.id === 'key_other', body.apiKey.prefix === 'ph_other']).toEqual([201, false, false]);
    });

    test.each([1, 2, 3650])('ends after the %i days that it names', async (expiresInDays) => {
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
    ])('with %s is 400', async (_, body, field) => {
      const answer = await create({ name: 'Wrong', ...body });
      expect(answer.status).toBe(400);
      expect(answer.body.message).toContain(field);
    });

    test('has no scope that the key of its maker does not have', async () => {
      const key = await world.addKey('acme', { scopes: ['read', 'write'] });
      expect((await create({ name: 'More than mine' }, { key })).status).toBe(403);
      expect((await create({ name: 'As much', scopes: ['read', 'write'] }, { key })).status).toBe(201);
    });

    test('tells when it was last used', async () => {
      const { body } = await create({ name: 'Used' });
      await world.request('GET', '/api/sources', { key: body.key });
      await passes(async () => {
        const list = await world.request('GET', '/api/api-keys?pageSize=100');
        const shown = list.body.data.find(({ id }: { id: string }) => id === body.apiKey.id);
        expect(Date.parse(shown.lastUsedAt)).toBeGreaterThan(Date.parse(body.apiKey.createdAt) - 60_000);
      });
    });
  });
}
