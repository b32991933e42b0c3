import { z } from 'zod';
import { description } from '../../resources/fields.ts';
import { filterCondition } from '../../resources/filter-conditions.ts';
import { kinds } from '../../resources/kinds.ts';
import { sentName, sentSlug, sentSwitch } from '../resources/record-fields.ts';
import { notificationBody } from './route-notifications.ts';

const spec = kinds.Route.spec.shape;
const circuit = spec.circuit.unwrap().shape;
const failover = spec.failover.unwrap().shape;
const expectedResponse = spec.expectedResponse.unwrap().shape;

export const idOrSlug = z.string().min(1).max(128);
const destinationIds = z.array(idOrSlug).max(100);

/** Body of create and change of a route. */
export const routeBody = z.strictObject({
  name: sentName.optional(),
  slug: sentSlug.optional(),
  description: description.nullable().optional(),
  sourceId: idOrSlug.optional().describe('Id or slug of the source. Cannot be changed.'),
  destinationIds: destinationIds
    .optional()
    .describe('Ids or slugs of the destinations. None only where there is none, because the last one was deleted.'),
  destinationId: z
    .string()
    .max(128)
    .optional()
    .describe('Id or slug of the first of destinationIds. Sent alone it takes the place of the first, and the others stay.'),
  filterId: idOrSlug.nullable().optional().describe('Id or slug of a filter; takes the place of filterConditions. null removes it.'),
  filterConditions: z
    .array(filterCondition)
    .max(50)
    .nullable()
    .optional()
    .describe('Inline conditions; take the place of filterId. null removes them.'),
  filterLogic: z.enum(['AND', 'OR']).optional().describe('For inline conditions, and OR only with them; AND when absent.'),
  transformId: idOrSlug.nullable().optional().describe('Id or slug of a transform. null removes it.'),
  schemaId: idOrSlug.nullable().optional().describe('Id or slug of a schema that payloads must meet. null removes it.'),
  priority: spec.priority.unwrap().optional(),
  failoverDestinationIds: z.array(idOrSlug).max(3).optional().describe('Tried in this order.'),
  failoverAfterAttempts: failover.afterAttempts.unwrap().optional(),
  circuitCooldownSeconds: circuit.cooldownSeconds.unwrap().optional(),
  circuitFailureThreshold: circuit.failureThreshold.unwrap().optional(),
  circuitProbeSuccessThreshold: circuit.probeSuccessThreshold.unwrap().optional(),
  expectedResponse: z
    .strictObject({ statusCodes: expectedResponse.statusCodes, bodyContains: expectedResponse.bodyContains })
    .nullable()
    .optional(),
  ...notificationBody,
  ...sentSwitch,
});
export type RouteBody = z.output<typeof routeBody>;

/** What a create takes less of. */
export const newRouteFields = {
  destinationId: idOrSlug.optional().describe('Id or slug of the first of destinationIds, or of the one destination.'),
  destinationIds: destinationIds.min(1).optional().describe('Ids or slugs of the destinations.'),
};
