import type { RedisClient } from '../../redis/connection.ts';
import { Circuits } from '../queue/circuits.ts';
import type { Position } from '../shard/cursor.ts';
import { failureWalk } from '../shard/failure-walk.ts';
import {
  cursorMark,
  type Listing,
  longestFillMs,
  longestSearch,
  maxGathered,
  type ReaderOptions,
  type SearchLimits,
} from '../shard/index-pages.ts';
import { failedWithin, filtersByFailureTime } from '../shard/message-conditions.ts';
import { listed, type PayloadFilter } from '../shard/message-filter.ts';
import type {
  AttemptView,
  DeliveryFilter,
  DeliveryView,
  DestinationCounters,
  EventCounters,
  EventFilter,
  EventView,
  FailedSample,
  FilterResult,
  MessageEnd,
  PageQuery,
  ScannedPage,
} from '../shard/messages.ts';
import { unpackedResults } from '../shard/packed-results.ts';
import { onePiece, PayloadChunks } from '../shard/payload-chunks.ts';
import { listPage, searchOf } from '../shard/payload-search.ts';
import { homeShard, recordKey, recordLocation } from '../shard/record-key.ts';
import { list, text } from '../shard/script-reply.ts';
import { type IndexEntry, ShardReader } from '../shard/shard-reader.ts';
import { CounterReader } from './counters.ts';
import { type DeliveryReading, deliveryReading, isShownFirst, meetsDeliveryFilter } from './delivery-listing.ts';
import { meetsEventFilter } from './event-listing.ts';
import { EventLists } from './event-lists.ts';
import { failedSamples } from './failed-samples.ts';
import { fewMessages } from './few-messages.ts';
import { hasHistory } from './known-ids.ts';
import { homeLocation, type LocatedDelivery, type LocatedEvent, LocatedRecords } from './located-records.ts';
import { attemptViews, deliveryView, eventView } from './message-view.ts';
import { openCircuitWalk } from './open-circuits.ts';

/** Shown with an event (`read.lua`). */
const maxDeliveriesOfEvent = 1000;

/** Events and deliveries for the facade. All lists are newest first. Throws UNAVAILABLE when Redis does not answer. */
export class RedisMessageReader {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: () => number;
  readonly #fillMs: number;
  readonly #searchLimits: SearchLimits;
  readonly #chunks: PayloadChunks;
  readonly #circuits: Circuits;
  readonly #readers = new Map<number, ShardReader>();
  readonly #records = new LocatedRecords((shard) => this.#in(shard));
  readonly #eventLists: EventLists;
  readonly #counters = new CounterReader(() => this.#all());

  /** `shards`: how many there are; `fillMs`, `search`: for how long a page is filled. */
  constructor({ redis, prefix, shards = () => 1, fillMs = longestFillMs, search = longestSearch }: ReaderOptions) {
    this.#fillMs = fillMs;
    this.#searchLimits = search;
    this.#redis = redis;
    this.#chunks = new PayloadChunks({ redis, prefix });
    this.#circuits = new Circuits({ redis, prefix, shards });
    this.#prefix = prefix;
    this.#shards = shards;
    this.#eventLists = new EventLists({
      shards: () => this.#all(),
      records: this.#records,
      meets: (org, filter, { view, shard }) => this.#meets(org, filter, view, shard),
    });
  }

  async event(org: string, id: string): Promise<EventView | null> {
    const place = recordLocation(id);
    if (place === null) return null;
    const { shard, key } = place;
    const reply = await this.#in(shard).event(key);
    if (reply === null) return null;
    const [event] = await this.#records.events(shard, [{ key, reply }]);
    return event?.org === org ? event : null;
  }

  /** The payload in pieces. It keeps none of them. A null piece means that the rest is gone. */
  async payload(org: string, id: string): Promise<{ size: number; pieces: AsyncIterable<Buffer | null> } | null> {
    const place = recordLocation(id);
    const reply = place && (await this.#in(place.shard).event(place.key));
    if (place === null || reply === null) return null;
    const { view, chunks } = eventView(place.shard, place.key, reply);
    if (view.org !== org) return null;
    const pieces = chunks === null ? onePiece(view.payload) : this.#chunks.stream(place.shard, chunks);
    return { size: view.size, pieces };
  }

  async events(org: string, filter: EventFilter, page: PageQuery): Promise<ScannedPage<EventView>> {
    const { ids } = filter;
    const gathered = ids === undefined ? null : await this.#gatheredEvents(org, ids, filter);
    const listing = await this.#eventLists.listing(org, filter, page.cursor);
    const search = this.#search<EventView>(org, filter, page, ({ id }) => id);
    return await listPage(this.#all(), listing, filter, page, { gathered, search, fillMs: this.#fillMs });
  }

  async #gatheredEvents(org: string, ids: readonly string[], filter: EventFilter): Promise<LocatedEvent[]> {
    const { delivery } = filter;
    const found = (await this.#records.locatedEvents(ids)).filter(({ item }) => meetsEventFilter(org, filter, item));
    if (delivery === undefined) return found;
    const deliveries = await Promise.all(found.map(({ item }) => this.deliveriesOfEvent(org, item.id, delivery)));
    return found.filter((_, i) => deliveries[i]?.length !== 0);
  }

  /** Bytes of the payloads of those of the events that there are, by id. */
  async payloadSizes(ids: readonly string[]): Promise<Map<string, number>> {
    const places = [...new Set(ids)].flatMap((id) => {
      const place = recordLocation(id);
      return place === null ? [] : [{ id, ...place }];
    });
    const sizes = await Promise.all(
      [...Map.groupBy(places, ({ shard }) => shard)].map(async ([shard, group]) => {
        const found = await this.#in(shard).payloadSizes(group.map(({ key }) => key));
        return group.flatMap(({ id }, i) => (found[i] == null ? [] : [[id, found[i]] as const]));
      }),
    );
    return new Map(sizes.flat());
  }

  /** Matches among the first 1,000 deliveries of an event. */
  async deliveriesOfEvent(org: string, eventId: string, filter: Omit<DeliveryFilter, 'where'> = {}): Promise<DeliveryView[]> {
    const all = await this.#deliveriesOfEvent(org, eventId);
    const judged = await Promise.all(all.map(async (view) => ((await this.#meets(org, filter, view)) ? view : null)));
    return judged.filter((view) => view !== null);
  }

  async #deliveriesOfEvent(org: string, eventId: string): Promise<DeliveryView[]> {
    const place = recordLocation(eventId);
    if (place === null) return [];
    const { shard, key } = place;
    const reply = await this.#in(shard).eventWithMessages(key);
    if (reply === null) return [];
    const [event, ...pairs] = list(reply);
    const here = pairs.map((pair) => {
      const [messageKey, view] = list(pair);
      return deliveryView(shard, text(messageKey), view);
    });
    const places = eventView(shard, key, event).elsewhere;
    const elsewhere = await this.#records.deliveries(places.slice(0, maxDeliveriesOfEvent));
    const found = new Map(here.map(({ view }) => [view.id, view]));
    for (const { id, view } of elsewhere.values()) found.set(id, view);
    return [...found.values()].filter((view) => view.org === org).slice(0, maxDeliveriesOfEvent);
  }

  /** All routes whose filter the event has not met, in order of evaluation. */
  async filterResults(org: string, eventId: string): Promise<FilterResult[]> {
    const place = recordLocation(eventId);
    const reply = place && (await this.#in(place.shard).filterResults(place.key));
    if (reply === null) return [];
    const [owner, results] = list(reply);
    return text(owner) === org ? unpackedResults(eventId, text(results)) : [];
  }

  async delivery(org: string, id: string): Promise<DeliveryView | null> {
    return (await this.#delivery(org, id))?.view ?? null;
  }

  /** The deliveries that there are, each with the shard where it is now. */
  async located(org: string, ids: readonly string[]): Promise<Map<string, { shard: number; view: DeliveryView }>> {
    const places = ids.flatMap((id) => homeLocation(id) ?? []);
    return new Map([...(await this.#records.deliveries(places))].filter(([, { view }]) => view.org === org));
  }

  async deliveries(org: string, filter: DeliveryFilter, page: PageQuery): Promise<ScannedPage<DeliveryView>> {
    const reading = deliveryReading(org, filter);
    const { index, conditions, besides, scope, range } = reading;
    const { fromMs: _from, toMs: _to, ...besidesTimes } = filter;
    // The range, in the stamps of the index.
    const judged = filter.destinationId === undefined ? filter : besidesTimes;
    const views = async ({ shard }: ShardReader, entries: readonly IndexEntry[], walked: string) => {
      const found = await this.#records.resolved(shard, entries);
      return await Promise.all(
        found.map(async (each) => {
          if (each === null || isShownFirst(filter, each.view, walked)) return null;
          return (await this.#meets(org, judged, each.view, each.shard)) ? each.view : null;
        }),
      );
    };
    const listing: Listing<DeliveryView> = { index, kind: 'm', conditions, scope, views, besides };
    const gathered = await this.#gathered(org, filter, reading);
    const search = this.#search<DeliveryView>(org, filter, page, ({ eventId }) => eventId);
    const walk = gathered === null ? await this.#shortWalk(org, listing, reading, page.cursor) : undefined;
    return await listPage(this.#all(), { ...listing, ...walk }, range, page, { gathered, search, fillMs: this.#fillMs });
  }

  /** Undefined: the list is read from its index. */
  async #shortWalk(
    org: string,
    listing: Listing<DeliveryView>,
    { range, hasFailed, hasBatchMembers, waitsForCircuits }: DeliveryReading,
    cursor: string | undefined,
  ): Promise<Partial<Listing<DeliveryView>> | undefined> {
    if (waitsForCircuits) return await openCircuitWalk(this.#circuits, listing, { org, mark: cursorMark(listing, range, cursor) });
    if (!hasFailed) return undefined;
    const mark = cursorMark(listing, range, cursor);
    return await failureWalk(this.#all(), { org, index: listing.index, hasBatchMembers, mark });
  }

  #search<T>(org: string, { where }: PayloadFilter, page: PageQuery, eventOf: (item: T) => string) {
    return searchOf<T>(where, { org, ...page }, { eventOf, readerOf: (shard) => this.#in(shard), limits: this.#searchLimits });
  }

  /** Whether the filter lets a delivery pass; `shard`: where it is now, if that is known. */
  async #meets(org: string, filter: DeliveryFilter, view: DeliveryView, shard?: number): Promise<boolean> {
    if (!meetsDeliveryFilter(org, filter, view)) return false;
    if (!filtersByFailureTime(filter)) return true;
    if (view.attempts === 0) return false;
    const attempts = shard === undefined ? await this.attempts(org, view.id) : await this.#attempts(view.id, shard);
    return failedWithin(filter, attempts);
  }

  /** All deliveries of a list, each with its position, if they are certainly few without a walk; else null. */
  async #gathered(
    org: string,
    filter: DeliveryFilter,
    { isWaiting }: { isWaiting: boolean },
  ): Promise<{ at: Position; item: DeliveryView }[] | null> {
    const { ids, routeId, destinationId } = filter;
    const narrow = listed(destinationId ?? routeId);
    const places =
      ids !== undefined
        ? ids.flatMap((id) => homeLocation(id) ?? [])
        : isWaiting
          ? await fewMessages(this.#all(), (shard) => shard.waiting(org, narrow, maxGathered))
          : null;
    if (places === null) return null;
    const found = [...(await this.#records.deliveries(places)).values()];
    const judged = await Promise.all(found.map(({ view, shard }) => this.#meets(org, filter, view, shard)));
    return found
      .filter((_, i) => judged[i] === true)
      .map(({ id, view, number }) => ({ at: { ms: view.createdAtMs, shard: homeShard(id) ?? 0, number }, item: view }));
  }

  /** Whether there is an event of a source or event type, or a delivery of a route, application, destination or endpoint, in the organization. */
  hasHistory(org: string, id: string, of: 'events' | 'deliveries'): Promise<boolean> {
    return hasHistory(this.#all(), { org, id, of });
  }

  async attempts(org: string, deliveryId: string): Promise<AttemptView[]> {
    const found = await this.#delivery(org, deliveryId);
    return found === null ? [] : await this.#attempts(deliveryId, found.shard);
  }

  async #attempts(deliveryId: string, shard: number): Promise<AttemptView[]> {
    const key = recordKey(deliveryId, shard);
    return key === null ? [] : attemptViews(...(await this.#in(shard).attempts(key)));
  }

  /** The newest failed messages of a route, with at most `payloadBytes` of each payload. */
  failedSamples(org: string, routeId: string, options: { limit: number; payloadBytes: number }): Promise<FailedSample[]> {
    return failedSamples(this.#all(), { org, routeId, ...options });
  }

  destinationCounters(org: string, id: string): Promise<DestinationCounters> {
    return this.#counters.destination(org, id);
  }

  /** Counts the events of a source, or those that a route has taken. */
  eventCounters(org: string, id: string): Promise<EventCounters> {
    return this.#counters.events(org, id);
  }

  async #delivery(org: string, id: string): Promise<LocatedDelivery | null> {
    const place = homeLocation(id);
    const found = place === null ? undefined : (await this.#records.deliveries([place])).get(id);
    return found?.view.org === org ? found : null;
  }

  /** How those of the messages have ended that are not under way any more, by id; null: the message is gone. */
  ends(ids: readonly string[]): Promise<Map<string, MessageEnd | null>> {
    return this.#records.ends(ids);
  }

  #all(): ShardReader[] {
    return Array.from({ length: this.#shards() }, (_, shard) => this.#in(shard));
  }

  #in(shard: number): ShardReader {
    const known = this.#readers.get(shard) ?? new ShardReader(this.#redis, this.#prefix, shard);
    this.#readers.set(shard, known);
    return known;
  }
}
