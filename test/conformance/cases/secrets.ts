import { describe, expect, test } from '@jest/globals';
import { expectCode, type StoreContext } from '../store-context.ts';

export function secretsCases(c: StoreContext): void {
  describe('secrets', () => {
    test('get gives the contents; lists and watches do not', async () => {
      const { version } = await c.store.list('Secret', { namespace: c.namespace });
      await c.store.create(c.secret('s', { password: 'c2VjcmV0' }), { manager: 'one' });
      expect((await c.store.getSecret(c.key('s'))).data).toEqual({ password: 'c2VjcmV0' });
      const [item] = (await c.store.list('Secret', { namespace: c.namespace })).items;
      expect(item).toMatchObject({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: c.namespace } });
      expect(item).not.toHaveProperty('data');
      const watch = c.watching('Secret', version);
      const { object } = await watch.next();
      expect(object).toMatchObject({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } });
      expect(object).not.toHaveProperty('data');
      watch.stop();
    });

    test('the metadata of one object names the managers of its fields, and has no contents', async () => {
      await c.store.create(c.secret('s', { password: 'c2VjcmV0' }), { manager: 'one' });
      await c.store.create(c.secret('s2', { password: 'c2VjcmV0' }), { manager: 'two' });
      await c.store.create(c.route('r'), { manager: 'three' });
      const of = async (kind: 'Secret' | 'Route', name: string) => await c.store.getMetadata(kind, c.key(name));
      const managers = async (...of_: Parameters<typeof of>) => (await of(...of_)).managedFields?.map(({ manager }) => manager);
      expect(await managers('Secret', 's')).toEqual(['one']);
      expect(await managers('Route', 'r')).toEqual(['three']);
      expect(await of('Secret', 's')).toMatchObject({ name: 's', namespace: c.namespace, uid: expect.any(String) });
      expect(JSON.stringify(await of('Secret', 's'))).not.toContain('c2VjcmV0');
      await expectCode(of('Secret', 'missing'), 'RESOURCE_NOT_FOUND');
    });

    test('one key is applied without the others, and its owner is reported', async () => {
      await c.store.create(c.secret('s', { a: 'YQ==' }), { manager: 'one' });
      const both = await c.store.apply(
        { kind: 'Secret', metadata: { name: 's', namespace: c.namespace }, data: { b: 'Yg==' } },
        { manager: 'two' },
      );
      expect(both.data).toEqual({ a: 'YQ==', b: 'Yg==' });
      const refused = await expectCode(
        c.store.apply({ kind: 'Secret', metadata: { name: 's', namespace: c.namespace }, data: { a: 'Yg==' } }, { manager: 'two' }),
        'FIELD_MANAGED',
      );
      expect(refused.details).toEqual({ 'data.a': ['one'] });
    });
  });
}
