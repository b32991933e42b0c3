import {
  type Alert,
  type AlertTarget,
  type AlertType,
  alertOrganization,
  alertRetryPolicy,
  alertWithoutMessage,
  channelTarget,
  closingTarget,
  mailTarget,
  routingKeyHeader,
} from '../core/alert.ts';
import { derivedTimedId, parseTimedId } from '../core/ids.ts';
import type { NotificationChannelRecord, RouteRecord } from '../core/records.ts';
import { shardOf } from '../core/shard-of.ts';
import type { AlertSubject, ClosingIncident, DueAlert, Pager } from '../data/alerts/alert-states.ts';
import type { RedisMessageReader } from '../data/history/message-reader.ts';
import type { Circuits } from '../data/queue/circuits.ts';
import type { RegistryReader } from '../data/registry/registry.ts';
import type { NewEvent } from '../data/shard/messages.ts';

export interface AlertSources {
  registry: RegistryReader;
  messages: Pick<RedisMessageReader, 'delivery'>;
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
export function alertShard(routeId: string, shards: number): number {
  return shardOf(routeId, shards);
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
  const { decidedAtMs, isBroken } = due;
  const name = `${route.id} ${due.subject} ${due.number}`;
  return {
    ...alertParts(route.org, route.id, alert, decidedAtMs),
    id: derivedTimedId('evt_', home, decidedAtMs, name),
    headers: isBroken ? [['broken', 'true']] : [],
    targets: targets.map((target) => queued(target, { name, home, decidedAtMs })),
  };
}

function alertParts(org: string, routeId: string, alert: Alert, decidedAtMs: number): Omit<NewEvent, 'id' | 'headers' | 'targets'> {
  return {
    org: alertOrganization(org),
    sourceId: mailTarget(routeId).routeId,
    sourceSlug: 'alerts',
    receivedAtMs: decidedAtMs,
    method: 'POST',
    contentType: 'application/json',
    payload: Buffer.from(JSON.stringify(alert)),
    signatureValid: null,
    duplicateOf: null,
    invalid: [],
    filtered: [],
  };
}

function queued(
  target: AlertTarget,
  { name, home, decidedAtMs }: { name: string; home: number; decidedAtMs: number },
): NewEvent['targets'][number] {
  return {
    ...target,
    messageId: derivedTimedId('msg_', home, decidedAtMs, `${name} ${target.destinationId}`),
    shard: home,
    maxAttempts: alertRetryPolicy.maxRetries + 1,
  };
}

/** Closes an incident, with the key by which it was opened: its channel, and its route, may be gone. PagerDuty gets the id of the route alone. */
export function closingEvent(
  org: string,
  routeId: string,
  { channelId, number, decidedAtMs, routingKey }: ClosingIncident,
  home: number,
): NewEvent {
  const about = { id: routeId, name: routeId };
  const alert = alertWithoutMessage('route.recovered', { organizationId: org, about, atMs: decidedAtMs });
  const name = `${routeId} closing ${number}`;
  return {
    ...alertParts(org, routeId, alert, decidedAtMs),
    id: derivedTimedId('evt_', home, decidedAtMs, name),
    headers: [[routingKeyHeader, routingKey]],
    targets: [queued(closingTarget(channelId), { name, home, decidedAtMs })],
  };
}

/** Successes are no incidents: they do not go to PagerDuty. */
async function alertTargets(registry: RegistryReader, route: RouteRecord, type: AlertType): Promise<AlertTarget[]> {
  const channels = await alertChannels(registry, route);
  const targets = channels
    .filter(({ channel }) => !(channel.type === 'pagerduty' && type === 'delivery.succeeded'))
    .map(({ id }) => channelTarget(id));
  return (route.notifications?.emails ?? []).length > 0 ? [...targets, mailTarget(route.id)] : targets;
}

/** The channels that have the incidents of a route; none if it reports neither failures nor recoveries. */
export async function pagersOf(registry: RegistryReader, route: RouteRecord | null): Promise<Pager[]> {
  if (route?.notifications === undefined || !(route.notifications.onFailure || route.notifications.onRecovery)) return [];
  const channels = await alertChannels(registry, route);
  return channels.flatMap(({ id, channel }) => (channel.type === 'pagerduty' ? [{ channelId: id, routingKey: channel.routingKey }] : []));
}

async function alertChannels(registry: RegistryReader, { org, notifications }: RouteRecord): Promise<NotificationChannelRecord[]> {
  if (notifications === undefined) return [];
  const channelIds = notifications.channelIds ?? (await registry.channelIdsOfOrganization(org));
  const records = await Promise.all(channelIds.map((channelId) => registry.getOf(org, 'notificationChannel', channelId)));
  return records.flatMap((record) => (record?.enabled === true ? [record] : []));
}

async function alertOf({ registry, messages, circuits }: AlertSources, route: RouteRecord, due: DueAlert, type: AlertType): Promise<Alert> {
  const { destinationId, messageId, subject } = due;
  const [destination, delivery, circuit] = await Promise.all([
    registry.getOf(route.org, 'destination', destinationId),
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
