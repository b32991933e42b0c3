import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { apiVersion } from '../../../resources/definition.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { manifestOf, manifestsYaml } from '../../records/manifest-yaml.ts';
import { documentHead, exported, exportIds, headOf, missingIdsComment, missingIdsField } from '../../records/portable.ts';
import { portableRoute, routeToPortable } from './portable-route.ts';

export const routeExportOperation: Operation = operation({
  method: 'GET',
  path: '/routes/export',
  operationId: 'exportRoutes',
  summary: 'Export routes',
  scope: 'read',
  query: z.object({ ids: exportIds.optional() }),
  answer: {
    status: 200,
    description: 'A portable document, by name.',
    schema: z.object({ ...documentHead, ...missingIdsField, routes: z.array(portableRoute).describe('The records.') }),
  },
  offersYaml: {
    description: 'Route manifests, to be kept in Git or applied with kubectl; their ids stay by annotation.',
    makeExample: () =>
      manifestsYaml([
        {
          object: {
            apiVersion,
            kind: 'Route',
            metadata: { name: 'orders', annotations: { 'posthorn.dev/id': 'rte_mzxw6ytboi4dsnrrgq3tkojqge' } },
            spec: { name: 'Orders', sourceRef: { name: 'shop' }, destinationRefs: [{ name: 'orders' }] },
          },
        },
      ]),
  },
  handle: async (call) => {
    const { objects: routes, missing } = exported(call, 'Route', call.query.ids);
    if (call.wantsYaml) return missingIdsComment(missing) + manifestsYaml(routes.map((route) => ({ object: manifestOf(route) })));
    return { ...headOf(call), ...missing, routes: inOrder(routes.map(routeToPortable)) };
  },
});

/** By name and content, which an import elsewhere keeps: slugs are not in the document. */
function inOrder<Route extends { name: string }>(routes: readonly Route[]): Route[] {
  const keyed = routes.map((route) => ({ route, key: `${route.name}\0${canonicalJson(route)}` }));
  return keyed.sort((one, other) => (one.key < other.key ? -1 : 1)).map(({ route }) => route);
}
