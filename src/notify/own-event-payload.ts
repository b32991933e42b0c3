import { z } from 'zod';
import { hopOf } from '../core/hops.ts';
import { derivedTimedId } from '../core/ids.ts';
import type { OwnEvent } from '../core/own-event.ts';
import { parsePlainJson } from '../core/plain-json.ts';
import { organizationOfWebhooks } from '../core/webhook.ts';
import type { OwnEntry } from '../data/alerts/alert-states.ts';
import type { RedisMessageReader } from '../data/history/message-reader.ts';
import { makesOwnEvents } from '../data/registry/own-sources.ts';
import type { RegistryReader } from '../data/registry/registry.ts';
import type { DeliveryView, EventView } from '../data/shard/messages.ts';
import { publicReason } from '../data/webhooks/webhook-message-view.ts';

/** Payload of one of Posthorn's own events (docs/sources.md). */
interface OwnPayload {
  type: string;
  occurredAt: string;
  /** Id of the organization. */
  organization: string;
  /** How many events of the same kind were left out before this one, because there were too many in a minute. */
  omitted: number;
  data: Record<string, unknown>;
}

const ownData = z.record(z.string(), z.unknown());
const isoDateTime = z.iso.datetime();

export interface OwnEventSources {
  registry: RegistryReader;
  messages: Pick<RedisMessageReader, 'delivery' | 'events'>;
}

/** Where an entry was read. */
export interface LogPosition {
  shard: number;
  marker: string;
}

/** The events that an entry of the log becomes, one for each source of its organization; none for a kind that only a later release has. Throws UNAVAILABLE. */
export async function ownEvents(sources: OwnEventSources, { shard, marker }: LogPosition, entry: OwnEntry): Promise<OwnEvent[]> {
  const org = organizationOfWebhooks(entry.org) ?? entry.org;
  const sourceIds = await sources.registry.ownSourceIdsOfOrganization(org);
  if (sourceIds.length === 0 || !(await isWanted(sources.registry, org, entry))) return [];
  const telling = await tellingOf(sources, org, entry);
  if (telling === null) return [];
  const { type, data, hop = 0, occurrence } = telling;
  const { atMs, name } = occurrence ?? { atMs: entry.atMs, name: `${marker} ${shard} ${entry.entry}` };
  const content: OwnPayload = { type, occurredAt: isoTime(atMs), organization: org, omitted: entry.omitted, data };
  const payload = Buffer.from(JSON.stringify(content));
  return sourceIds.map((sourceId) => {
    const id = derivedTimedId('evt_', shard, atMs, `${name} ${sourceId}`);
    return { org, sourceId, id, atMs, hop, payload };
  });
}

/**
 * Workers decide this when they configure a target; of one that none has configured it is decided here. Such entries have
 * 20 of their own in a minute: one that is not wanted takes none of those of others (`own-events.lua`).
 */
async function isWanted(registry: RegistryReader, org: string, { org: orgOfTarget, routeId, isUnknown }: OwnEntry): Promise<boolean> {
  const isEndpoint = orgOfTarget !== org;
  if (!isUnknown || isEndpoint) return true;
  const route = await registry.getOf(org, 'route', routeId);
  return route !== null && (await makesOwnEvents(registry, route.sourceId));
}

interface Telling extends Pick<OwnPayload, 'type' | 'data'> {
  hop?: number;
  /** What may be recorded more than once: its time, and its name. Absent: the entry is the occurrence. */
  occurrence?: { atMs: number; name: string };
}

async function tellingOf(sources: OwnEventSources, org: string, entry: OwnEntry): Promise<Telling | null> {
  const isEndpoint = entry.org !== org;
  const target = isEndpoint
    ? { applicationId: entry.routeId, endpointId: entry.destinationId }
    : { routeId: entry.routeId, destinationId: entry.destinationId };
  switch (entry.kind) {
    case 'opened':
    case 'closed':
      return {
        type: `${isEndpoint ? 'endpoint' : 'destination'}.circuit_${entry.kind}`,
        data: target,
        hop: await hopsOfEntry(sources, entry),
      };
    case 'disabled':
      return { type: 'endpoint.disabled', data: { ...target, reason: entry.reason }, hop: await hopsOfEntry(sources, entry) };
    case 'disabling': {
      const [percent, failingSinceMs, disabledAtMs] = entry.reason.split(' ').map(Number);
      const data = { ...target, percent, failingSince: isoTime(failingSinceMs), disabledAt: isoTime(disabledAtMs) };
      return { type: 'endpoint.disabling', data, hop: await hopsOfEntry(sources, entry) };
    }
    case 'replayFinished':
      return occurred('replay.finished', entry, { noun: 'replay', timeField: 'completedAt' });
    case 'quotaReached':
      return { type: 'quota.reached', data: ownData.parse(parsePlainJson(entry.reason)) };
    case 'secretRotated':
      return occurred('secret.rotated', entry, { noun: 'secret', timeField: 'rotatedAt' });
    case 'dead':
      return await deadLetter(sources, entry, { target, isEndpoint });
    case null:
      return null;
    default:
      return entry.kind satisfies never;
  }
}

/** An occurrence in an organization that may be recorded more than once. `timeField`: the field of its data with the time at which it happened. */
function occurred(
  type: string,
  { org, destinationId, reason, hop }: OwnEntry,
  { noun, timeField }: { noun: string; timeField: string },
): Telling {
  const data = ownData.parse(parsePlainJson(reason));
  const atMs = Date.parse(isoDateTime.parse(data[timeField]));
  return { type, data, hop, occurrence: { atMs, name: `${noun} ${org} ${destinationId}` } };
}

/** An event about something that was removed meanwhile has fewer fields. */
async function deadLetter(
  sources: OwnEventSources,
  entry: OwnEntry,
  { target, isEndpoint }: { target: object; isEndpoint: boolean },
): Promise<Telling> {
  const delivery = await deliveryOf(sources, entry);
  const event = delivery === null ? null : await eventOf(sources, delivery);
  return {
    type: 'message.dead_lettered',
    data: {
      messageId: entry.messageId,
      eventId: event?.webhook?.partOf ?? delivery?.eventId ?? null,
      ...target,
      reason: isEndpoint ? publicReason(entry.reason) : entry.reason,
      attempts: delivery?.attempts ?? null,
      responseStatus: delivery?.lastResponseStatus ?? null,
      errorType: delivery?.lastErrorType ?? null,
      errorMessage: delivery?.lastErrorMessage ?? null,
    },
    hop: hopsOfEvent(event),
  };
}

/** The message that an entry is about, or whose attempt has caused it; null: there is none, or it was removed meanwhile. */
async function deliveryOf({ messages }: OwnEventSources, { org, messageId }: OwnEntry): Promise<DeliveryView | null> {
  return messageId === null ? null : await messages.delivery(org, messageId);
}

async function hopsOfEntry(sources: OwnEventSources, entry: OwnEntry): Promise<number> {
  const delivery = await deliveryOf(sources, entry);
  return delivery === null ? 0 : hopsOfEvent(await eventOf(sources, delivery));
}

/** Null: it was removed meanwhile. */
async function eventOf({ messages }: OwnEventSources, { org, eventId }: DeliveryView): Promise<EventView | null> {
  // A list does not load the payload.
  return (await messages.events(org, { ids: [eventId] }, { limit: 1 })).items[0] ?? null;
}

function hopsOfEvent(event: EventView | null): number {
  return hopOf(event?.headers ?? []) ?? 0;
}

function isoTime(ms: number | undefined): string {
  return new Date(ms ?? 0).toISOString();
}
