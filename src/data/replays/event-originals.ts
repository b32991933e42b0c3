import { derivedTimedId } from '../../core/ids.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { replayedEventStatuses } from '../../core/replay-statuses.ts';
import { Semaphore } from '../../core/semaphore.ts';
import type { RedisMessageReader } from '../history/message-reader.ts';
import { isAmong, type OneOrMore } from '../shard/message-filter.ts';
import type { EventView } from '../shard/messages.ts';

/** Limits of one page; a page has at least one event, with all its targets. */
const pageLimits = { originals: 100, payloadBytes: 4 * 1024 * 1024, judgingMs: 1000 };

/** Bytes of payloads of events that a worker evaluates or queues again at the same time; a larger one goes alone. */
const payloadMemoryBytes = 32 * 1024 * 1024;

/** One for all that replays events in a process. */
export function replayPayloadMemory(): Semaphore {
  return new Semaphore(payloadMemoryBytes);
}

/** One target that a route chooses today for an event that has reached none: what a replay of events counts as one original. */
export interface EventOriginal {
  eventId: string;
  routeId: string;
  destinationId: string;
  /** Shard of the target. */
  shard: number;
}

export interface EventTarget extends Omit<EventOriginal, 'eventId'> {
  maxAttempts: number;
}

/** An event with its payload. */
export type EventWithPayload = EventView & { payload: Buffer };

/** Evaluates today's routes on past events. Rejects with UNAVAILABLE. */
export interface EventRouting {
  /**
   * Where the routes of its source send the event. `routeId`: only these routes are evaluated. `read` is called only where a route may take the event; it returns null
   * for one whose payload is gone.
   */
  targets(
    event: Pick<EventView, 'org' | 'sourceId'>,
    routeId: OneOrMore | undefined,
    read: () => Promise<EventWithPayload | null>,
  ): Promise<EventTarget[]>;
  /** Null: the route does not send to the destination, or one of them does not exist. */
  target(
    org: string,
    routeId: string,
    destinationId: string,
  ): Promise<{ isEnabled: boolean; isOrdered: boolean; maxAttempts: number } | null>;
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
  createdAtMs: number,
  original: string,
): { eventId: string; messageId: string } {
  const { shard } = eventOriginal(original);
  const name = `${identity} ${original}`;
  return { eventId: derivedTimedId('evt_', shard, createdAtMs, name), messageId: derivedTimedId('msg_', shard, createdAtMs, name) };
}

/** The event with its payload; null: one of them is gone. */
export async function readEventWithPayload(events: RedisMessageReader, org: string, id: string): Promise<EventWithPayload | null> {
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

type DatedOriginal = EventOriginal & { createdAtMs: number };

/** Walks over events that have reached no route and that routes of today take, newest first. */
export class EventOriginals {
  readonly #events: RedisMessageReader;
  readonly #routing: EventRouting;
  readonly #payloadMemory: Semaphore;

  constructor({ events, routing, payloadMemory }: { events: RedisMessageReader; routing: EventRouting; payloadMemory: Semaphore }) {
    this.#events = events;
    this.#routing = routing;
    this.#payloadMemory = payloadMemory;
  }

  /** `beforeMs`: only those stored before. `limit`: of the events that are read. */
  async page(
    record: ReplayRecord,
    beforeMs: number,
    page: { limit: number; cursor?: string },
  ): Promise<{ originals: DatedOriginal[]; next: string | null }> {
    const listed = await this.#list(record, beforeMs, page);
    const evaluated = new Map<string, DatedOriginal[]>();
    const endMs = performance.now() + pageLimits.judgingMs;
    let [bytes, found] = [0, 0];
    for (const event of listed.items) {
      bytes += event.size;
      const isFull = bytes > pageLimits.payloadBytes || found >= pageLimits.originals || performance.now() > endMs;
      if (evaluated.size > 0 && isFull) break;
      const originals = await this.#originalsOf(record, event);
      evaluated.set(event.id, originals);
      found += originals.length;
    }
    // A shorter list has a cursor after its last event; it may be another list then.
    const isWhole = evaluated.size === listed.items.length;
    const { items, nextCursor } = isWhole ? listed : await this.#list(record, beforeMs, { ...page, limit: evaluated.size });
    const originals: DatedOriginal[] = [];
    for (const event of items) originals.push(...(evaluated.get(event.id) ?? (await this.#originalsOf(record, event))));
    return { originals, next: nextCursor };
  }

  async #list({ org, filter }: ReplayRecord, beforeMs: number, page: { limit: number; cursor?: string }) {
    const { ids, sourceId, fromMs, where } = filter;
    const statuses = replayedEventStatuses.filter((status) => filter.statuses.includes(status));
    // Events of the replay are stored then or later.
    const toMs = Math.min(filter.toMs ?? beforeMs, beforeMs - 1);
    return await this.#events.events(org, { ids, statuses, sourceId, fromMs, toMs, where }, page);
  }

  async #originalsOf({ org, filter }: ReplayRecord, event: EventView): Promise<DatedOriginal[]> {
    const { routeId, destinationId } = filter;
    if (event.status === 'filtered' && (await this.#hasReachedRoute(org, event.id))) return [];
    const targets = await this.#payloadMemory.run(event.size, () =>
      this.#routing.targets(event, routeId, () => readEventWithPayload(this.#events, org, event.id)),
    );
    return targets
      .filter((target) => isAmong(destinationId, target.destinationId))
      .map((target) => ({ ...target, eventId: event.id, createdAtMs: event.receivedAtMs }));
  }

  /** A transform has held back what a route took. */
  async #hasReachedRoute(org: string, id: string): Promise<boolean> {
    return (await this.#events.deliveriesOfEvent(org, id)).some((delivery) => delivery.destinationId !== null);
  }
}
