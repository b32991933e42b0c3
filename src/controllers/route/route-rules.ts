import type { Refusal } from '../../compile/compiled.ts';
import { destinationRefusal, isServing } from '../../compile/destination.ts';
import { compileFilterDefinition } from '../../compile/filter.ts';
import type { OrganizationFacts } from '../../compile/organization.ts';
import { compileRoute, type RouteTarget } from '../../compile/route.ts';
import { mailDomainProblem } from '../../core/mail-domains.ts';
import type { FilterDefinition } from '../../core/records.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, referenced } from '../held-ids.ts';
import { referenceStateOf, type UnreadyReference } from '../reference-state.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import type { ShardDirectory } from '../shard-directory.ts';
import { contentOf } from '../shared-content.ts';
import type { RouteCode } from './route-code.ts';

type Filtering =
  | { filter: FilterDefinition | null; refusal?: undefined; unresolved?: undefined }
  | { filter?: undefined; refusal?: Refusal; unresolved?: Refusal };

/**
 * A route needs its source, its filter, its transform and its schema: without one of them what was published stays in force. Destinations and channels
 * that are missing are left out, so that the others continue to be served; so are failover destinations that do not serve.
 */
export function routeRules(
  caches: ControllerCaches,
  shards: ShardDirectory,
  code: RouteCode,
  mailDomains: readonly string[],
): ResourceRules<'Route'> {
  return {
    kind: 'Route',
    worksWithout: ({ spec }, unready) => {
      const out = unready.filter(({ state }) => state !== 'earlier');
      const outDestinations = new Set(out.filter(({ kind }) => kind === 'Destination').map(({ name }) => name));
      const isDispensable = ({ kind }: UnreadyReference): boolean => kind === 'Destination' || kind === 'NotificationChannel';
      return out.every(isDispensable) && spec.destinationRefs.some(({ name }) => !outDestinations.has(name));
    },
    evaluate: async (object, organization) => {
      const { spec } = object;
      const { namespace } = organization;
      const { filter, ...obstacle } = filteringOf(object, organization, caches);
      if (filter === undefined) return obstacle;
      const source = referenced(caches, caches.Source, { namespace, name: spec.sourceRef.name });
      if (source === undefined)
        return { unresolved: { reason: 'SourceNotFound', message: `Source ${spec.sourceRef.name} does not exist` } };

      const transform = await code.transform(object, organization);
      if (transform.unresolved !== undefined) return { unresolved: transform.unresolved };
      const schema = await code.schema(object, organization);
      if (schema.unresolved !== undefined) return { unresolved: schema.unresolved };

      const misplaced = orderedWithFailover(object, organization, caches);
      if (misplaced !== null) return { refusal: misplaced };
      const destinations = await resolveTargets(organization, spec.destinationRefs, caches, shards);
      const failover = await resolveTargets(organization, spec.failover?.destinationRefs ?? [], caches, shards);
      const record = compileRoute(object, {
        organization,
        sourceId: idOf('Source', source),
        filter,
        transformId: transform.id,
        schemaId: schema.id,
        destinations: destinations.map(({ id, shard }) => ({ id, shard })),
        failoverDestinations: failover,
        channelIds: channelIdsOf(namespace, spec.notifications?.channelRefs, caches),
      });
      if (spec.destinationRefs.length === 0)
        return { record, unresolved: { reason: 'NoDestinations', message: 'spec.destinationRefs is empty' } };
      // The others of its addresses get the alerts.
      const mailProblem = mailDomainProblem(spec.notifications?.emails ?? [], mailDomains);
      if (mailProblem === null) return { record };
      return { record, isPartial: true, unresolved: { reason: 'AddressNotAllowed', message: `spec.notifications.emails: ${mailProblem}` } };
    },
  };
}

/** Messages that move to another destination leave the order of the first, and have no position in the other's. */
function orderedWithFailover(
  { spec }: PosthornObject<'Route'>,
  { namespace }: OrganizationFacts,
  caches: ControllerCaches,
): Refusal | null {
  const later = spec.failover?.destinationRefs ?? [];
  if (later.length === 0) return null;
  const ordered = [...spec.destinationRefs, ...later].find(
    ({ name }) => referenced(caches, caches.Destination, { namespace, name })?.spec.ordered === true,
  );
  if (ordered === undefined) return null;
  return {
    reason: 'OrderedDestination',
    message: `Destination ${ordered.name} is ordered: a route with it has no spec.failover.destinationRefs`,
  };
}

function filteringOf({ spec }: PosthornObject<'Route'>, organization: OrganizationFacts, caches: ControllerCaches): Filtering {
  if (spec.filter !== undefined) {
    const { record, refusal } = compileFilterDefinition(spec.filter);
    return refusal === undefined ? { filter: record } : { refusal };
  }
  if (spec.filterRef === undefined) return { filter: null };
  const { name } = spec.filterRef;
  const filter = referenced(caches, caches.Filter, { namespace: organization.namespace, name });
  if (filter === undefined) return { unresolved: { reason: 'FilterNotFound', message: `Filter ${name} does not exist` } };
  const { content, unresolved } = contentOf(caches, filter, organization);
  if (unresolved !== undefined) return { unresolved: { reason: 'FilterNotReady', message: `Filter ${name}: ${unresolved.message}` } };
  const { record, refusal } = compileFilterDefinition(content);
  if (refusal !== undefined) return { unresolved: { reason: 'FilterNotAccepted', message: `Filter ${name}: ${refusal.message}` } };
  return { filter: record };
}

/** Those that are missing or refused are left out. */
async function resolveTargets(
  { namespace, plan }: OrganizationFacts,
  references: readonly { name: string }[],
  caches: ControllerCaches,
  shards: ShardDirectory,
): Promise<(RouteTarget & { isServing: boolean })[]> {
  const targets: (RouteTarget & { isServing: boolean })[] = [];
  for (const { name } of references) {
    const destination = referenced(caches, caches.Destination, { namespace, name });
    if (destination === undefined || destinationRefusal(destination.spec) !== null) continue;
    const id = idOf('Destination', destination);
    const serves = isServing(destination.spec, plan) && referenceStateOf(destination).state !== 'notReady';
    targets.push({ id, shard: await shards.of(id), isServing: serves });
  }
  return targets;
}

/** Without a list: null. Those that are missing are left out, so that the others get the alerts. */
function channelIdsOf(namespace: string, references: readonly { name: string }[] | undefined, caches: ControllerCaches): string[] | null {
  if (references === undefined) return null;
  return references.flatMap(({ name }) => {
    const channel = referenced(caches, caches.NotificationChannel, { namespace, name });
    return channel === undefined ? [] : [idOf('NotificationChannel', channel)];
  });
}
