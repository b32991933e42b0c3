import type { Refusal } from '../../compile/compiled.ts';
import type { OrganizationFacts } from '../../compile/organization.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { listed } from '../../data/shard/message-filter.ts';
import type { KnownWebhooks } from '../../data/webhooks/known-webhooks.ts';
import { kinds, type PosthornObject } from '../../resources/kinds.ts';
import type { ControllerCaches } from '../controller-caches.ts';

/** Event types by name, and applications and endpoints by id, in the filter of a replay. They are no references to objects: the API may have made them. */

interface Names {
  eventTypes: readonly string[];
  applications: readonly string[];
  endpoints: readonly string[];
}

export function namesIn({
  eventType,
  eventTypes,
  applicationId,
  applicationIds,
  endpointId,
  endpointIds,
}: PosthornObject<'Replay'>['spec']['filter']): Names {
  return {
    eventTypes: listed(eventType ?? eventTypes),
    applications: listed(applicationId ?? applicationIds),
    endpoints: listed(endpointId ?? endpointIds),
  };
}

interface World {
  caches: Pick<ControllerCaches, 'WebhookEventType'>;
  webhooks: KnownWebhooks;
  organization: Pick<OrganizationFacts, 'id' | 'namespace'>;
}

/** A complaint about what the organization neither has nor had as long as there is history of it; null: all is known. */
export async function unknownAmong({ eventTypes, applications, endpoints }: Names, world: World): Promise<Refusal | null> {
  const types = await unknownTypes(eventTypes, world);
  if (types.length > 0) return notFound('EventType', 'event types', types);
  const { webhooks, organization } = world;
  const { id: org } = organization;
  const [ofApplications, ofEndpoints, deletedNames] = await Promise.all([
    webhooks.applicationsById(org, applications),
    webhooks.endpointsById(org, endpoints),
    webhooks.deletedNames(org, { applications, endpoints }),
  ]);
  // Without its prefix, an id may name an index that is not that of an object.
  const hasMessages = async (kind: 'WebhookApplication' | 'WebhookEndpoint', id: string): Promise<boolean> =>
    id.startsWith(kinds[kind].idPrefix) && (await webhooks.hasHistory(webhookOrganization(org), id, 'deliveries'));
  const isGone = async (kind: 'WebhookApplication' | 'WebhookEndpoint', id: string): Promise<boolean> =>
    !ofApplications.has(id) && !ofEndpoints.has(id) && !deletedNames.has(id) && !(await hasMessages(kind, id));
  const goneApplications = await those(applications, (id) => isGone('WebhookApplication', id));
  if (goneApplications.length > 0) return notFound('Application', 'applications', goneApplications);
  const goneEndpoints = await those(endpoints, (id) => isGone('WebhookEndpoint', id));
  return goneEndpoints.length > 0 ? notFound('Endpoint', 'endpoints', goneEndpoints) : null;
}

async function unknownTypes(names: readonly string[], { caches, webhooks, organization }: World): Promise<string[]> {
  if (names.length === 0) return [];
  const { id: org, namespace } = organization;
  const declared = new Set(caches.WebhookEventType.list(namespace).map(({ spec }) => spec.name));
  return await those(names, async (name) => {
    // A deleted event type is recorded as past before its record goes.
    if (declared.has(name) || (await webhooks.eventTypeIdByName(org, name)) !== null) return false;
    const deletedNames = await webhooks.deletedEventTypeIds(org, name);
    // Null: some deletions are not recorded, and this may be one of them.
    return deletedNames === null ? !(await webhooks.mayHaveEvents(org, name)) : deletedNames.length === 0;
  });
}

async function those(names: readonly string[], isWanted: (name: string) => Promise<boolean>): Promise<string[]> {
  const wanted: string[] = [];
  for (const name of names) if (await isWanted(name)) wanted.push(name);
  return wanted;
}

function notFound(what: string, plural: string, names: readonly string[]): Refusal {
  return { reason: `${what}NotFound`, message: `the filter names ${plural} that do not exist: ${names.join(', ')}` };
}
