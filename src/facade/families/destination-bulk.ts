import { z } from 'zod';
import { type Operation, operation } from '../operation.ts';
import { bulkIds, refuseForeignAmong } from '../resources/bulk.ts';
import { exclusively } from '../resources/exclusive.ts';
import { awaitGone } from '../resources/in-force.ts';
import { leaveRoutes } from '../resources/leave-routes.ts';
import { findAll } from '../resources/lookup.ts';
import { deleteObject } from '../resources/write.ts';

/** API document, "Destinations": bulk delete. */
export const destinationBulkOperations: readonly Operation[] = [
  operation({
    method: 'DELETE',
    path: '/destinations/bulk',
    operationId: 'deleteDestinations',
    summary: 'Delete destinations',
    description:
      'Takes them out of all routes; their history stays. Unknown ids are skipped. When Git owns one of them, or the list of a route that names one, nothing is deleted.',
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
        const found = await findAll(call, 'Destination', call.body.ids);
        refuseForeignAmong(found);
        await leaveRoutes(found, call, note);
        for (const object of found) {
          await deleteObject(call, object);
          note(object, true);
        }
        return found;
      });
      await Promise.all(deleted.map((object) => awaitGone(call, 'Destination', object)));
      return { success: true, deleted: deleted.length };
    },
  }),
];
