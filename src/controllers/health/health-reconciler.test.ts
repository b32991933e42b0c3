import { expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { storedObject } from '../../../test/support/objects.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import { idOf } from '../held-ids.ts';
import { BrokenCircuits } from './broken-circuits.ts';
import { HealthReconciler } from './health-reconciler.ts';

test('a circuit that closes before the cache has its open state in the status is written when the next write may be made', async () => {
  const clock = new FakeClock();
  const key = { namespace: 'acme', name: 'all' };
  const route = storedObject('Route', 'all', { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] }, 'acme');
  let cached: ObjectOf<'Route'> = route;
  const states: string[] = [];
  const circuits = new BrokenCircuits(() => false);
  const reconciler = new HealthReconciler<'Route'>({
    cache: { kind: 'Route', get: () => cached } as never,
    circuits,
    store: {
      applyStatus: async (_kind: string, _key: object, status: { circuit?: { state: string } }) => {
        states.push(status.circuit?.state ?? '');
        return {} as never;
      },
    } as never,
    clock,
    recorder: { record: () => undefined } as never,
    ownsCircuits: () => true,
    detail: async () => null,
    turn: async () => undefined,
  });
  const target = { routeId: idOf('Route', route), destinationId: 'dst_a' };
  circuits.apply({ ...target, state: 'open', atMs: 1, consecutiveFailures: 1 });
  expect(await reconciler.reconcile(key)).toEqual({});
  circuits.apply({ ...target, state: 'closed', atMs: 2, consecutiveFailures: 0 });
  expect(await reconciler.reconcile(key)).toEqual({ requeueAfterMs: 30_000 });
  cached = { ...route, status: { circuit: { state: 'open' } } } as ObjectOf<'Route'>;
  await clock.advance(30_000);
  expect(await reconciler.reconcile(key)).toEqual({});
  expect(states).toEqual(['open', 'closed']);
});
