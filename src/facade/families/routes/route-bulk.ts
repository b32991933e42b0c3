import { z } from 'zod';
import { type Operation, operation } from '../../http/operation.ts';
import { bulkIds, refuseForeignAmong } from '../../records/bulk.ts';
import { awaitInForce } from '../../records/in-force.ts';
import { findAll } from '../../records/lookup.ts';
import { setAllEnabled } from '../../records/multi-resource-writes.ts';
import { withOrganizationLock } from '../../records/organization-lock.ts';
import { foreignOwners } from '../../records/owned-spec.ts';
import { bulkDelete } from '../shared/bulk-delete.ts';

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
      description: 'How many have the state that was asked for.',
      schema: z.object({
        success: z.literal(true).describe('It is done.'),
        updated: z.int().min(0).describe('How many have the state now.'),
      }),
    },
    errors: ['FIELD_MANAGED', 'CONFLICT'],
    handle: async (call) => {
      const { ids, isActive } = call.body;
      const { found, changed } = await withOrganizationLock(call, [], async (note) => {
        const routes = await findAll(call, 'Route', ids);
        const others = routes.filter(({ spec }) => spec.enabled !== isActive);
        refuseForeignAmong(others, ({ metadata }) => foreignOwners(metadata.managedFields ?? [], 'enabled'));
        return { found: routes, changed: await setAllEnabled(call, others, isActive, note) };
      });
      await Promise.all(changed.map((route) => awaitInForce(call, 'Route', route)));
      return { success: true, updated: found.length };
    },
  }),
  bulkDelete({
    kind: 'Route',
    path: '/routes',
    noun: 'routes',
    description: 'Cannot be undone. Unknown ids are skipped. When Git owns one of them, nothing is deleted.',
  }),
];
