import { resourceId } from '../core/ids.ts';
import { type FilterDefinition, type RouteRecord, recordLayoutVersion } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { route as definition } from '../resources/route.ts';
import type { OrganizationFacts } from './organization.ts';

/** A destination that a route refers to, resolved. */
export type RouteTarget = RouteRecord['destinations'][number];

export interface RouteInputs {
  organization: OrganizationFacts;
  sourceId: string;
  /** Compiled, from the route itself or the Filter that it refers to. */
  filter: FilterDefinition | null;
  /** Null: none. */
  transformId: string | null;
  schemaId: string | null;
  destinations: RouteTarget[];
  /** Those that do not serve, because they are disabled or suspended, are left out of the record. */
  failoverDestinations: (RouteTarget & { isServing: boolean })[];
  /** Null: all of the organization. */
  channelIds: string[] | null;
}

const failoverAfterAttemptsDefault = 3;

/** A route has nothing of its own to refuse: what can be wrong is its filter (`compileFilterDefinition`) or a reference. */
export function compileRoute({ metadata, spec }: PosthornObject<'Route'>, inputs: RouteInputs): RouteRecord {
  const { statusCodes = [], bodyContains = null } = spec.expectedResponse ?? {};
  const circuit = spec.circuit ?? definition.spec.shape.circuit.unwrap().parse({});
  return {
    v: recordLayoutVersion,
    id: resourceId(definition.idPrefix, metadata),
    org: inputs.organization.id,
    slug: metadata.name,
    name: spec.name ?? metadata.name,
    sourceId: inputs.sourceId,
    priority: spec.priority,
    enabled: spec.enabled,
    filter: inputs.filter,
    ...(inputs.transformId !== null && { transformId: inputs.transformId }),
    ...(inputs.schemaId !== null && { schemaId: inputs.schemaId }),
    destinations: inputs.destinations,
    expectedResponse: spec.expectedResponse === undefined ? null : { statusCodes: [...statusCodes], bodyContains },
    failover: {
      destinations: servingTargets(inputs.failoverDestinations),
      afterAttempts: spec.failover?.afterAttempts ?? failoverAfterAttemptsDefault,
    },
    circuit: { ...circuit },
    ...notificationsOf(spec, inputs.channelIds),
    generation: metadata.generation,
  };
}

function servingTargets(targets: RouteInputs['failoverDestinations']): RouteTarget[] {
  return targets.filter(({ isServing }) => isServing).map(({ id, shard }) => ({ id, shard }));
}

/** Empty without configured alerts, so that deliveries of the route cost no more. */
function notificationsOf(
  { notifications }: PosthornObject<'Route'>['spec'],
  channelIds: string[] | null,
): Pick<RouteRecord, 'notifications'> {
  if (notifications === undefined) return {};
  const { onFailure, onSuccess, onRecovery, failureThreshold, emails = [] } = notifications;
  if (!onFailure && !onSuccess && !onRecovery) return {};
  return { notifications: { onFailure, onSuccess, onRecovery, failureThreshold, channelIds, emails: [...emails] } };
}
