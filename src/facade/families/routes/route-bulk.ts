import { z } from 'zod';
import { type Operation, operation } from '../../http/operation.ts';
import { findAll } from '../../records/lookup.ts';
import { WriteTransaction } from '../../records/write-transaction.ts';
import { bulkDelete, bulkIds } from '../shared/bulk-delete.ts';

/** Pausing, resuming and deleting several routes at once. */
export const routeBulkOperations: readonly Operation[] = [
  operation({
    method: 'PATCH',
    path: '/routes/bulk',
    operationId: 'updateRoutes',
    summary: 'Pause or resume routes',
    description: 'Unknown ids are skipped. When Git owns the flag of one of them, nothing is changed.',
    scope: 'write',
    body: z.strictObject({ ids: bulkIds, isActive: z.boolean().describe('false pauses, true resumes.') }),
    requestExample: { ids: ['orders', 'invoices'], isActive: false },
    answer: {
      status: 200,
      description: 'How many have the requested state.',
      schema: z.object({
        success: z.literal(true).describe('It is done.'),
        updated: z.int().min(0).describe('How many have the state now.'),
      }),
    },
    errors: ['FIELD_MANAGED', 'CONFLICT'],
    handle: async (call) => {
      const { ids, isActive } = call.body;
      const updated = await WriteTransaction.run(call, { reads: [] }, async (write) => {
        const routes = await findAll(call, 'Route', ids);
        await write.enable(routes, isActive);
        return routes.length;
      });
      return { success: true, updated };
    },
  }),
  bulkDelete({
    kind: 'Route',
    path: '/routes',
    noun: 'routes',
    description: 'Cannot be undone. Unknown ids are skipped. When Git owns one of them, nothing is deleted.',
  }),
];
