import { describe, expect, test } from '@jest/globals';
import type { FacadeWorld } from '../facade-world.ts';

/** What every list of configuration has: pages, search and filters. `least` is what a create of a family needs, new each time. */
export function describeLists({ world, least }: { world(): FacadeWorld; least(family: string): Promise<Record<string, unknown>> }): void {
  const post = (path: string, body: object) => world().request('POST', `/api/${path}`, { body });

  describe('lists', () => {
    test.each(['destinations', 'routes', 'sources', 'filters', 'transforms', 'schemas', 'api-keys'])(
      'of %s have pages of 20, at most of 100',
      async (family) => {
        const list = async (query: string) => (await world().request('GET', `/api/${family}${query}`)).body;
        let { total } = (await list('')).pagination;
        for (; total < 21; total++) expect((await post(family, await least(family))).status).toBe(201);
        const first = await list('');
        expect([first.pagination, first.data.length]).toEqual([{ total, page: 1, pageSize: 20 }, 20]);
        const second = await list('?page=2');
        expect([second.pagination, second.data.length]).toEqual([{ total, page: 2, pageSize: 20 }, Math.min(total - 20, 20)]);
        const large = await list('?page=2&pageSize=100');
        expect([large.pagination, large.data.length]).toEqual([{ total, page: 2, pageSize: 100 }, Math.max(0, Math.min(total - 100, 100))]);
        for (const query of ['?pageSize=101', '?pageSize=0', '?page=0', '?page=-1', '?page=1.5', '?pageSize=many']) {
          const { status, body } = await world().request('GET', `/api/${family}${query}`);
          expect([query, status, body.code]).toEqual([query, 400, 'INVALID_QUERY']);
        }
      },
    );

    test.each(['sources', 'filters', 'transforms', 'schemas'])('of %s are searched by name and slug', async (family) => {
      const slug = `needle-${family}`;
      const { body } = await post(family, { ...(await least(family)), name: `Haystack of ${family}`, slug });
      for (const search of [slug.toUpperCase(), `haystack%20of%20${family}`])
        expect((await world().request('GET', `/api/${family}?search=${search}`)).body.data).toMatchObject([{ id: body.id }]);
      expect((await world().request('GET', `/api/${family}?search=${slug}s`)).body.data).toEqual([]);
    });

    test.each(['destinations', 'routes', 'sources', 'filters', 'transforms', 'schemas', 'notification-channels'])(
      'of %s are narrowed to ids and slugs, of which unknown ones are left out',
      async (family) => {
        const made = async () => (await post(family, await least(family))).body;
        const [one, other, third] = [await made(), await made(), await made()];
        const ids = async (query: string): Promise<string[]> =>
          (await world().request('GET', `/api/${family}?${query}`)).body.data.map(({ id }: { id: string }) => id).sort();
        expect(await ids(`id=${one.id},nothing-such,${third.id}`)).toEqual([one.id, third.id].sort());
        expect(await ids(`id=${one.id}&id=${other.slug}`)).toEqual([one.id, other.id].sort());
        expect(await ids(`id=${one.id},${other.id}&page=1&pageSize=1`)).toHaveLength(1);
        expect(await ids('id=nothing-such')).toEqual([]);
        expect((await world().request('GET', `/api/${family}?id=${'x,'.repeat(3)}`)).body.code).toBe('INVALID_QUERY');
      },
    );

    test('of sources are filtered by enabled', async () => {
      const name = 'Switched source';
      const on = (await post('sources', { name })).body;
      const off = (await post('sources', { name, enabled: false })).body;
      const ids = async (query: string) =>
        (await world().request('GET', `/api/sources?search=switched${query}`)).body.data.map(({ id }: { id: string }) => id);
      expect((await ids('')).sort()).toEqual([off.id, on.id].sort());
      expect([await ids('&enabled=true'), await ids('&enabled=false')]).toEqual([[on.id], [off.id]]);
    });

    test('hold each record on one page, newest first', async () => {
      const pages = await Promise.all([1, 2, 3].map((page) => world().request('GET', `/api/destinations?pageSize=2&page=${page}`)));
      const ids = pages.flatMap(({ body }) => body.data.map(({ id }: { id: string }) => id));
      expect(new Set(ids).size).toBe(6);
    });
  });
}
