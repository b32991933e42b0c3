import { isPosthornError } from '../core/errors.ts';
import type { Kind, ObjectOf } from '../resources/kinds.ts';
import type { ApplyObject, FieldManager, ResourceStore } from '../store/store.ts';

/** Messages of an apply for people. */
export interface FieldConflict {
  reason: 'FieldLeft' | 'FieldTakenOver';
  message: string;
}

const replicas = 'spec.replicas';

/**
 * Applies an object that the installation requires. If another manager, such as a person or an autoscaler, owns `spec.replicas` of a DeliveryPool, the
 * value stays. The function takes over every other field that another manager owns. `contested` lists both.
 */
export async function applyRequired<K extends Kind>(
  store: Pick<ResourceStore, 'apply'>,
  object: ApplyObject<K>,
  manager: FieldManager,
): Promise<{ made: ObjectOf<K>; fieldConflicts: FieldConflict[] }> {
  const owners = new Map<string, readonly string[]>();
  try {
    return { made: await store.apply(object, { manager, force: false }), fieldConflicts: [] };
  } catch (error) {
    if (!isPosthornError(error, 'FIELD_MANAGED')) throw error;
    for (const [field, managers] of Object.entries(error.details ?? {})) owners.set(field, managers);
  }
  const isScaled = object.kind === 'DeliveryPool' && owners.has(replicas);
  const wanted = isScaled ? withoutReplicas(object) : object;
  const made = await store.apply(wanted, { manager, force: true });
  return {
    made,
    fieldConflicts: [...owners].map(([field, managers]): FieldConflict => {
      const who = managers.map((each) => `"${each}"`).join(', ');
      return isScaled && field === replicas
        ? { reason: 'FieldLeft', message: `${field} is managed by ${who}; the value of the installation is not applied` }
        : { reason: 'FieldTakenOver', message: `${field} was changed by ${who}; the value of the installation is applied again` };
    }),
  };
}

function withoutReplicas<K extends Kind>(object: ApplyObject<K>): ApplyObject<K> {
  const { replicas: _, ...spec } = Object(object.spec);
  return { ...object, spec };
}
