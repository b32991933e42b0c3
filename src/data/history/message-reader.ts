import type { RedisClient } from '../../redis/connection.ts';
import { newest, type Position } from '../shard/cursor.ts';
import { failureWalk } from '../shard/failure-walk.ts';
import {
  type Listing,
  longestFillMs,
  longestSearch,
  markOf,
  maxGathered,
  type ReaderOptions,
  type SearchLimits,
} from '../shard/index-pages.ts';
import { asksWhenFailed, failedWithin, filterScope } from '../shard/message-conditions.ts';
import type { PayloadFilter } from '../shard/message-filter.ts';
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
  MessageReader,
  PageQuery,
  ScannedPage,
} from '../shard/messages.ts';
import { unpackedResults } from '../shard/packed-results.ts';
import { onePiece, PayloadChunks } from '../shard/payload-chunks.ts';
import { listPage, searchOf } from '../shard/payload-search.ts';
import { homeShard, recordKey, recordPlace } from '../shard/record-key.ts';
import { list, text } from '../shard/script-reply.ts';
import { type IndexEntry, ShardReader } from '../shard/shard-reader.ts';
import { CounterReader } from './counters.ts';
import { type DeliveryReading, deliveryReading, meetsDeliveryFilter, packIndex } from './delivery-listing.ts';
import { failedSamples } from './failed-samples.ts';
import { fewMessages } from './few-messages.ts';
import { attemptViews, deliveryView, eventPlace, eventStatus, eventView, type MessageLocation } from './message-view.ts';

/** Shown with an event (`read.lua`). */
const maxDeliveriesOfEvent = 1000;
/** Steps of a search for a result of a route. */
const maxSteps = 20;
/** A message may move on while it is looked for. */
const maxMoves = 4;

interface PlacedDelivery extends MessageLocation {
  view: DeliveryView;
  number: number;
}

/** Throws UNAVAILABLE when Redis does not answer. */
export class RedisMessageReader implements MessageReader {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: () => number;
  readonly #fillMs: number;
  readonly #searchLimits: SearchLimits;
  readonly #chunks: PayloadChunks;
  readonly #readers = new Map<number, ShardReader>();
  readonly #counters = new CounterReader(() => this.#all());

  /** `shards`: how many there are; `fillMs`, `search`: for how long a page is filled. */
  constructor({ redis, prefix, shards = () => 1, fillMs = longestFillMs, search = longestSearch }: ReaderOptions) {
    this.#fillMs = fillMs;
    this.#searchLimits = search;
    this.#redis = redis;
    this.#chunks = new PayloadChunks({ redis, prefix });
    this.#prefix = prefix;
    this.#shards = shards;
  }

  async event(org: string, id: string): Promise<EventView | null> {
    const place = recordPlace(id);
    if (place === null) return null;
    const { shard, key } = place;
    const reply = await this.#in(shard).event(key);
    if (reply === null) return null;
    const [event] = await this.#events(shard, [{ key, reply }]);
    return event?.org === org ? event : null;
  }

  async payload(org: string, id: string): Promise<{ size: number; pieces: AsyncIterable<Buffer | null> } | null> {
    const place = recordPlace(id);
    const reply = place && (await this.#in(place.shard).event(place.key));
    if (place === null || reply === null) return null;
    const { view, chunks } = eventView(place.shard, place.key, reply);
    if (view.org !== org) return null;
    const pieces = chunks === null ? onePiece(view.payload) : this.#chunks.stream(place.shard, chunks);
    return { size: view.size, pieces };
  }

  async events(org: string, filter: EventFilter, page: PageQuery): Promise<ScannedPage<EventView>> {
    const { ids, sourceId, statuses, where } = filter;
    const meets = (view: EventView): boolean => view.org === org && (statuses === undefined || statuses.includes(view.status));
    const views = async ({ shard }: ShardReader, entries: readonly IndexEntry[]) => {
      const events = await this.#events(shard, entries);
      return events.map((view) => (view !== null && meets(view) ? view : null));
    };
    const index = sourceId === undefined ? `i:ev:${org}` : `i:${sourceId}`;
    const look = statuses === undefined ? undefined : { statuses: ` ${statuses.join(' ')} ` };
    const scope = [org, sourceId, statuses?.toSorted().join(','), ...filterScope({ ids, where })];
    const listing: Listing<EventView> = { index, kind: 'e', look, scope, views };
    const isOfSource = (view: EventView): boolean => sourceId === undefined || view.sourceId === sourceId;
    const found = ids === undefined ? null : await this.#placedEvents(ids);
    const gathered = found?.filter(({ item }) => meets(item) && isOfSource(item)) ?? null;
    const search = this.#search<EventView>(org, filter, page, ({ id }) => id);
    return await listPage(this.#all(), listing, filter, page, { gathered, search, fillMs: this.#fillMs });
  }

  /** Bytes of the payloads of those of the events that there are, by id. */
  async payloadSizes(ids: readonly string[]): Promise<Map<string, number>> {
    const places = [...new Set(ids)].flatMap((id) => {
      const place = recordPlace(id);
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

  /** Events that there are, each with its place in lists. */
  async #placedEvents(ids: readonly string[]): Promise<{ at: Position; item: EventView }[]> {
    const places = ids.flatMap((id) => recordPlace(id) ?? []);
    const found = await Promise.all(
      [...Map.groupBy(places, ({ shard }) => shard)].map(async ([shard, group]) => {
        const keys = group.map(({ key }) => key);
        const entries = (await this.#in(shard).eventHeadViews(keys)).map((reply, i) => ({ key: keys[i] ?? '', reply }));
        const views = await this.#events(shard, entries);
        return views.flatMap((item, i) => (item === null ? [] : [{ at: eventPlace(shard, entries[i]?.reply), item }]));
      }),
    );
    return found.flat();
  }

  async deliveriesOfEvent(org: string, eventId: string, filter: Omit<DeliveryFilter, 'where'> = {}): Promise<DeliveryView[]> {
    const all = await this.#deliveriesOfEvent(org, eventId);
    const judged = await Promise.all(all.map(async (view) => ((await this.#meets(org, filter, view)) ? view : null)));
    return judged.filter((view) => view !== null);
  }

  async #deliveriesOfEvent(org: string, eventId: string): Promise<DeliveryView[]> {
    const place = recordPlace(eventId);
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
    const elsewhere = await this.#deliveries(places.slice(0, maxDeliveriesOfEvent));
    const found = new Map(here.map(({ view }) => [view.id, view]));
    for (const { id, view } of elsewhere.values()) found.set(id, view);
    return [...found.values()].filter((view) => view.org === org).slice(0, maxDeliveriesOfEvent);
  }

  async filterResults(org: string, eventId: string): Promise<FilterResult[]> {
    const place = recordPlace(eventId);
    const reply = place && (await this.#in(place.shard).filterResults(place.key));
    if (reply === null) return [];
    const [owner, results] = list(reply);
    return text(owner) === org ? unpackedResults(eventId, text(results)) : [];
  }

  async delivery(org: string, id: string): Promise<DeliveryView | null> {
    return (await this.#delivery(org, id))?.view ?? null;
  }

  /** The deliveries that there are, each with the shard where it is now. */
  async placed(org: string, ids: readonly string[]): Promise<Map<string, { shard: number; view: DeliveryView }>> {
    const places = ids.flatMap((id) => placeOf(id) ?? []);
    return new Map([...(await this.#deliveries(places))].filter(([, { view }]) => view.org === org));
  }

  async deliveries(org: string, filter: DeliveryFilter, page: PageQuery): Promise<ScannedPage<DeliveryView>> {
    const reading = deliveryReading(org, filter);
    const { index, look, besides, scope, range } = reading;
    const { fromMs: _from, toMs: _to, ...besidesTimes } = filter;
    // The range says it, in the stamps of the index.
    const judged = filter.destinationId === undefined ? filter : besidesTimes;
    const views = async ({ shard }: ShardReader, entries: readonly IndexEntry[]) => {
      const here = entries.map(({ key, reply }) => (reply === null ? null : deliveryView(shard, key, reply)));
      const moved = here.flatMap((each) => (each?.elsewhere == null ? [] : [{ id: each.view.id, shard: each.elsewhere }]));
      const elsewhere = await this.#deliveries(moved);
      return await Promise.all(
        here.map(async (each) => {
          if (each === null) return null;
          const found = elsewhere.get(each.view.id);
          const view = found?.view ?? each.view;
          return (await this.#meets(org, judged, view, found?.shard ?? shard)) ? view : null;
        }),
      );
    };
    const listing: Listing<DeliveryView> = { index, kind: 'm', look, scope, views, besides };
    const gathered = await this.#gathered(org, filter, reading);
    const search = this.#search<DeliveryView>(org, filter, page, ({ eventId }) => eventId);
    const walk = gathered === null && reading.hasFailed ? await this.#failures(org, listing, reading, page.cursor) : undefined;
    return await listPage(this.#all(), { ...listing, ...walk }, range, page, { gathered, search, fillMs: this.#fillMs });
  }

  async #failures(
    org: string,
    listing: Listing<DeliveryView>,
    { range, hasBatchMembers }: Pick<DeliveryReading, 'range' | 'hasBatchMembers'>,
    cursor: string | undefined,
  ) {
    const mark = markOf(listing, range, cursor);
    return await failureWalk(this.#all(), { org, index: listing.index, hasBatchMembers, mark });
  }

  #search<T>(org: string, { where }: PayloadFilter, page: PageQuery, eventOf: (item: T) => string) {
    return searchOf<T>(where, { org, ...page }, { eventOf, readerOf: (shard) => this.#in(shard), limits: this.#searchLimits });
  }

  /** Whether the filter lets a delivery pass; `shard`: where it is now, if that is known. */
  async #meets(org: string, filter: DeliveryFilter, view: DeliveryView, shard?: number): Promise<boolean> {
    if (!meetsDeliveryFilter(org, filter, view)) return false;
    if (!asksWhenFailed(filter)) return true;
    if (view.attempts === 0) return false;
    const attempts = shard === undefined ? await this.attempts(org, view.id) : await this.#attempts(view.id, shard);
    return failedWithin(filter, attempts);
  }

  /** All deliveries that belong to a list, each with its place, where they are known to be few without a walk; else null. */
  async #gathered(
    org: string,
    filter: DeliveryFilter,
    { isWaiting }: { isWaiting: boolean },
  ): Promise<{ at: Position; item: DeliveryView }[] | null> {
    const { ids, routeId, destinationId } = filter;
    const narrow = [destinationId ?? routeId].filter((id) => id !== undefined);
    const places =
      ids !== undefined
        ? ids.flatMap((id) => placeOf(id) ?? [])
        : isWaiting
          ? await fewMessages(this.#all(), (shard) => shard.waiting(org, narrow, maxGathered))
          : null;
    if (places === null) return null;
    const found = [...(await this.#deliveries(places)).values()];
    const judged = await Promise.all(found.map(({ view, shard }) => this.#meets(org, filter, view, shard)));
    return found
      .filter((_, i) => judged[i] === true)
      .map(({ id, view, number }) => ({ at: { ms: view.createdAtMs, shard: homeShard(id) ?? 0, number }, item: view }));
  }

  async hasHistory(org: string, id: string, of: 'events' | 'deliveries'): Promise<boolean> {
    const kind = of === 'events' ? 'e' : 'm';
    const isOwn = async (shard: ShardReader): Promise<boolean> => {
      const [entry] = await shard.entries(`i:${id}`, kind, { position: newest, fromMs: 0, count: 1 });
      if (entry === undefined || entry.reply === null)
        return of === 'deliveries' && id.startsWith('rte_') && (await this.#hasResult(shard, org, id));
      const { view } = kind === 'e' ? eventView(shard.shard, entry.key, entry.reply) : deliveryView(shard.shard, entry.key, entry.reply);
      return view.org === org;
    };
    return (await Promise.all(this.#all().map(isOwn))).includes(true);
  }

  /** Whether an event has not met the filter of the route, among the newest events of the organization. */
  async #hasResult(shard: ShardReader, org: string, routeId: string): Promise<boolean> {
    let position = newest;
    for (let step = 0; step < maxSteps; step++) {
      const { entries, last } = await shard.look(packIndex(org), 'm', { position, fromMs: 0, count: 1, looks: maxGathered, routeId });
      if (entries.length > 0) return true;
      if (last === null) return false;
      position = { ...last, shard: shard.shard };
    }
    return false;
  }

  async attempts(org: string, deliveryId: string): Promise<AttemptView[]> {
    const found = await this.#delivery(org, deliveryId);
    return found === null ? [] : await this.#attempts(deliveryId, found.shard);
  }

  async #attempts(deliveryId: string, shard: number): Promise<AttemptView[]> {
    const key = recordKey(deliveryId, shard);
    return key === null ? [] : attemptViews(...(await this.#in(shard).attempts(key)));
  }

  failedSamples(org: string, routeId: string, options: { limit: number; payloadBytes: number }): Promise<FailedSample[]> {
    return failedSamples(this.#all(), { org, routeId, ...options });
  }

  destinationCounters(org: string, id: string): Promise<DestinationCounters> {
    return this.#counters.destination(org, id);
  }

  eventCounters(org: string, id: string): Promise<EventCounters> {
    return this.#counters.events(org, id);
  }

  async #delivery(org: string, id: string): Promise<PlacedDelivery | null> {
    const place = placeOf(id);
    const found = place === null ? undefined : (await this.#deliveries([place])).get(id);
    return found?.view.org === org ? found : null;
  }

  /** Messages by id, wherever they have moved. What is just on its way is shown as it was where it left. */
  async #deliveries(places: readonly MessageLocation[]): Promise<Map<string, PlacedDelivery>> {
    const found = new Map<string, PlacedDelivery>();
    let open = places;
    for (let moves = 0; moves < maxMoves && open.length > 0; moves++) {
      const next: MessageLocation[] = [];
      const read = await this.#perShard(open, (reader, keys) => reader.messages(keys));
      for (const { id, shard, key, reply } of read) {
        if (reply === null || reply === undefined) continue;
        const { view, elsewhere, number } = deliveryView(shard, key, reply);
        found.set(id, { id, shard, view, number });
        if (elsewhere !== null) next.push({ id, shard: elsewhere });
      }
      open = next;
    }
    return found;
  }

  async #events(shard: number, entries: readonly { key: string; reply: unknown }[]): Promise<(EventView | null)[]> {
    const events = entries.map(({ key, reply }) => (reply === null ? null : eventView(shard, key, reply)));
    const letters = await this.#letters(events.flatMap((event) => event?.elsewhere ?? []));
    return events.map((event) => {
      if (event === null) return null;
      const others = event.elsewhere.map(({ id, letterOfMissing }) => letters.get(id) ?? letterOfMissing).join('');
      return { ...event.view, status: eventStatus(event.letters + others) };
    });
  }

  async #letters(places: readonly MessageLocation[]): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    let open = places;
    for (let moves = 0; moves < maxMoves && open.length > 0; moves++) {
      const next: MessageLocation[] = [];
      for (const { id, reply } of await this.#perShard(open, (reader, keys) => reader.letters(keys))) {
        if (reply === null || reply === undefined) continue;
        found.set(id, reply.letter);
        if (reply.elsewhere !== null) next.push({ id, shard: reply.elsewhere });
      }
      open = next;
    }
    return found;
  }

  async #perShard<R>(
    places: readonly MessageLocation[],
    read: (reader: ShardReader, keys: readonly string[]) => Promise<readonly R[]>,
  ): Promise<{ id: string; shard: number; key: string; reply: R | undefined }[]> {
    const byShard = Map.groupBy(places, ({ shard }) => shard);
    const replies = await Promise.all(
      [...byShard].map(async ([shard, group]) => {
        const keyed = group.flatMap(({ id }) => {
          const key = recordKey(id, shard);
          return key === null ? [] : [{ id, shard, key }];
        });
        const answers = await read(
          this.#in(shard),
          keyed.map(({ key }) => key),
        );
        return keyed.map((each, i) => ({ ...each, reply: answers[i] }));
      }),
    );
    return replies.flat();
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

/** Where a message is looked for first; null: the id is none. */
function placeOf(id: string): MessageLocation | null {
  const shard = homeShard(id);
  return shard === null ? null : { id, shard };
}
