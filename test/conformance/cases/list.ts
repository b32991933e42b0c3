import { describe, expect, test } from '@jest/globals';
import { expectCode, names, type StoreContext } from '../store-context.ts';

export function listCases(c: StoreContext): void {
  describe('list', () => {
    test('gives the objects of one namespace: c.namespace, or of all', async () => {
      await c.store.create(c.route('a'), { manager: 'one' });
      await c.store.create(c.route('b'), { manager: 'one' });
      expect(names((await c.store.list('Route', { namespace: c.namespace })).items)).toEqual(['a', 'b']);
      const all = await c.store.list('Route');
      expect(all.items.filter((object) => object.metadata.namespace === c.namespace)).toHaveLength(2);
      expect(all.items[0]).toMatchObject({ kind: 'Route', apiVersion: 'posthorn.dev/v1alpha1' });
    });

    test('pages give each object once, all with the version of the first, while others come and go', async () => {
      for (const name of ['a', 'b', 'c', 'd', 'e']) await c.store.create(c.route(name), { manager: 'one' });
      const first = await c.store.list('Route', { namespace: c.namespace, limit: 2 });
      await c.store.delete('Route', c.key('a'));
      await c.store.create(c.route('aa'), { manager: 'one' });
      const second = await c.store.list('Route', { namespace: c.namespace, limit: 2, continueToken: first.continueToken ?? '' });
      const third = await c.store.list('Route', { namespace: c.namespace, limit: 2, continueToken: second.continueToken ?? '' });
      expect([first, second, third].map((page) => names(page.items))).toEqual([['a', 'b'], ['c', 'd'], ['e']]);
      expect(third.continueToken).toBeUndefined();
      expect([second.version, third.version]).toEqual([first.version, first.version]);
    });

    test('a token that is none is BAD_REQUEST', async () => {
      await expectCode(c.store.list('Route', { namespace: c.namespace, continueToken: 'rubbish' }), 'BAD_REQUEST');
    });
  });
}
