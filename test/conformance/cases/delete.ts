import { describe, expect, test } from '@jest/globals';
import { versionOf } from '../../../src/store/store.ts';
import { eventually, expectCode, type StoreContext } from '../store-context.ts';

export function deleteCases(c: StoreContext): void {
  describe('delete', () => {
    test('a deleted object is gone, and deleting it again is RESOURCE_NOT_FOUND', async () => {
      await c.store.create(c.route('a'), { manager: 'one' });
      await c.store.delete('Route', c.key('a'));
      await expectCode(c.store.get('Route', c.key('a')), 'RESOURCE_NOT_FOUND');
      await expectCode(c.store.delete('Route', c.key('a')), 'RESOURCE_NOT_FOUND');
    });

    test('a stale version or another uid is CONFLICT', async () => {
      const first = await c.store.create(c.route('a'), { manager: 'one' });
      const second = await c.store.apply(c.route('a', { priority: 1 }), { manager: 'one' });
      await expectCode(c.store.delete('Route', c.key('a'), { version: versionOf(first) }), 'CONFLICT');
      await expectCode(c.store.delete('Route', c.key('a'), { uid: '00000000-0000-0000-0000-000000000000' }), 'CONFLICT');
      await c.store.delete('Route', c.key('a'), { version: versionOf(second), uid: second.metadata.uid });
    });

    test('with a finalizer the object stays, marked, until the finalizer is removed', async () => {
      const made = await c.store.create(c.route('a', {}, { finalizers: ['posthorn.dev/outside'] }), { manager: 'one' });
      await c.store.delete('Route', c.key('a'));
      const marked = await c.store.get('Route', c.key('a'));
      expect(marked.metadata.deletionTimestamp).toMatch(/Z$/);
      expect(marked.metadata.generation).toBe(made.metadata.generation + 1);
      const added = c.route('a', {}, { finalizers: ['posthorn.dev/outside', 'posthorn.dev/other'] });
      await expectCode(c.store.apply(added, { manager: 'one' }), 'VALIDATION_FAILED');
      await c.store.applyStatus('Route', c.key('a'), { id: 'x' }, { manager: 'status' });
      await c.store.apply(c.route('a'), { manager: 'one' });
      await expectCode(c.store.get('Route', c.key('a')), 'RESOURCE_NOT_FOUND');
    });

    test('an empty list of finalizers lets a marked object go, and one that is not marked stays', async () => {
      const without = (name: string) => ({ kind: 'Route' as const, metadata: { ...c.key(name), finalizers: [] } });
      for (const name of ['a', 'b']) await c.store.create(c.route(name), { manager: 'one' });
      for (const name of ['a', 'b'])
        await c.store.apply({ ...without(name), metadata: { ...c.key(name), finalizers: ['posthorn.dev/outside'] } }, { manager: 'two' });
      await c.store.delete('Route', c.key('a'));
      await c.store.apply(without('a'), { manager: 'two' });
      await expectCode(c.store.get('Route', c.key('a')), 'RESOURCE_NOT_FOUND');
      const free = await c.store.apply(without('b'), { manager: 'two' });
      expect(free.metadata.finalizers ?? []).toEqual([]);
      await c.store.delete('Route', c.key('b'));
      await expectCode(c.store.get('Route', c.key('b')), 'RESOURCE_NOT_FOUND');
    });

    test('what an object owns goes with it', async () => {
      const owner = await c.store.create(c.route('owner'), { manager: 'one' });
      const reference = { apiVersion: 'posthorn.dev/v1alpha1', kind: 'Route', name: 'owner', uid: owner.metadata.uid };
      const child = c.secret('child', { a: 'YQ==' });
      await c.store.create({ ...child, metadata: { ...child.metadata, ownerReferences: [reference] } }, { manager: 'one' });
      await c.store.create(c.secret('other', { a: 'YQ==' }), { manager: 'one' });
      await c.store.delete('Route', c.key('owner'));
      await eventually(() => expectCode(c.store.getSecret(c.key('child')), 'RESOURCE_NOT_FOUND'));
      await c.store.getSecret(c.key('other'));
    });

    test('a namespace takes what is in it along, and takes nothing new', async () => {
      await c.store.create(c.route('a'), { manager: 'one' });
      await c.store.create(c.secret('s', { a: 'YQ==' }), { manager: 'one' });
      await c.store.create(c.route('held', {}, { finalizers: ['posthorn.dev/outside'] }), { manager: 'one' });
      await c.store.delete('Namespace', { name: c.namespace });
      await expectCode(c.store.create(c.route('late'), { manager: 'one' }), 'FORBIDDEN');
      await eventually(() => expectCode(c.store.get('Route', c.key('a')), 'RESOURCE_NOT_FOUND'));
      await eventually(() => expectCode(c.store.getSecret(c.key('s')), 'RESOURCE_NOT_FOUND'));
      expect((await c.store.get('Namespace', { name: c.namespace })).metadata.deletionTimestamp).toBeDefined();
      await eventually(async () => expect((await c.store.get('Route', c.key('held'))).metadata.deletionTimestamp).toBeDefined());
      await c.store.apply(c.route('held'), { manager: 'one' });
      await eventually(() => expectCode(c.store.get('Namespace', { name: c.namespace }), 'RESOURCE_NOT_FOUND'));
    });
  });
}
