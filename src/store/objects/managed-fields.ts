import type { ManagedFieldsEntry } from '../../resources/metadata.ts';
import { type FieldSet, fromFieldsV1, toFieldsV1 } from './field-set.ts';

/** Owner of fields: one entry of `metadata.managedFields`. */
export interface Ownership {
  manager: string;
  operation: ManagedFieldsEntry['operation'];
  subresource: string | undefined;
  apiVersion: string;
  time: string | undefined;
  fields: FieldSet;
}

export function readOwnerships(entries: readonly ManagedFieldsEntry[] = []): Ownership[] {
  return entries.map(({ manager, operation, subresource, apiVersion, time, fieldsV1 }) => ({
    manager,
    operation,
    subresource,
    apiVersion,
    time,
    fields: fromFieldsV1(fieldsV1),
  }));
}

/** As the API server writes them: without those that own nothing, oldest change first. */
export function writeOwnerships(ownerships: readonly Ownership[]): ManagedFieldsEntry[] {
  return ownerships
    .filter(({ fields }) => fields.size > 0)
    .sort((a, b) => order(a.time ?? '', b.time ?? '') || order(a.manager, b.manager) || order(a.subresource ?? '', b.subresource ?? ''))
    .map(({ manager, operation, subresource, apiVersion, time, fields }) => ({
      apiVersion,
      fieldsType: 'FieldsV1',
      fieldsV1: toFieldsV1(fields),
      manager,
      operation,
      ...(subresource === undefined ? {} : { subresource }),
      ...(time === undefined ? {} : { time }),
    }));
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
