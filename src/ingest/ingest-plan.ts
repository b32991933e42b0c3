import { AddressList } from '../core/address-list.ts';
import { PosthornError } from '../core/errors.ts';
import { type CompiledFilter, compileFilter, filterFingerprint, metByNone } from '../core/filter-evaluation.ts';
import type { Logger } from '../core/logger.ts';
import { loopTurns } from '../core/loop-turns.ts';
import type { Verifier } from '../core/providers/descriptor.ts';
import type { DestinationRecord, FilterDefinition, RouteRecord, SourceRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import type { RegistryReader } from '../data/registry/registry.ts';
import type { NewEvent } from '../data/shard/messages.ts';
import { type Deduplication, deduplication } from './deduplication.ts';
import { type QueryHandshake, queryHandshake } from './query-handshake.ts';
import { sourceVerifier } from './source-verifier.ts';

/** Where the events of a source go. */
export interface RoutingPlan {
  source: SourceRecord;
  /** Higher priority first; disabled ones too, because their events are accepted and held. */
  routes: PlannedRoute[];
  /** Schemas of the routes, each once. `jsonSchema` null: it is deleted while a route still names it. */
  schemas: { id: string; jsonSchema: string | null }[];
}

/** Everything that ingest does for a source, worked out once per change of its configuration. */
export interface IngestPlan extends RoutingPlan {
  /** Null: the source has no secret, so signatures are not checked. */
  verify: Verifier | null;
  /** Null: any address may send. */
  mayReceiveFrom: ((address: string) => boolean) | null;
  /** Null: the source detects no duplicates. */
  dedup: Deduplication | null;
  /** Null: the source has no handshake but that of its provider. */
  handshake: QueryHandshake | null;
}

export interface PlannedRoute {
  id: string;
  /** Null: every event. */
  filter: CompiledFilter | null;
  /** Fingerprint of the filter; null: there is none, or it does not compile. */
  rule: string | null;
  /** Definition of the filter; null: every event, or it does not compile. */
  definition: FilterDefinition | null;
  /** Null: any payload. */
  schemaId: string | null;
  /** Where an event counts as failed that breaks the schema, for the alerts of the route; undefined: it has none. */
  failedFor: string | undefined;
  targets: PlannedTarget[];
}

/** Where messages of a route go. */
export interface PlannedTarget extends Omit<NewEvent['targets'][number], 'messageId' | 'notBeforeMs' | 'expiresAtMs'> {
  /** Absent: they do not expire. */
  expiresAfterSeconds?: number;
}

export interface RoutingServices {
  registry: RegistryReader;
  logger: Logger;
}

export interface PlanServices extends RoutingServices {
  keyring: Keyring;
}

/** The default number of retries and the first attempt. */
const attemptsOfUnknownDestination = 11;

/** The plan of `/ingest/{orgSlug}/{sourceSlug}`. Throws NOT_FOUND, UNAVAILABLE, or SigningSecretsUnreadable when no secret opens. */
export function ingestPlan(services: PlanServices, orgSlug: string, sourceSlug: string): Promise<IngestPlan> {
  const { registry, keyring, logger } = services;
  return registry.derive(`ingest:${orgSlug}/${sourceSlug}`, async () => {
    const { value: routing, dependsOn } = await makeRouting(services, orgSlug, sourceSlug);
    const { source } = routing;
    const value: IngestPlan = {
      ...routing,
      verify: sourceVerifier(source, keyring, logger),
      mayReceiveFrom: addressFilter(source),
      dedup: deduplication(source),
      handshake: queryHandshake(source, keyring, logger),
    };
    return { value, dependsOn };
  });
}

/** Whether an address may send to the source; null when every one may. */
function addressFilter({ ipFilter }: SourceRecord): ((address: string) => boolean) | null {
  if (ipFilter === undefined) return null;
  const allowed = ipFilter.allow === null ? null : new AddressList(ipFilter.allow);
  const denied = new AddressList(ipFilter.deny);
  return (address) => (allowed === null || allowed.has(address)) && !denied.has(address);
}

/** The routes of `/ingest/{orgSlug}/{sourceSlug}`; needs no secret of the source. Throws NOT_FOUND or UNAVAILABLE. */
export function routingPlan(services: RoutingServices, orgSlug: string, sourceSlug: string): Promise<RoutingPlan> {
  return services.registry.derive(`routing:${orgSlug}/${sourceSlug}`, () => makeRouting(services, orgSlug, sourceSlug));
}

async function makeRouting(
  { registry, logger }: RoutingServices,
  orgSlug: string,
  sourceSlug: string,
): Promise<{ value: RoutingPlan; dependsOn: string[] }> {
  const sourceId = await registry.sourceIdBySlug(orgSlug, sourceSlug);
  const source = sourceId === null ? null : await registry.get('source', sourceId);
  if (source?.orgSlug !== orgSlug) throw new PosthornError('NOT_FOUND', 'There is no such source');
  const { org } = source;
  const routeIds = await registry.routeIdsOfSource(source.id);
  const records = await Promise.all(routeIds.map((id) => registry.getOf(org, 'route', id)));
  const routes = records
    .filter((route) => route !== null)
    .sort((one, other) => other.priority - one.priority || (one.id < other.id ? -1 : 1));
  const destinationIds = [...new Set(routes.flatMap((route) => route.destinations.map(({ id }) => id)))];
  const destinations = await Promise.all(destinationIds.map((id) => registry.getOf(org, 'destination', id)));
  const known = new Map<string, Pick<PlannedTarget, 'maxAttempts' | 'expiresAfterSeconds'>>();
  for (const destination of destinations) {
    if (destination === null) continue;
    const { expiresAfterSeconds } = destination;
    known.set(destination.id, { maxAttempts: attemptsAt(destination), ...(expiresAfterSeconds !== undefined && { expiresAfterSeconds }) });
  }
  const schemaIds = [...new Set(routes.flatMap(({ schemaId }) => (schemaId === undefined ? [] : [schemaId])))];
  const schemas = await Promise.all(schemaIds.map((id) => registry.getOf(org, 'payloadSchema', id)));
  const filters = await loopTurns.of(org).run(compiledInPieces(routes, logger));
  return {
    value: {
      source,
      routes: routes.map((route, i) => ({
        id: route.id,
        filter: filters[i]?.filter ?? null,
        rule: filters[i]?.rule ?? null,
        definition: route.filter,
        schemaId: route.schemaId ?? null,
        failedFor: route.notifications === undefined ? undefined : route.destinations[0]?.id,
        targets: route.destinations.map(({ id, shard }) => ({
          routeId: route.id,
          destinationId: id,
          shard,
          // A destination that is not there (yet) is the delivery's affair: nothing is lost here for it.
          ...(known.get(id) ?? { maxAttempts: attemptsOfUnknownDestination }),
        })),
      })),
      schemas: schemaIds.map((id, i) => ({ id, jsonSchema: schemas[i]?.jsonSchema ?? null })),
    },
    dependsOn: [
      `source-slug:${orgSlug}/${sourceSlug}`,
      `source:${source.id}`,
      `routes-of:${source.id}`,
      ...routeIds.map((id) => `route:${id}`),
      ...destinationIds.map((id) => `destination:${id}`),
      ...schemaIds.map((id) => `payloadSchema:${id}`),
    ],
  };
}

/** The first attempt at a destination and the retries. */
export function attemptsAt({ retryPolicy }: Pick<DestinationRecord, 'retryPolicy'>): number {
  return retryPolicy.maxRetries + 1;
}

/** The filters of the routes, in their order: the patterns of one filter take up to 75 ms. */
function* compiledInPieces(routes: readonly RouteRecord[], logger: Logger): Generator<undefined, Pick<PlannedRoute, 'filter' | 'rule'>[]> {
  const filters: Pick<PlannedRoute, 'filter' | 'rule'>[] = [];
  for (const route of routes) {
    const filter = routeFilter(route, logger);
    filters.push({ filter, rule: route.filter === null || filter === metByNone ? null : filterFingerprint(route.filter) });
    yield;
  }
  return filters;
}

/** A filter that does not compile (the controller publishes none such) lets nothing through; its events are recorded as filtered. */
function routeFilter(route: RouteRecord, logger: Logger): CompiledFilter | null {
  if (route.filter === null) return null;
  try {
    return compileFilter(route.filter);
  } catch (error) {
    logger.error({ err: error, routeId: route.id }, 'the filter of a route does not compile');
    return metByNone;
  }
}
