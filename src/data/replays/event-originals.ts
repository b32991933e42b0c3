import { derivedTimedId } from '../../core/ids.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { replayedEventStatuses } from '../../core/replay-statuses.ts';
import type { RedisMessageReader } from '../history/message-reader.ts';
import type { EventView } from '../shard/messages.ts';

/** One target that a route chooses today for an event that has reached none: what a replay of events counts as one original. */
export interface EventOriginal {
  eventId: string;
  routeId: string;
  destinationId: string;
  /** Of the target. */
  shard: number;
}

export interface EventTarget extends Omit<EventOriginal, 'eventId'> {
  maxAttempts: number;
}

/** An event with its payload. */
export type WholeEvent = EventView & { payload: Buffer };

/** What the routes of today say of events of the past. Rejects with UNAVAILABLE. */
export interface EventRouting {
  /** Where the routes send the event; nowhere without its source, or when its payload cannot be judged in time. */
  targets(event: WholeEvent): Promise<EventTarget[]>;
  /** Null: the route or the destination does not exist. */
  target(org: string, routeId: string, destinationId: string): Promise<{ isEnabled: boolean; maxAttempts: number } | null>;
}

export function originalId({ eventId, routeId, destinationId, shard }: EventOriginal): string {
  return [eventId, routeId, destinationId, shard].join(' ');
}

export function eventOriginal(id: string): EventOriginal {
  const [eventId = '', routeId = '', destinationId = '', shard] = id.split(' ');
  return { eventId, routeId, destinationId, shard: Number(shard) };
}

/** Returns the ids of the event and of its message by which a replay sends an original. Every process derives the same ids. */
export function copyIds(
  { identity }: Pick<ReplayRecord, 'identity'>,
  beganAtMs: number,
  original: string,
): { eventId: string; messageId: string } {
  const { shard } = eventOriginal(original);
  const name = `${identity} ${original}`;
  return { eventId: derivedTimedId('evt_', shard, beganAtMs, name), messageId: derivedTimedId('msg_', shard, beganAtMs, name) };
}

/** The event with its payload; null: one of them is gone. */
export async function wholeEvent(events: RedisMessageReader, org: string, id: string): Promise<WholeEvent | null> {
  const view = await events.event(org, id);
  if (view === null) return null;
  if (view.payload !== null) return { ...view, payload: view.payload };
  const stored = await events.payload(org, id);
  const pieces: Buffer[] = [];
  for await (const piece of stored?.pieces ?? []) {
    if (piece === null) return null;
    pieces.push(piece);
  }
  return stored === null ? null : { ...view, payload: Buffer.concat(pieces) };
}

/** Walks over events that have reached nothing and that routes of today take, newest first. */
export class EventOriginals {
  readonly #events: RedisMessageReader;
  readonly #routing: EventRouting;

  constructor({ events, routing }: { events: RedisMessageReader; routing: EventRouting }) {
    this.#events = events;
    this.#routing = routing;
  }

  /** `beforeMs`: only those that were stored before. `limit`: of the events that are looked at. */
  async page(
    { org, filter }: ReplayRecord,
    beforeMs: number,
    page: { limit: number; cursor?: string },
  ): Promise<{ originals: (EventOriginal & { createdAtMs: number })[]; next: string | null }> {
    const { ids, sourceId, fromMs, where, routeId, destinationId } = filter;
    const statuses = replayedEventStatuses.filter((status) => filter.statuses.includes(status));
    // What the replay makes is stored then or later.
    const toMs = Math.min(filter.toMs ?? beforeMs, beforeMs - 1);
    const { items, nextCursor } = await this.#events.events(org, { ids, statuses, sourceId, fromMs, toMs, where }, page);
    const originals: (EventOriginal & { createdAtMs: number })[] = [];
    for (const { id, receivedAtMs } of items) {
      const event = await wholeEvent(this.#events, org, id);
      const targets = event === null ? [] : await this.#routing.targets(event);
      for (const target of targets) {
        if (routeId !== undefined && target.routeId !== routeId) continue;
        if (destinationId !== undefined && target.destinationId !== destinationId) continue;
        originals.push({ ...target, eventId: id, createdAtMs: receivedAtMs });
      }
    }
    return { originals, next: nextCursor };
  }
}
