import type { Condition, ObjectMeta } from '../resources/metadata.ts';
import { ownersOfField } from '../store/objects/field-owners.ts';

/** Reason of the condition Ready of a programmed object with `spec.enabled: false`. */
export const disabledReason = 'Disabled';

/** Whether the object is not to be enabled. */
export function isDisabled(object: object): boolean {
  return (
    'spec' in object && typeof object.spec === 'object' && object.spec !== null && 'enabled' in object.spec && object.spec.enabled === false
  );
}

/**
 * Reports who disabled an object and when, by its managedFields, such as `disabled by kubectl-edit at 2026-01-31T12:00:00Z`. The time of an entry is that
 * of the last change of its manager: a manager that the object's condition Ready names already keeps the time in it.
 */
export function disabledBy({
  metadata,
  status,
}: {
  metadata: ObjectMeta;
  status?: { conditions?: Condition[] | undefined } | undefined;
}): string {
  const message = status?.conditions?.find(({ type, reason }) => type === 'Ready' && reason === disabledReason)?.message ?? '';
  const owners = ownersOfField(metadata.managedFields ?? [], 'enabled').map(({ manager, time }) => {
    const since = timeAfter(message, `${manager} at `) ?? time;
    return since === undefined ? manager : `${manager} at ${since}`;
  });
  return owners.length === 0 ? 'disabled' : `disabled by ${owners.join(' and ')}`;
}

function timeAfter(text: string, words: string): string | undefined {
  const from = text.indexOf(words);
  return from < 0 ? undefined : /^\d{4}-\d\d-\d\dT[\d:.]+Z/.exec(text.slice(from + words.length))?.[0];
}
