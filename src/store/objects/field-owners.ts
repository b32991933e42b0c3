import type { ManagedFieldsEntry } from '../../resources/metadata.ts';
import { fromFieldsV1, isWithin, pathText } from './field-set.ts';

export interface FieldOwner {
  manager: string;
  /** RFC 3339: the last change of anything that the manager owns; absent where the store lacks it. */
  time?: string | undefined;
}

/** Owners of the field at a path in the spec, or of something in it; the longest-standing first. */
export function ownersOfField(managedFields: readonly ManagedFieldsEntry[], ...fields: string[]): FieldOwner[] {
  return ownersAt(managedFields, ['spec', ...fields]);
}

/** As `ownersOfField`, of a field at a path in the object. */
export function ownersAt(managedFields: readonly ManagedFieldsEntry[], fields: readonly string[]): FieldOwner[] {
  const path = pathText(fields.map((field) => `f:${field}`));
  return managedFields
    .filter(({ subresource, fieldsV1 }) => subresource === undefined && [...fromFieldsV1(fieldsV1)].some((owned) => isWithin(owned, path)))
    .map(({ manager, time }) => ({ manager, time }));
}
