import { createHash } from 'node:crypto';
import {
  type Alert,
  type AlertTarget,
  type AlertType,
  alertOrganization,
  alertRetryPolicy,
  channelTarget,
  mailTarget,
} from '../core/alert.ts';
import { derivedTimedId, parseTimedId } from '../core/ids.ts';
import type { RouteRecord } from '../core/records.ts';
import type { AlertSubject, DueAlert } from '../data/alert-states.ts';
import type { Circuits } from '../data/circuits.ts';
import type { MessageReader, NewEvent } from '../data/messages.ts';
import type { RegistryReader } from '../data/registry.ts';

export interface AlertSources {
  registry: RegistryReader;
  messages: Pick<MessageReader, 'delivery'>;
  circuits: Pick<Circuits, 'ofRoute'>;
}

const types: Record<AlertSubject, AlertType> = {
  failed: 'delivery.failed',
  succeeded: 'delivery.succeeded',
  recovered: 'route.recovered',
  opened: 'circuit.opened',
  closed: 'circuit.closed',
};

/** The shard that decides about the alerts of a route, and where they are queued. */
export function alertHome(routeId: string, shards: number): number {
  return createHash('sha256').update(routeId).digest().readUInt32BE(0) % shards;
}

/**
 * The alert as an event for the channels and addresses of the route; null when there are none. Ids are those that this alert always
 * has, so that it is stored once however often it is made. Throws UNAVAILABLE without Redis.
 */
export async function alertEvent(sources: AlertSources, route: RouteRecord, due: DueAlert, home: number): Promise<NewEvent | null> {
  const type = types[due.subject];
  const targets = await alertTargets(sources.registry, route, type);
  if (targets.length === 0) return null;
  const alert = await alertOf(sources, route, due, type);
  const name = `${route.id} ${due.subject} ${due.number}`;
  return {
    id: derivedTimedId('evt_', home, due.decidedAtMs, name),
    org: alertOrganization(route.org),
    sourceId: mailTarget(route.id).routeId,
    sourceSlug: 'alerts',
    receivedAtMs: due.decidedAtMs,
    method: 'POST',
    contentType: 'application/json',
    headers: due.isBroken ? [['broken', 'true']] : [],
    payload: Buffer.from(JSON.stringify(alert)),
    signatureValid: null,
    duplicateOf: null,
    targets: targets.map((target) => ({
      ...target,
      messageId: derivedTimedId('msg_', home, due.decidedAtMs, `${name} ${target.destinationId}`),
      shard: home,
      maxAttempts: alertRetryPolicy.maxRetries + 1,
    })),
    filtered: [],
  };
}

/** Successes are no incidents: they do not go to PagerDuty. */
async function alertTargets(registry: RegistryReader, { id, org, notifications }: RouteRecord, type: AlertType): Promise<AlertTarget[]> {
  if (notifications === undefined) return [];
  const channelIds = notifications.channelIds ?? (await registry.channelIdsOfOrganization(org));
  const records = await Promise.all(channelIds.map((channelId) => registry.get('notificationChannel', channelId)));
  const channels = records.flatMap((record) => {
    const isWanted = record?.enabled === true && record.org === org;
    return isWanted && !(record.channel.type === 'pagerduty' && type === 'delivery.succeeded') ? [channelTarget(record.id)] : [];
  });
  return notifications.emails.length > 0 ? [...channels, mailTarget(id)] : channels;
}

async function alertOf({ registry, messages, circuits }: AlertSources, route: RouteRecord, due: DueAlert, type: AlertType): Promise<Alert> {
  const { destinationId, messageId, subject } = due;
  const [destination, delivery, circuit] = await Promise.all([
    registry.get('destination', destinationId),
    messageId === null ? null : messages.delivery(route.org, messageId),
    circuits.ofRoute(route.org, route.id, [destinationId]),
  ]);
  const receivedAtMs = delivery === null ? undefined : parseTimedId(delivery.eventId)?.createdAtMs;
  return {
    type,
    organizationId: route.org,
    route: { id: route.id, name: route.name },
    destination: { id: destinationId, name: destination?.name ?? destinationId },
    circuitState: subject === 'opened' ? 'open' : subject === 'closed' ? 'closed' : (circuit[0]?.state ?? 'closed'),
    event:
      delivery === null || receivedAtMs === undefined ? null : { id: delivery.eventId, receivedAt: new Date(receivedAtMs).toISOString() },
    attempts: delivery?.attempts ?? null,
    responseStatus: delivery?.lastResponseStatus ?? null,
    errorMessage: delivery?.lastErrorMessage ?? null,
    count: due.count,
    firstAt: new Date(due.firstAtMs).toISOString(),
    lastAt: new Date(due.lastAtMs).toISOString(),
  };
}
