import { Gauge, type Registry } from 'prom-client';
import { type ConfigurationKind, configurationKinds, type ObjectOf } from '../resources/kinds.ts';
import type { CacheByKind } from '../store/reflected-caches.ts';
import { disabledReason } from './disabled.ts';

const states = ['ready', 'not_ready', 'disabled'] as const;
type ObjectState = (typeof states)[number];

/** Counts the objects of the caches by their condition Ready while `isLeading` returns true. */
export function objectMetric(registry: Registry, of: { caches: CacheByKind<ConfigurationKind>; isLeading(): boolean } | null): void {
  new Gauge({
    name: 'posthorn_objects',
    help: `Custom resources by kind and by their condition Ready: ${states.join(', ')}. The leader reports them.`,
    labelNames: ['kind', 'state'],
    registers: [registry],
    collect() {
      this.reset();
      if (of?.isLeading() !== true) return;
      for (const kind of configurationKinds) {
        const counts: Record<ObjectState, number> = { ready: 0, not_ready: 0, disabled: 0 };
        for (const object of of.caches[kind].list()) counts[stateOf(object)]++;
        for (const state of states) this.set({ kind, state }, counts[state]);
      }
    },
  });
}

function stateOf({ status }: ObjectOf<ConfigurationKind>): ObjectState {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.reason === disabledReason) return 'disabled';
  return ready?.status === 'True' ? 'ready' : 'not_ready';
}
