import { z } from 'zod';
import { kinds, type PosthornObject } from '../../../resources/kinds.ts';
import type { Call, Family } from '../../http/operation.ts';
import { pageQuery } from '../../http/pagination.ts';
import { queryBoolean, querySearch } from '../../http/query.ts';
import type { ServedKind } from '../../http/services.ts';
import { filterObject } from '../../records/filter-ids.ts';
import { byName, idOf, resolve } from '../../records/lookup.ts';
import {
  identityOf,
  idOrSlug,
  isoTimeOrNull,
  nameOf,
  recordIdentity,
  recordSwitch,
  recordTimes,
  related,
  shownDescription,
  switchOf,
  switchSynonym,
  timesOf,
  timestamp,
} from '../../records/record-fields.ts';
import { resourceFamily } from '../../records/resource-family.ts';
import { matchesText } from '../../records/search.ts';
import { shownField } from '../../records/spec-field.ts';
import { newRouteFields, routeBody, routeSettings } from './route-body.ts';
import { routeBulkOperations } from './route-bulk.ts';
import { circuitStatusOf, routeCircuitOperations } from './route-circuit.ts';
import { routeExportOperation } from './route-export.ts';
import { routeFailedSamples } from './route-failures.ts';
import { routeImportOperation } from './route-import.ts';
import { notificationRecord, notificationsToRecord } from './route-notifications.ts';
import { kindsReadByRouteWrites, routeToSpec } from './route-spec.ts';

const spec = kinds.Route.spec.shape;
const failover = spec.failover.unwrap().shape;
const circuitDefaults = spec.circuit.unwrap().parse({});

const item = z
  .object({
    ...recordIdentity,
    sourceId: z.string().describe('Id of the source.'),
    destinationIds: z.array(z.string()).describe('Ids of the destinations.'),
    destinationId: z.string().describe('The first of destinationIds; empty where there is none.'),
    ...recordSwitch(spec.enabled),
    eventsRouted: z.int().min(0).describe('Events that its filter has let through.'),
    lastEventAt: timestamp.nullable().describe('When an event last came through; null before the first.'),
    source: related.describe('The source.'),
    destinations: z.array(related).describe('The destinations.'),
    description: shownDescription,
    filterId: z.string().nullable().describe('Id of the filter; null without one.'),
    ...routeSettings.shape,
    transformId: z.string().nullable().describe('Id of the transform; null without one.'),
    schemaId: z.string().nullable().describe('Id of the schema that payloads must meet; null without one.'),
    priority: shownField(spec.priority),
    failoverDestinationIds: z.array(z.string()).describe('Ids of the failover destinations, in their order.'),
    failoverAfterAttempts: shownField(failover.afterAttempts),
    filter: related.nullable().describe('The filter; null without one.'),
    transform: related.nullable().describe('The transform; null without one.'),
    schema: related.nullable().describe('The schema; null without one.'),
    ...notificationRecord,
    ...recordTimes,
  })
  .meta({ id: 'RouteItem' });

const record = item
  .extend({ circuitState: z.enum(['closed', 'open', 'half_open']).describe('The worst of its destinations.') })
  .meta({ id: 'Route' });

const family = resourceFamily(
  {
    kind: 'Route',
    name: 'Routes',
    path: '/routes',
    description: 'Which events of a source go to which destinations.',
    record,
    item,
    body: routeBody,
    required: ['name', 'sourceId', 'destinationIds'],
    standIns: { destinationIds: 'destinationId' },
    synonyms: {
      isActive: switchSynonym(),
      destinationId: {
        of: 'destinationIds',
        shownFor: ([first = '']: string[]) => first,
        meant: async (sent: string, [, ...others]: string[] = [], call) => {
          if (sent === '') return [];
          const object = await resolve(call, 'Destination', sent);
          const first = object === null ? sent : idOf(object);
          return [first, ...others.filter((other) => other !== first)];
        },
        agrees: async ([first = ''], sent, call) => {
          const [one, other] = await Promise.all([resolve(call, 'Destination', first), resolve(call, 'Destination', sent)]);
          return one !== null && other !== null && idOf(one) === idOf(other);
        },
        current: async ({ spec: { destinationRefs } }, call) => (await expandedAll(call, destinationRefs)).map(({ id }) => id),
      },
    },
    onCreate: newRouteFields,
    immutable: {
      slug: (object) => [object.metadata.name],
      sourceId: async (object, call) => [(await expanded(call, 'Source', object.spec.sourceRef.name)).id, object.spec.sourceRef.name],
    },
    query: z.object({
      ...pageQuery,
      enabled: queryBoolean.optional().describe('Only those that are enabled, or not.'),
      search: querySearch.optional().describe('Part of the name or slug.'),
      sourceId: idOrSlug.optional().describe('Only of this source.'),
      destinationId: idOrSlug.optional().describe('Only to this destination.'),
    }),
    examples: {
      create: {
        name: 'Pushes to the shop',
        sourceId: 'github',
        destinationIds: ['orders'],
        filterConditions: [{ field: 'headers.X-GitHub-Event', operator: 'equals', value: 'push' }],
      },
      change: { enabled: false },
      shown: {
        slug: 'pushes-to-the-shop',
        sourceId: 'src_mzxw6ytboi4dsnrrgq3tkojqge',
        source: { id: 'src_mzxw6ytboi4dsnrrgq3tkojqge', name: 'GitHub' },
        destinationIds: ['dst_mzxw6ytboi4dsnrrgq3tkojqge'],
        destinationId: 'dst_mzxw6ytboi4dsnrrgq3tkojqge',
        description: null,
        filterId: null,
        transformId: null,
        schemaId: null,
        failoverDestinationIds: [],
        failoverAfterAttempts: failover.afterAttempts.parse(undefined),
        circuitCooldownSeconds: circuitDefaults.cooldownSeconds,
        circuitFailureThreshold: circuitDefaults.failureThreshold,
        circuitProbeSuccessThreshold: circuitDefaults.probeSuccessThreshold,
        message: 'The circuit is closed.',
      },
    },
    errors: { create: ['INVALID_SOURCE', 'DUPLICATE_ROUTE'], change: ['INVALID_SOURCE', 'DUPLICATE_ROUTE'] },
    filter: async ({ enabled, search, sourceId, destinationId }, call) => {
      const source = await filterObject(call, 'Source', sourceId);
      const destination = await filterObject(call, 'Destination', destinationId);
      return (object) =>
        (enabled === undefined || object.spec.enabled === enabled) &&
        (sourceId === undefined || object.spec.sourceRef.name === source?.metadata.name) &&
        (destinationId === undefined || object.spec.destinationRefs.some((ref) => ref.name === destination?.metadata.name)) &&
        matchesText(search, object.spec.name, object.metadata.name);
    },
    toItem,
    toRecord,
    toSpec: ({ call, body: sent, current }) => routeToSpec(call, sent, current),
    writesRead: kindsReadByRouteWrites,
  },
  [...routeBulkOperations, routeExportOperation, routeImportOperation, ...routeCircuitOperations, routeFailedSamples],
);

export const routes: Family = { ...family, common: [routeSettings] };

async function toItem(object: PosthornObject<'Route'>, call: Call): Promise<z.input<typeof item>> {
  const { filter: inline, filterRef, failover: failoverSpec, circuit: circuitSpec = circuitDefaults } = object.spec;
  const [source, destinations, counters, filter, transform, schema, failoverDestinations, notifications] = await Promise.all([
    expanded(call, 'Source', object.spec.sourceRef.name),
    expandedAll(call, object.spec.destinationRefs),
    call.services.messages.eventCounters(call.caller.organization.id, idOf(object)),
    expandedOrNull(call, 'Filter', filterRef),
    expandedOrNull(call, 'Transform', object.spec.transformRef),
    expandedOrNull(call, 'PayloadSchema', object.spec.schemaRef),
    expandedAll(call, failoverSpec?.destinationRefs ?? []),
    notificationsToRecord(object.spec.notifications, call),
  ]);
  return {
    ...identityOf(object, call),
    sourceId: source.id,
    destinationIds: destinations.map(({ id }) => id),
    destinationId: destinations[0]?.id ?? '',
    ...switchOf(object),
    eventsRouted: counters.events,
    lastEventAt: isoTimeOrNull(counters.lastEventAtMs),
    source,
    destinations,
    description: object.spec.description ?? null,
    filterId: filter?.id ?? null,
    filterConditions: inline?.conditions ?? null,
    filterLogic: inline?.logic ?? 'AND',
    transformId: transform?.id ?? null,
    schemaId: schema?.id ?? null,
    priority: object.spec.priority,
    failoverDestinationIds: failoverDestinations.map(({ id }) => id),
    failoverAfterAttempts: failoverSpec?.afterAttempts ?? failover.afterAttempts.parse(undefined),
    circuitCooldownSeconds: circuitSpec.cooldownSeconds,
    circuitFailureThreshold: circuitSpec.failureThreshold,
    circuitProbeSuccessThreshold: circuitSpec.probeSuccessThreshold,
    expectedResponse: object.spec.expectedResponse ?? null,
    filter,
    transform,
    schema,
    ...notifications,
    ...timesOf(object),
  };
}

async function toRecord(object: PosthornObject<'Route'>, call: Call): Promise<z.input<typeof record>> {
  return { ...(await toItem(object, call)), circuitState: (await circuitStatusOf(object, call)).circuitState };
}

function expandedAll(call: Call, refs: readonly { name: string }[]): Promise<z.input<typeof related>[]> {
  return Promise.all(refs.map(({ name }) => expanded(call, 'Destination', name)));
}

async function expandedOrNull(
  call: Call,
  kind: 'Filter' | 'Transform' | 'PayloadSchema',
  reference: { name: string } | undefined,
): Promise<z.input<typeof related> | null> {
  return reference === undefined ? null : expanded(call, kind, reference.name);
}

/** Id and name behind a reference; for a dangling one both are its slug. */
async function expanded(call: Call, kind: Exclude<ServedKind, 'Route' | 'ApiKey'>, name: string): Promise<z.input<typeof related>> {
  const object = await byName(call, kind, name);
  return object === null ? { id: name, name } : { id: idOf(object), name: nameOf(object) };
}
