import { z } from 'zod';
import type { ObjectOf } from '../../../resources/kinds.ts';
import { type Call, type Operation, operation } from '../../http/operation.ts';
import type { ServedKind } from '../../http/services.ts';
import { findAll } from '../../records/lookup.ts';
import { WriteTransaction } from '../../records/write-transaction.ts';

/** Ids of a bulk operation. */
export const bulkIds = z.array(z.string().min(1).max(128)).min(1).max(100).describe('Ids or slugs; unknown ones are skipped.');

const deletedIds = z.strictObject({ ids: bulkIds });
const deletion = z
  .object({ success: z.literal(true).describe('It is done.'), deleted: z.int().min(0).describe('How many.') })
  .meta({ id: 'BulkDeletion' });

interface BulkDeletion<K extends ServedKind> {
  kind: K;
  /** Path of the family. */
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
    body: deletedIds,
    requestExample: { ids: ['orders', 'invoices'] },
    answer: {
      status: 200,
      description: 'How many are deleted.',
      schema: deletion,
    },
    errors: ['FIELD_MANAGED', ...(beforeDelete === undefined ? [] : (['IN_USE'] as const))],
    handle: async (call) => {
      const deleted = await WriteTransaction.run(call, { reads: ['Route'] }, async (write) => {
        const found = await findAll(call, kind, call.body.ids);
        await write.delete(found, beforeDelete);
        return found.length;
      });
      return { success: true, deleted };
    },
  });
}
