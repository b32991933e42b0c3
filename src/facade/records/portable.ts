import { z } from 'zod';
import { sortInTurns } from '../../core/in-turns.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { cachedObjects, countCached, inCache } from './lookup.ts';
import { isoTime, timestamp } from './record-fields.ts';

/** Fields that the export documents of all families have in common. */

const documentVersion = '1.0';

export const documentHead = {
  version: z.literal(documentVersion).describe('Version of the form of the document.'),
  exportedAt: timestamp.describe('When it was made.'),
  organizationSlug: z.string().describe('Slug of the organization.'),
};

export function headOf(call: Call): { version: typeof documentVersion; exportedAt: string; organizationSlug: string } {
  return {
    version: documentVersion,
    exportedAt: isoTime(call.services.clock.now()),
    organizationSlug: call.caller.organization.slug,
  };
}

/** Most records of one import. */
export const maxImported = 1000;

/** Limit of the body of an import, which holds 1000 records of ordinary size. */
export const importBodyBytes = 8 * 1024 * 1024;

/** Fields of an import beside its records; the head of an export document may stay where it is. */
export const importFields = {
  conflictStrategy: z.enum(['skip', 'rename', 'overwrite']).describe('What happens to a record that is there already.'),
  validateOnly: z.boolean().optional().describe('true: nothing is written, the response lists what would be.'),
  version: documentHead.version.optional(),
  exportedAt: z.string().optional().describe('Of the export; ignored.'),
  organizationSlug: z.string().optional().describe('Of the export; ignored.'),
  missingIds: z.array(z.string()).optional().describe('Of the export; ignored.'),
};
export type ConflictStrategy = z.output<typeof importFields.conflictStrategy>;

const maxIdsText = 8000;
export const exportIds = z
  .string()
  .max(maxIdsText)
  .describe(
    'Ids or slugs, separated by commas; all when absent. Unknown ones are left out: missingIds names them, in manifests a comment at the top.',
  );

/** Placeholder in an export for unknown ids. */
export const missingIdsField = {
  missingIds: z.array(z.string()).optional().describe('The ids of the query that are unknown; absent when there are none.'),
};

/** Subjects of an export, by slug, and which of the ids are unknown. */
export async function exported<K extends ServedKind>(
  call: Call,
  kind: K,
  ids: string | undefined,
): Promise<{ objects: ObjectOf<K>[]; missing: { missingIds?: string[] } }> {
  if (ids === undefined) return { objects: await bySlug(call, cachedObjects(call, kind)), missing: {} };
  // UNAVAILABLE before the first complete list is in.
  countCached(call, kind);
  const wanted = [...new Set(ids.split(',').map((id) => id.trim()))].filter((id) => id !== '');
  const found = wanted.map((id) => inCache(call, kind, id));
  const objects = await bySlug(call, [...new Set(found.filter((object) => object !== undefined))]);
  const missingIds = wanted.filter((_, index) => found[index] === undefined);
  return { objects, missing: missingIds.length === 0 ? {} : { missingIds } };
}

function bySlug<K extends ServedKind>({ turn }: Call, objects: readonly ObjectOf<K>[]): Promise<ObjectOf<K>[]> {
  return sortInTurns(turn, objects, (one, other) => (one.metadata.name < other.metadata.name ? -1 : 1));
}

/** The same as the first line of manifests. */
export function missingIdsComment({ missingIds }: { missingIds?: string[] }): string {
  return missingIds === undefined ? '' : `# missingIds: ${JSON.stringify(missingIds)}\n`;
}
