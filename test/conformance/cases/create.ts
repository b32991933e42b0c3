import { describe, expect, test } from '@jest/globals';
import { expectCode, type StoreContext } from '../store-context.ts';

export function createCases(c: StoreContext): void {
  describe('create and get', () => {
    test('an object that was made can be read with uid, version, generation 1 and a creation time', async () => {
      const made = await c.store.create(c.route('a'), { manager: 'one' });
      expect(made).toMatchObject({
        apiVersion: 'posthorn.dev/v1alpha1',
        kind: 'Route',
        metadata: { name: 'a', namespace: c.namespace, generation: 1 },
      });
      expect(made.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
      expect(made.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(await c.store.get('Route', c.key('a'))).toEqual(made);
    });

    test('a second one of the same name is ALREADY_EXISTS and changes nothing', async () => {
      const made = await c.store.create(c.route('a'), { manager: 'one' });
      await expectCode(c.store.create(c.route('a', { priority: 9 }), { manager: 'one' }), 'ALREADY_EXISTS');
      expect(await c.store.get('Route', c.key('a'))).toEqual(made);
    });

    test('a missing object is RESOURCE_NOT_FOUND', async () => {
      await expectCode(c.store.get('Route', c.key('nothing')), 'RESOURCE_NOT_FOUND');
    });

    test('an object in a namespace that does not exist is RESOURCE_NOT_FOUND', async () => {
      await expectCode(c.store.create(c.route('a', {}, { namespace: 'nowhere' }), { manager: 'one' }), 'RESOURCE_NOT_FOUND');
    });

    test('a name of which two are made at once is made once', async () => {
      const results = await Promise.allSettled(
        [1, 2, 3, 4].map((priority) => c.store.create(c.route('a', { priority }), { manager: 'one' })),
      );
      expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    });

    test('an object made again has another uid', async () => {
      const first = await c.store.create(c.route('a'), { manager: 'one' });
      await c.store.delete('Route', c.key('a'));
      const second = await c.store.create(c.route('a'), { manager: 'one' });
      expect(second.metadata.uid).not.toBe(first.metadata.uid);
      expect(second.metadata.generation).toBe(1);
    });

    test('the creator applies over its own fields without a conflict', async () => {
      await c.store.create(c.route('a', { priority: 1 }), { manager: 'one' });
      const changed = await c.store.apply(c.route('a', { priority: 2 }), { manager: 'one' });
      expect(changed.spec.priority).toBe(2);
    });
  });
}
