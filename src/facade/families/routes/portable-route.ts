import { z } from 'zod';
import { kinds, type PosthornObject } from '../../../resources/kinds.ts';
import { routeNotifications } from '../../../resources/route-notifications.ts';
import type { ServedKind } from '../../http/services.ts';
import { nameOf, sentName, shownDescription } from '../../records/record-fields.ts';
import { type RouteBody, routeBody, routeSettings } from './route-body.ts';
import { notificationBody } from './route-notifications.ts';

const spec = kinds.Route.spec.shape;
const defaults = {
  failoverAfterAttempts: spec.failover.unwrap().shape.afterAttempts.parse(undefined),
  circuit: spec.circuit.unwrap().parse({}),
  notifications: routeNotifications.parse({}),
};
const slug = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'must be a slug');

/** A route in a portable document, which refers to sources, destinations and others by slug: ids differ between installations. */
export const portableRoute = z
  .object({
    name: sentName,
    description: shownDescription,
    sourceSlug: slug.describe('Slug of the source.'),
    destinationSlug: slug.nullable().describe('The first of destinationSlugs.'),
    destinationSlugs: z.array(slug).max(100).describe('Slugs of the destinations.'),
    filterSlug: slug.nullable().describe('Slug of the filter; null without one.'),
    transformSlug: slug.nullable().describe('Slug of the transform; null without one.'),
    schemaSlug: slug.nullable().describe('Slug of the schema; null without one.'),
    ...routeSettings.shape,
    priority: z.int().describe('Higher values run first.'),
    isActive: z.boolean().describe('Whether it is enabled.'),
    notifyEmails: z.string().nullable().describe('E-mail addresses, separated by commas; null without any.'),
    notificationChannelSlugs: z.array(slug).nullable().describe('null: all channels that are enabled.'),
    failoverDestinationSlugs: z.array(slug).describe('Slugs of the failover destinations, in their order.'),
    failoverAfterAttempts: z.int().describe('Failed attempts after which the first failover destination is tried.'),
  })
  .meta({ id: 'PortableRoute' });

const { shape } = routeBody;
const { notificationChannelIds: _, ...notifications } = notificationBody;

/** Further fields of reads of a route, which an import ignores as other writes do. */
export const routeReadOnlyFields = [
  'id',
  'organizationId',
  'circuitState',
  'createdAt',
  'destinations',
  'eventsRouted',
  'filter',
  'lastEventAt',
  'schema',
  'source',
  'transform',
  'updatedAt',
] as const;
const ignored = z.unknown().optional().meta({ readOnly: true, description: 'Ignored.' });

/** The same for an import, bounded as the body of a route, all but name, source and destinations optional. */
export const importedRoute = z
  .strictObject({
    ...Object.fromEntries(routeReadOnlyFields.map((field) => [field, ignored])),
    ...portableRoute.partial().shape,
    name: sentName,
    description: shape.description,
    sourceSlug: slug.describe('Slug of the source.'),
    filterConditions: shape.filterConditions,
    priority: shape.priority,
    ...notifications,
    failoverDestinationSlugs: z.array(slug).max(3).optional().describe('Slugs of the failover destinations, in their order.'),
    failoverAfterAttempts: shape.failoverAfterAttempts,
    circuitCooldownSeconds: shape.circuitCooldownSeconds,
    circuitFailureThreshold: shape.circuitFailureThreshold,
    circuitProbeSuccessThreshold: shape.circuitProbeSuccessThreshold,
    expectedResponse: shape.expectedResponse,
  })
  .superRefine(({ destinationSlug, destinationSlugs }, context) => {
    const issue = (field: string, message: string): void => context.addIssue({ code: 'custom', path: [field], message });
    if (destinationSlug === undefined && destinationSlugs === undefined) issue('destinationSlugs', 'is required');
    // Who has edited one of them alone would find the route with the other.
    if (destinationSlug !== undefined && destinationSlugs !== undefined && (destinationSlugs[0] ?? null) !== destinationSlug)
      issue('destinationSlug', 'must be the first of destinationSlugs, or left out');
  })
  .meta({ anyOf: [{ required: ['destinationSlug'] }, { required: ['destinationSlugs'] }] });
export type ImportedRoute = z.output<typeof importedRoute>;

export function routeToPortable(object: PosthornObject<'Route'>): z.input<typeof portableRoute> {
  const { description, sourceRef, destinationRefs, filterRef, filter, transformRef, schemaRef, priority, enabled } = object.spec;
  const { expectedResponse, failover } = object.spec;
  const { circuit = defaults.circuit, notifications = defaults.notifications } = object.spec;
  const destinationSlugs = destinationRefs.map(({ name }) => name);
  return {
    name: nameOf(object),
    description: description ?? null,
    sourceSlug: sourceRef.name,
    destinationSlug: destinationSlugs[0] ?? null,
    destinationSlugs,
    filterSlug: filterRef?.name ?? null,
    transformSlug: transformRef?.name ?? null,
    schemaSlug: schemaRef?.name ?? null,
    filterConditions: filter?.conditions ?? null,
    filterLogic: filter?.logic ?? 'AND',
    priority,
    isActive: enabled,
    notifyOnFailure: notifications.onFailure,
    notifyOnSuccess: notifications.onSuccess,
    notifyOnRecovery: notifications.onRecovery,
    notifyEmails: notifications.emails === undefined || notifications.emails.length === 0 ? null : notifications.emails.join(','),
    notificationChannelSlugs: notifications.channelRefs?.map(({ name }) => name) ?? null,
    failureThreshold: notifications.failureThreshold,
    failoverDestinationSlugs: (failover?.destinationRefs ?? []).map(({ name }) => name),
    failoverAfterAttempts: failover?.afterAttempts ?? defaults.failoverAfterAttempts,
    circuitCooldownSeconds: circuit.cooldownSeconds,
    circuitFailureThreshold: circuit.failureThreshold,
    circuitProbeSuccessThreshold: circuit.probeSuccessThreshold,
    expectedResponse: expectedResponse ?? null,
  };
}

/** References of the record. */
export function referencesOf(record: ImportedRoute): { kind: ServedKind; noun: string; slug: string }[] {
  const optional = (kind: ServedKind, noun: string, value: string | null | undefined) =>
    value === undefined || value === null ? [] : [{ kind, noun, slug: value }];
  return [
    { kind: 'Source', noun: 'source', slug: record.sourceSlug },
    ...[...destinationSlugsOf(record), ...(record.failoverDestinationSlugs ?? [])].map((each) => ({
      kind: 'Destination' as const,
      noun: 'destination',
      slug: each,
    })),
    ...optional('Filter', 'filter', record.filterSlug),
    ...optional('Transform', 'transform', record.transformSlug),
    ...optional('PayloadSchema', 'schema', record.schemaSlug),
    ...(record.notificationChannelSlugs ?? []).map((each) => ({
      kind: 'NotificationChannel' as const,
      noun: 'notification channel',
      slug: each,
    })),
  ];
}

/** The body that makes the route of the record; omitted fields have their defaults. */
export function bodyOf(record: ImportedRoute): RouteBody {
  return {
    name: record.name,
    description: record.description ?? null,
    sourceId: record.sourceSlug,
    destinationIds: destinationSlugsOf(record),
    filterId: record.filterSlug ?? null,
    filterConditions: record.filterConditions ?? null,
    filterLogic: record.filterLogic ?? 'AND',
    transformId: record.transformSlug ?? null,
    schemaId: record.schemaSlug ?? null,
    priority: record.priority ?? 0,
    enabled: record.isActive ?? true,
    notifyOnFailure: record.notifyOnFailure ?? false,
    notifyOnSuccess: record.notifyOnSuccess ?? false,
    notifyOnRecovery: record.notifyOnRecovery ?? false,
    notifyEmails: record.notifyEmails ?? null,
    notificationChannelIds: record.notificationChannelSlugs ?? null,
    failureThreshold: record.failureThreshold ?? defaults.notifications.failureThreshold,
    failoverDestinationIds: record.failoverDestinationSlugs ?? [],
    failoverAfterAttempts: record.failoverAfterAttempts ?? defaults.failoverAfterAttempts,
    circuitCooldownSeconds: record.circuitCooldownSeconds ?? defaults.circuit.cooldownSeconds,
    circuitFailureThreshold: record.circuitFailureThreshold ?? defaults.circuit.failureThreshold,
    circuitProbeSuccessThreshold: record.circuitProbeSuccessThreshold ?? defaults.circuit.probeSuccessThreshold,
    expectedResponse: record.expectedResponse ?? null,
  };
}

function destinationSlugsOf({ destinationSlug, destinationSlugs }: ImportedRoute): string[] {
  return destinationSlugs ?? (destinationSlug === undefined || destinationSlug === null ? [] : [destinationSlug]);
}
