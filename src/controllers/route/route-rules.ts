import type { Refusal } from '../../compile/compiled.ts';
import { destinationRefusal, isServing } from '../../compile/destination.ts';
import { compileFilterDefinition } from '../../compile/filter.ts';
import type { OrganizationFacts } from '../../compile/organization.ts';
import { compileRoute, type RouteTarget } from '../../compile/route.ts';
import { mailDomainProblem } from '../../core/mail-domains.ts';
import type { FilterDefinition } from '../../core/records.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, referenced } from '../references.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import type { ShardDirectory } from '../shard-directory.ts';
import type { RouteCode } from './route-code.ts';

type Filtering =
  | { filter: FilterDefinition | null; refusal?: undefined; unresolved?: undefined }
  | { filter?: undefined; refusal?: Refusal; unresolved?: Refusal };

/**
 * A route needs its source, its filter, its transform and its schema: without one of them what was published stays in force. Destinations that are
 * missing are left out, so that the others go on being served; so are failover destinations that are disabled or suspended.
 */
export function routeRules(
  caches: ControllerCaches,
  shards: ShardDirectory,
  code: RouteCode,
  mailDomains: readonly string[],
): ResourceRules<'Route'> {
  return {
    kind: 'Route',
    evaluate: async (object, organization) => {
      const { spec } = object;
      const { namespace } = organization;
      const { filter, ...obstacle } = filteringOf(object, caches);
      if (filter === undefined) return obstacle;
      const source = referenced(caches, caches.Source, { namespace, name: spec.sourceRef.name });
      if (source === undefined)
        return { unresolved: { reason: 'SourceNotFound', message: `Source ${spec.sourceRef.name} does not exist` } };

      const transform = await code.transform(object, organization);
      if (transform.unresolved !== undefined) return { unresolved: transform.unresolved };
      const schema = await code.schema(object, organization);
      if (schema.unresolved !== undefined) return { unresolved: schema.unresolved };

      const destinations = await resolveTargets(organization, spec.destinationRefs, caches, shards);
      const failover = await resolveTargets(organization, spec.failover?.destinationRefs ?? [], caches, shards);
      const channels = resolveChannels(namespace, spec.notifications?.channelRefs, caches);
      const record = compileRoute(object, {
        organization,
        sourceId: idOf('Source', source),
        filter,
        transformId: transform.id,
        schemaId: schema.id,
        destinations: destinations.targets.map(({ id, shard }) => ({ id, shard })),
        failoverDestinations: failover.targets,
        channelIds: channels.ids,
      });
      const unresolved = complaintAbout([...destinations.missing, ...failover.missing], [...destinations.refused, ...failover.refused]);
      if (unresolved !== null) return { record, unresolved };
      if (spec.destinationRefs.length === 0)
        return { record, unresolved: { reason: 'NoDestinations', message: 'spec.destinationRefs is empty' } };
      if (channels.missing.length > 0)
        return {
          record,
          unresolved: { reason: 'ChannelNotFound', message: `NotificationChannels that do not exist: ${channels.missing.join(', ')}` },
        };
      // The others of its addresses get the alerts.
      const mailProblem = mailDomainProblem(spec.notifications?.emails ?? [], mailDomains);
      if (mailProblem !== null)
        return { record, unresolved: { reason: 'AddressNotAllowed', message: `spec.notifications.emails: ${mailProblem}` } };
      return { record };
    },
  };
}

function filteringOf({ metadata: { namespace }, spec }: PosthornObject<'Route'>, caches: ControllerCaches): Filtering {
  if (spec.filter !== undefined) {
    const { record, refusal } = compileFilterDefinition(spec.filter);
    return refusal === undefined ? { filter: record } : { refusal };
  }
  if (spec.filterRef === undefined) return { filter: null };
  const { name } = spec.filterRef;
  const filter = referenced(caches, caches.Filter, { name, ...(namespace === undefined ? {} : { namespace }) });
  if (filter === undefined) return { unresolved: { reason: 'FilterNotFound', message: `Filter ${name} does not exist` } };
  const { record, refusal } = compileFilterDefinition(filter.spec);
  if (refusal !== undefined) return { unresolved: { reason: 'FilterNotAccepted', message: `Filter ${name}: ${refusal.message}` } };
  return { filter: record };
}

async function resolveTargets(
  { namespace, plan }: OrganizationFacts,
  references: readonly { name: string }[],
  caches: ControllerCaches,
  shards: ShardDirectory,
): Promise<{ targets: (RouteTarget & { isServing: boolean })[]; missing: string[]; refused: string[] }> {
  const targets: (RouteTarget & { isServing: boolean })[] = [];
  const missing: string[] = [];
  const refused: string[] = [];
  for (const { name } of references) {
    const destination = referenced(caches, caches.Destination, { namespace, name });
    if (destination === undefined) missing.push(name);
    else if (destinationRefusal(destination.spec) !== null) refused.push(name);
    else {
      const id = idOf('Destination', destination);
      targets.push({ id, shard: await shards.of(id), isServing: isServing(destination.spec, plan) });
    }
  }
  return { targets, missing, refused };
}

/** Without a list: null. Those that are missing are left out, so that the others get the alerts. */
function resolveChannels(
  namespace: string,
  references: readonly { name: string }[] | undefined,
  caches: ControllerCaches,
): { ids: string[] | null; missing: string[] } {
  if (references === undefined) return { ids: null, missing: [] };
  const found = references.map(({ name }) => ({ name, channel: referenced(caches, caches.NotificationChannel, { namespace, name }) }));
  return {
    ids: found.flatMap(({ channel }) => (channel === undefined ? [] : [idOf('NotificationChannel', channel)])),
    missing: found.filter(({ channel }) => channel === undefined).map(({ name }) => name),
  };
}

function complaintAbout(missing: string[], refused: string[]): Refusal | null {
  if (missing.length > 0)
    return { reason: 'DestinationNotFound', message: `Destinations that do not exist: ${[...new Set(missing)].join(', ')}` };
  if (refused.length > 0)
    return { reason: 'DestinationNotAccepted', message: `Destinations that are not accepted: ${[...new Set(refused)].join(', ')}` };
  return null;
}
