import { z } from 'zod';
import { description } from '../../../resources/fields.ts';
import { filterLogic } from '../../../resources/filter-conditions.ts';
import { kinds } from '../../../resources/kinds.ts';
import { idOrSlug, sentName, sentSlug, sentSwitch } from '../../records/record-fields.ts';
import { specField, textOf } from '../../records/spec-field.ts';
import { conditionField } from '../filters/filter-body.ts';
import { notificationBody, notificationRecord } from './route-notifications.ts';

const spec = kinds.Route.spec.shape;
const circuit = spec.circuit.unwrap().shape;
const failover = spec.failover.unwrap().shape;
const expectedResponse = spec.expectedResponse.unwrap().shape;

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
    .describe('Id or slug of the first of destinationIds. Sent alone it replaces the first, and the others stay.'),
  filterId: idOrSlug.nullable().optional().describe('Id or slug of a filter; replaces filterConditions. null removes it.'),
  filterConditions: z
    .array(conditionField)
    .max(50)
    .nullable()
    .optional()
    .describe('Inline conditions; replace filterId. null removes them.'),
  filterLogic: specField(filterLogic, 'Whether all inline conditions must hold or one. OR only with them.'),
  transformId: idOrSlug.nullable().optional().describe('Id or slug of a transform. null removes it.'),
  schemaId: idOrSlug.nullable().optional().describe('Id or slug of a schema that payloads must meet. null removes it.'),
  priority: specField(spec.priority),
  failoverDestinationIds: z
    .array(idOrSlug)
    .max(3)
    .optional()
    .meta({ description: 'Ids or slugs of destinations that are tried in this order when one fails.', default: [] }),
  failoverAfterAttempts: specField(failover.afterAttempts),
  circuitCooldownSeconds: specField(circuit.cooldownSeconds),
  circuitFailureThreshold: specField(circuit.failureThreshold),
  circuitProbeSuccessThreshold: specField(circuit.probeSuccessThreshold),
  expectedResponse: z
    .strictObject({ statusCodes: expectedResponse.statusCodes, bodyContains: expectedResponse.bodyContains })
    .meta({ id: 'ExpectedResponseBody', description: 'A delivery counts as successful only with such a response.' })
    .nullable()
    .optional()
    .describe('What counts as success; null, the default: any 2xx.'),
  ...notificationBody,
  ...sentSwitch(spec.enabled),
});
export type RouteBody = z.output<typeof routeBody>;

/** What a create takes less of. */
export const newRouteFields = {
  destinationId: idOrSlug.optional().describe('Id or slug of the first of destinationIds, or of the one destination.'),
  destinationIds: destinationIds.min(1).optional().describe('Ids or slugs of the destinations; these or destinationId.'),
};

/** The settings of the circuit as records show them. */
export const circuitSettings = {
  circuitCooldownSeconds: z.int().describe(textOf(circuit.cooldownSeconds)),
  circuitFailureThreshold: z.int().describe(textOf(circuit.failureThreshold)),
  circuitProbeSuccessThreshold: z.int().describe(textOf(circuit.probeSuccessThreshold)),
};

const shownExpectedResponse = z
  .object({
    statusCodes: z.array(z.int()).optional().describe('Statuses that count as success.'),
    bodyContains: z.string().optional().describe('Text that the body must contain.'),
  })
  .meta({ id: 'ExpectedResponse', description: 'What counts as success; null: any 2xx.' });

/** Common fields of records of a route and of portable documents. */
export const routeSettings = z
  .object({
    filterConditions: z.array(conditionField).nullable().describe('Inline conditions; null without them.'),
    filterLogic: z.enum(['AND', 'OR']).describe('Whether all inline conditions must hold or one.'),
    ...circuitSettings,
    expectedResponse: shownExpectedResponse.nullable().describe('What counts as success; null: any 2xx.'),
    notifyOnFailure: notificationRecord.notifyOnFailure,
    notifyOnSuccess: notificationRecord.notifyOnSuccess,
    notifyOnRecovery: notificationRecord.notifyOnRecovery,
    failureThreshold: notificationRecord.failureThreshold,
  })
  .meta({ id: 'RouteSettings', description: 'Schema, expected response and notifications of a route.' });
