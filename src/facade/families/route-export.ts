import { z } from 'zod';
import { type Operation, operation } from '../operation.ts';
import { documentHead, exported, exportIds, headOf } from '../resources/portable.ts';
import { portableRoute, routeToPortable } from './portable-route.ts';

/** API document, "Routes": export. */
export const routeExportOperation: Operation = operation({
  method: 'GET',
  path: '/routes/export',
  operationId: 'exportRoutes',
  summary: 'Export routes',
  scope: 'read',
  query: z.object({ ids: exportIds.optional() }),
  answer: {
    status: 200,
    description: 'A portable document, by slug.',
    schema: z.object({ ...documentHead, routes: z.array(portableRoute) }),
  },
  handle: async (call) => ({ ...headOf(call), routes: exported(call, 'Route', call.query.ids).map(routeToPortable) }),
});
