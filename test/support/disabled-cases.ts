import { expect } from '@jest/globals';
import { type ConfigurationKind, configurationKinds, kinds } from '../../src/resources/kinds.ts';
import type { Condition } from '../../src/resources/metadata.ts';
import type { ApplyObject, Key, ResourceStore } from '../../src/store/store.ts';
import { eventually } from './eventually.ts';
import { everything } from './every-kind.ts';

/** The kinds whose spec has the switch `enabled`. */
export const switchedKinds: readonly ConfigurationKind[] = configurationKinds.filter((kind) => 'enabled' in kinds[kind].spec.shape);

/** One of each kind and what it refers to, in a namespace. */
export function everythingIn(namespace: string): ApplyObject<ConfigurationKind | 'Secret'>[] {
  return everything.map(({ metadata: { name }, ...object }) => ({ ...object, metadata: { namespace, name } }));
}

export function firstOf(kind: ConfigurationKind): string {
  const object = everything.find((each) => each.kind === kind);
  if (object === undefined) throw new Error(`no object of kind ${kind}`);
  return object.metadata.name;
}

/** The condition Ready once the object of the present generation has it with this reason. */
export async function readyAs(store: ResourceStore, kind: ConfigurationKind, key: Key, reason: string): Promise<Condition> {
  return eventually(async () => {
    const { metadata, status } = await store.get(kind, key);
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(ready).toMatchObject({ status: 'True', reason, observedGeneration: metadata.generation });
    if (ready === undefined) throw new Error('no condition yet');
    return ready;
  });
}
