import { PosthornError } from '../core/errors.ts';
import type { RedisClient } from '../redis/connection.ts';
import { Script } from '../redis/script.ts';
import { redisUnavailable } from '../redis/unavailable.ts';
import { decodeCursor, encodeCursor, type Position } from './cursor.ts';
import { attemptViews, deliveryView, eventView } from './message-view.ts';
import type { AttemptView, DeliveryStatus, DeliveryView, EventStatus, EventView, MessageReader, PageQuery, ViewPage } from './messages.ts';
import { recordKey } from './record-key.ts';
import { integer, list, text } from './script-reply.ts';
import { type ShardKeys, shardKeys } from './shard-keys.ts';

const listScript = new Script(new URL('./scripts/list.lua', import.meta.url));
const readScript = new Script(new URL('./scripts/read.lua', import.meta.url));

const chunk = 100;
/** A filter that matches rarely ends its page after this many entries; the cursor leads on. */
const mostEntriesPerPage = 1000;

interface TimeRange {
  fromMs?: number;
  toMs?: number;
}

/** Throws UNAVAILABLE when Redis does not answer. */
export class RedisMessageReader implements MessageReader {
  readonly #redis: RedisClient;
  readonly #keys: ShardKeys;

  constructor({ redis, prefix, shard = 0 }: { redis: RedisClient; prefix: string; shard?: number }) {
    this.#redis = redis;
    this.#keys = shardKeys(prefix, shard);
  }

  async event(org: string, id: string): Promise<EventView | null> {
    const key = recordKey(id, this.#keys.shard);
    const reply = key === null ? null : await this.#read('e', key);
    if (key === null || reply === null) return null;
    const view = eventView(this.#keys.shard, key, reply);
    return view.org === org ? view : null;
  }

  events(org: string, filter: { sourceId?: string; status?: EventStatus } & TimeRange, page: PageQuery): Promise<ViewPage<EventView>> {
    const index = filter.sourceId === undefined ? `i:ev:${org}` : `i:${filter.sourceId}`;
    const matches = (view: EventView): boolean => view.org === org && (filter.status === undefined || view.status === filter.status);
    return this.#page(index, 'e', [org, filter.sourceId, filter.status], filter, page, (key, reply) => {
      const view = eventView(this.#keys.shard, key, reply);
      return matches(view) ? view : null;
    });
  }

  async deliveriesOfEvent(org: string, eventId: string): Promise<DeliveryView[]> {
    const key = recordKey(eventId, this.#keys.shard);
    const reply = key === null ? null : await this.#read('d', key);
    if (reply === null) return [];
    const views = list(reply)
      .slice(1)
      .map((pair) => {
        const [messageKey, view] = list(pair);
        return deliveryView(this.#keys.shard, text(messageKey), view);
      });
    return views.filter((view) => view.org === org);
  }

  async delivery(org: string, id: string): Promise<DeliveryView | null> {
    const key = recordKey(id, this.#keys.shard);
    const reply = key === null ? null : await this.#read('m', key);
    if (key === null || reply === null) return null;
    const view = deliveryView(this.#keys.shard, key, reply);
    return view.org === org ? view : null;
  }

  deliveries(
    org: string,
    filter: { routeId?: string; destinationId?: string; status?: DeliveryStatus } & TimeRange,
    page: PageQuery,
  ): Promise<ViewPage<DeliveryView>> {
    const { routeId, destinationId, status } = filter;
    const narrow = destinationId ?? routeId;
    const index = narrow !== undefined ? `i:${narrow}` : status === 'dlq' ? `i:dead:${org}` : `i:${org}`;
    const matches = (view: DeliveryView): boolean =>
      view.org === org &&
      (routeId === undefined || view.routeId === routeId) &&
      (destinationId === undefined || view.destinationId === destinationId || view.failedOverFrom === destinationId) &&
      (status === undefined || view.status === status);
    return this.#page(index, 'm', [org, routeId, destinationId, status], filter, page, (key, reply) => {
      const view = deliveryView(this.#keys.shard, key, reply);
      return matches(view) ? view : null;
    });
  }

  async attempts(org: string, deliveryId: string): Promise<AttemptView[]> {
    const key = recordKey(deliveryId, this.#keys.shard);
    if (key === null || (await this.delivery(org, deliveryId)) === null) return [];
    const [short, long] = await this.#try(
      Promise.all([this.#redis.hgetall(this.#keys.message(key)), this.#redis.hgetall(this.#keys.attempts(key))]),
    );
    return attemptViews(new Map(Object.entries(short)), new Map(Object.entries(long)));
  }

  async destinationCounters(org: string, id: string) {
    const [deliveries = 0, successes = 0, totalLatencyMs = 0, last] = await this.#counters(org, id);
    return { deliveries, successes, totalLatencyMs, lastDeliveryAtMs: last ?? null };
  }

  async routeCounters(org: string, id: string) {
    const [eventsRouted = 0, last] = await this.#counters(org, id);
    return { eventsRouted, lastEventAtMs: last ?? null };
  }

  async sourceCounters(org: string, id: string) {
    const [events = 0, last] = await this.#counters(org, id);
    return { events, lastEventAtMs: last ?? null };
  }

  async #counters(org: string, id: string): Promise<number[]> {
    const stored = await this.#try(this.#redis.hget(this.#keys.counters(org), id));
    return stored === null ? [] : stored.split(' ').map(Number);
  }

  async #page<T>(
    index: string,
    kind: 'e' | 'm',
    scopeParts: readonly (string | undefined)[],
    { fromMs = 0, toMs }: TimeRange,
    { limit, cursor }: PageQuery,
    view: (key: string, reply: unknown) => T | null,
  ): Promise<ViewPage<T>> {
    if (limit < 1 || limit > chunk) throw new PosthornError('INVALID_QUERY', `limit must be between 1 and ${chunk}`);
    const scope = JSON.stringify([kind, ...scopeParts, fromMs, toMs]);
    let position: Position = decodeCursor(cursor, scope);
    if (toMs !== undefined && toMs + 1 < position.ms) position = { ms: toMs + 1, number: 0 };
    const items: T[] = [];
    let pageEnd = position;
    for (let looked = 0; looked < mostEntriesPerPage; ) {
      const args = [index, position.ms, position.number, fromMs, chunk, kind];
      const entries = list(await this.#try(listScript.runBuffer(this.#redis, this.#keys.declared, args)));
      for (const entry of entries) {
        const [ms, number, key, reply] = list(entry);
        position = { ms: integer(ms), number: integer(number) };
        looked++;
        const item = reply === undefined ? null : view(text(key), reply);
        if (item === null) continue;
        if (items.length === limit) return { items, nextCursor: encodeCursor(pageEnd, scope) };
        items.push(item);
        pageEnd = position;
      }
      if (entries.length === 0) return { items, nextCursor: null };
    }
    return { items, nextCursor: encodeCursor(items.length === limit ? pageEnd : position, scope) };
  }

  async #read(what: 'e' | 'm' | 'd', key: string): Promise<unknown> {
    return await this.#try(readScript.runBuffer(this.#redis, this.#keys.declared, [what, key]));
  }

  async #try<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}
