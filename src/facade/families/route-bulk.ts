import { z } from 'zod';
import { type Operation, operation } from '../operation.ts';
import { bulkIds, refuseForeignAmong } from '../resources/bulk.ts';
import { mapConcurrently } from '../resources/concurrently.ts';
import { exclusively } from '../resources/exclusive.ts';
import { awaitGone, awaitInForce } from '../resources/in-force.ts';
import { find, findAll } from '../resources/lookup.ts';
import { foreignOwners } from '../resources/owned-spec.ts';
import { changeSpec, deleteObject } from '../resources/write.ts';

/** API document, "Routes": pausing, resuming and deleting several at once. */
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
      schema: z.object({ success: z.literal(true), updated: z.int().min(0) }),
    },
    errors: ['FIELD_MANAGED', 'CONFLICT'],
    handle: async (call) => {
      const { ids, isActive } = call.body;
      const found = await findAll(call, 'Route', ids);
      const others = found.filter(({ spec }) => spec.enabled !== isActive);
      refuseForeignAmong(others, ({ metadata }) => foreignOwners(metadata.managedFields ?? [], 'enabled'));
      const changed = await mapConcurrently(others, async ({ metadata }) => {
        const load = () => find(call, 'Route', metadata.name);
        return (await changeSpec(call, 'Route', load, async ({ spec }) => ({ ...spec, enabled: isActive }))).after;
      });
      await Promise.all(changed.map((route) => awaitInForce(call, 'Route', route)));
      return { success: true, updated: found.length };
    },
  }),
  operation({
    method: 'DELETE',
    path: '/routes/bulk',
    operationId: 'deleteRoutes',
    summary: 'Delete routes',
    description: 'Cannot be undone. Unknown ids are skipped. When Git owns one of them, nothing is deleted.',
    scope: 'delete',
    body: z.strictObject({ ids: bulkIds }),
    requestExample: { ids: ['orders', 'invoices'] },
    answer: {
      status: 200,
      description: 'How many are deleted.',
      schema: z.object({ success: z.literal(true), deleted: z.int().min(0) }),
    },
    errors: ['FIELD_MANAGED'],
    handle: async (call) => {
      const deleted = await exclusively(call, ['Route'], async (note) => {
        const found = await findAll(call, 'Route', call.body.ids);
        refuseForeignAmong(found);
        for (const object of found) {
          await deleteObject(call, object);
          note(object, true);
        }
        return found;
      });
      await Promise.all(deleted.map((object) => awaitGone(call, 'Route', object)));
      return { success: true, deleted: deleted.length };
    },
  }),
];
