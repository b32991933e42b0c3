import type { ManagedFieldsEntry } from '../../resources/metadata.ts';
import { fromFieldsV1, isWithin, pathText } from './field-set.ts';

export interface FieldOwner {
  manager: string;
  /** RFC 3339: when the manager last changed anything that it owns; absent where the store does not tell. */
  time?: string | undefined;
}

/** Who owns the field at a path in the spec, or something in it; the longest-standing first. */
export function ownersOfField(managedFields: readonly ManagedFieldsEntry[], ...fields: string[]): FieldOwner[] {
  const path = pathText(['f:spec', ...fields.map((field) => `f:${field}`)]);
  return managedFields
    .filter(({ subresource, fieldsV1 }) => subresource === undefined && [...fromFieldsV1(fieldsV1)].some((owned) => isWithin(owned, path)))
    .map(({ manager, time }) => ({ manager, time }));
}
