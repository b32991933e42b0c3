import { isPosthornError } from '../../src/core/errors.ts';
import { allObjects, type ConfigurationSnapshot, snapshotOf } from '../support/configuration-snapshot.ts';
import type { ConfigurationWorld } from '../support/configuration-world.ts';
import { type Declared, declare, everyObjectChanged, everything, keyOf, namespace, organization } from '../support/every-kind.ts';

export const stages = ['created', 'changed', 'emptied', 'gone'] as const;
export type Lifetime = Record<(typeof stages)[number], ConfigurationSnapshot>;

/**
 * An organization with resources of every kind from its beginning to its end: the state when nothing changes any more after each stage.
 * `disturbed` is done while the controllers have something to do.
 */
export async function lifetime(
  world: ConfigurationWorld,
  disturbed: (work: () => Promise<void>, stage: (typeof stages)[number]) => Promise<void> = (work) => work(),
): Promise<Lifetime> {
  const reach = async (stage: (typeof stages)[number], write: () => Promise<void>): Promise<ConfigurationSnapshot> => {
    await disturbed(write, stage);
    await world.settle();
    // A cluster empties a namespace in its own time.
    if (stage === 'gone') await world.until(() => namespaceIsGone(world));
    return snapshotOf(world);
  };
  const declareAll = async (objects: readonly Declared[]): Promise<void> => {
    for (const object of objects) await declare(world.store, object);
  };
  world.start();
  try {
    await declare(world.store, organization());
    await world.until(() => world.store.get('Namespace', { name: namespace }));
    return {
      created: await reach('created', () => declareAll(everything)),
      changed: await reach('changed', () => declareAll(everyObjectChanged)),
      emptied: await reach('emptied', async () => {
        for (const { kind, metadata } of everything) await world.store.delete(kind, keyOf(kind, metadata.name));
      }),
      gone: await reach('gone', () => world.store.delete('Organization', { name: 'acme' })),
    };
  } finally {
    await world.stop();
  }
}

/** Status and reason of the condition Ready of each resource, after its kind and name. */
export async function readiness(world: ConfigurationWorld): Promise<string[]> {
  const objects = await allObjects(world.store);
  return objects.flatMap((object) => {
    if (object.kind === 'Namespace' || object.kind === 'Secret') return [];
    const ready = object.status?.conditions?.find(({ type }) => type === 'Ready');
    return [`${object.kind} ${object.metadata.name}: ${ready?.status} ${ready?.reason}`];
  });
}

async function namespaceIsGone({ store }: ConfigurationWorld): Promise<void> {
  const found = await store.get('Namespace', { name: namespace }).catch((error: unknown) => {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  });
  if (found !== null) throw new Error(`the namespace ${namespace} is still there`);
}
