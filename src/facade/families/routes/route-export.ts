import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { mapInTurns, sortInTurns } from '../../../core/in-turns.ts';
import { apiVersion } from '../../../resources/definition.ts';
import { type Call, type Operation, operation } from '../../http/operation.ts';
import { manifestOf, manifestsYaml, manyManifestsYaml } from '../../records/manifest-yaml.ts';
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
    const { objects: routes, missing } = await exported(call, 'Route', call.query.ids);
    if (call.wantsYaml) {
      const manifests = await mapInTurns(call.turn, routes, (route) => ({ object: manifestOf(route) }));
      return missingIdsComment(missing) + (await manyManifestsYaml(call, manifests));
    }
    return { ...headOf(call), ...missing, routes: await inOrder(call, await mapInTurns(call.turn, routes, routeToPortable)) };
  },
});

/** By name and content, which an import elsewhere keeps: slugs are not in the document. */
async function inOrder<Route extends { name: string }>({ turn }: Pick<Call, 'turn'>, routes: readonly Route[]): Promise<Route[]> {
  const keyed = await mapInTurns(turn, routes, (route) => ({ route, key: `${route.name}\0${canonicalJson(route)}` }));
  return (await sortInTurns(turn, keyed, (one, other) => (one.key < other.key ? -1 : 1))).map(({ route }) => route);
}
