import { Gauge, type Registry } from 'prom-client';
import { type ConfigurationKind, configurationKinds, type ObjectOf } from '../resources/kinds.ts';
import type { CacheByKind } from '../store/reflected-caches.ts';
import { isDisabled } from './disabled.ts';
import { suspended } from './programmed-condition.ts';

const states = ['ready', 'not_ready', 'disabled', 'ended'] as const;
type ObjectState = (typeof states)[number];

/** Reasons of what is not Ready because its time or its organization has ended, or because its plan suspends it: no action is needed. */
const ended: ReadonlySet<string> = new Set(['Expired', 'OrganizationNotFound', suspended]);

/** Counts the objects of the caches by their condition Ready while `isLeading` returns true. */
export function objectMetric(registry: Registry, of: { caches: CacheByKind<ConfigurationKind>; isLeading(): boolean } | null): void {
  new Gauge({
    name: 'posthorn_objects',
    help: 'Custom resources by kind and by their condition Ready: ready, not_ready, disabled by their spec, or ended: expired, without an organization or suspended by a plan. The leader reports them.',
    labelNames: ['kind', 'state'],
    registers: [registry],
    collect() {
      this.reset();
      if (of?.isLeading() !== true) return;
      for (const kind of configurationKinds) {
        const counts: Record<ObjectState, number> = { ready: 0, not_ready: 0, disabled: 0, ended: 0 };
        for (const object of of.caches[kind].list()) counts[stateOf(object)]++;
        for (const state of states) this.set({ kind, state }, counts[state]);
      }
    },
  });
}

function stateOf(object: ObjectOf<ConfigurationKind>): ObjectState {
  if (isDisabled(object)) return 'disabled';
  const ready = object.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'True') return 'ready';
  return ended.has(ready?.reason ?? '') ? 'ended' : 'not_ready';
}
