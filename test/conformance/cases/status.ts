import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { versionOf } from '../../../src/store/store.ts';
import { condition, expectCode, type StoreContext } from '../store-context.ts';

export function statusCases(c: StoreContext): void {
  describe('status', () => {
    test('an apply of the status leaves the spec, and the other way round', async () => {
      await c.store.apply(c.route('a', { priority: 5 }), { manager: 'one' });
      const seen = await c.store.applyStatus('Route', c.key('a'), { id: 'rte_x' }, { manager: 'status' });
      expect(seen).toMatchObject({ spec: { priority: 5 }, status: { id: 'rte_x' } });
      const changed = await c.store.apply(c.route('a', { priority: 6 }), { manager: 'one' });
      expect(changed).toMatchObject({ spec: { priority: 6 }, status: { id: 'rte_x' } });
    });

    test('two managers share one list of conditions', async () => {
      await c.store.apply(c.route('a'), { manager: 'one' });
      await c.store.applyStatus('Route', c.key('a'), { conditions: [condition('Ready', 'Ok')] }, { manager: 'status' });
      const both = await c.store.applyStatus(
        'Route',
        c.key('a'),
        { conditions: [condition('Delivering', 'Healthy')] },
        { manager: 'health' },
      );
      expect(both.status?.conditions?.map((each) => each.type)).toEqual(['Ready', 'Delivering']);
      const left = await c.store.applyStatus('Route', c.key('a'), { conditions: [] }, { manager: 'status' });
      expect(left.status?.conditions?.map((each) => each.type)).toEqual(['Delivering']);
    });

    test('the same status again leaves the version', async () => {
      await c.store.apply(c.route('a'), { manager: 'one' });
      const first = await c.store.applyStatus('Route', c.key('a'), { conditions: [condition('Ready', 'Ok')] }, { manager: 'status' });
      await sleep(1100);
      const second = await c.store.applyStatus('Route', c.key('a'), { conditions: [condition('Ready', 'Ok')] }, { manager: 'status' });
      expect(versionOf(second)).toBe(versionOf(first));
    });

    test('the status of a missing object is RESOURCE_NOT_FOUND', async () => {
      await expectCode(c.store.applyStatus('Route', c.key('nothing'), { id: 'x' }, { manager: 'status' }), 'RESOURCE_NOT_FOUND');
    });

    test('a stale ifVersion is CONFLICT', async () => {
      const first = await c.store.apply(c.route('a'), { manager: 'one' });
      await c.store.apply(c.route('a', { priority: 1 }), { manager: 'one' });
      await expectCode(
        c.store.applyStatus('Route', c.key('a'), { id: 'x' }, { manager: 'status', ifVersion: versionOf(first) }),
        'CONFLICT',
      );
    });

    test('ifUid is CONFLICT when the object was recreated, and no hindrance while it is the same', async () => {
      const first = await c.store.create(c.route('a'), { manager: 'one' });
      await c.store.apply(c.route('a', { priority: 1 }), { manager: 'one' });
      await c.store.applyStatus('Route', c.key('a'), { id: 'x' }, { manager: 'status', ifUid: first.metadata.uid });
      await c.store.delete('Route', c.key('a'));
      await c.store.create(c.route('a'), { manager: 'one' });
      await expectCode(c.store.applyStatus('Route', c.key('a'), { id: 'y' }, { manager: 'status', ifUid: first.metadata.uid }), 'CONFLICT');
      expect((await c.store.get('Route', c.key('a'))).status).toBeUndefined();
    });
  });
}
