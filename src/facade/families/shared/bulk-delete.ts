import { z } from 'zod';
import type { ObjectOf } from '../../../resources/kinds.ts';
import { type Call, type Operation, operation } from '../../http/operation.ts';
import type { ServedKind } from '../../http/services.ts';
import { bulkIds, refuseForeignAmong } from '../../records/bulk.ts';
import { awaitGone } from '../../records/in-force.ts';
import { refuseForeignLists } from '../../records/leave-routes.ts';
import { findAll } from '../../records/lookup.ts';
import { deleteAll } from '../../records/multi-resource-writes.ts';
import { withOrganizationLock } from '../../records/organization-lock.ts';

interface BulkDeletion<K extends ServedKind> {
  kind: K;
  /** Of the family. */
  path: string;
  /** In the plural. */
  noun: string;
  description: string;
  /** Throws what is against one of them. */
  beforeDelete?(object: ObjectOf<K>, call: Call): Promise<void>;
}

/** Deletes several records at once; all or, with FIELD_MANAGED, none. */
export function bulkDelete<K extends ServedKind>({ kind, path, noun, description, beforeDelete }: BulkDeletion<K>): Operation {
  return operation({
    method: 'DELETE',
    path: `${path}/bulk`,
    operationId: `delete${kind}s`,
    summary: `Delete ${noun}`,
    description,
    scope: 'delete',
    body: z.strictObject({ ids: bulkIds }),
    requestExample: { ids: ['orders', 'invoices'] },
    answer: {
      status: 200,
      description: 'How many are deleted.',
      schema: z.object({ success: z.literal(true).describe('It is done.'), deleted: z.int().min(0).describe('How many are deleted.') }),
    },
    errors: ['FIELD_MANAGED', ...(beforeDelete === undefined ? [] : (['IN_USE'] as const))],
    handle: async (call) => {
      const deleted = await withOrganizationLock(call, ['Route'], async (note) => {
        const found = await findAll(call, kind, call.body.ids);
        refuseForeignAmong(found);
        await refuseForeignLists(call, found);
        for (const object of found) await beforeDelete?.(object, call);
        await deleteAll(call, found, note);
        return found;
      });
      await Promise.all(deleted.map((object) => awaitGone(call, kind, object)));
      return { success: true, deleted: deleted.length };
    },
  });
}
