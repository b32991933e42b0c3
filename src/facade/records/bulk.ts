import { z } from 'zod';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ServedKind } from '../http/services.ts';
import { fieldManaged, foreignManagers } from './owned-spec.ts';

/** Ids of a bulk operation. */
export const bulkIds = z.array(z.string().min(1).max(128)).min(1).max(100).describe('Ids or slugs; unknown ones are skipped.');

/** FIELD_MANAGED, naming every object of which another manager owns something. */
export function refuseForeignAmong(
  objects: readonly PosthornObject<ServedKind>[],
  ownersOf = ({ metadata }: PosthornObject<ServedKind>): string[] => foreignManagers(metadata.managedFields ?? []),
): void {
  const owned = objects.map((object) => [`${object.kind} "${object.metadata.name}"`, ownersOf(object)] as const);
  const foreign = owned.filter(([, managers]) => managers.length > 0);
  if (foreign.length > 0) throw fieldManaged(Object.fromEntries(foreign));
}
