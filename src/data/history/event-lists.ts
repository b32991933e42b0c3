import { inParts } from '../../core/in-parts.ts';
import { cursorMark, type Listing } from '../shard/index-pages.ts';
import { outcomeConditions } from '../shard/message-conditions.ts';
import { listed, type OneOrMore } from '../shard/message-filter.ts';
import type { DeliveryFilter, DeliveryStatus, EventFilter, EventView } from '../shard/messages.ts';
import { homeShard, recordId, recordLocation } from '../shard/record-key.ts';
import type { IndexEntry, ShardReader } from '../shard/shard-reader.ts';
import { type DeliveryReading, deliveryReading, isShownFirst } from './delivery-listing.ts';
import { eventReading, meetsEventFilter } from './event-listing.ts';
import type { LocatedDelivery, LocatedEvent, LocatedRecords } from './located-records.ts';
import { eventView, type MessageLocation } from './message-view.ts';

/** Deliveries of an event that are evaluated. */
const maxEvaluated = 1000;
/** Messages that one script reads. */
const maxRead = 1000;
const maxLooked = 10_000;

/** One of these has a delivery of each event that is `failed` or `partial`. */
const failedEnds = ['failed', 'schema_failed', 'transform_failed', 'dlq'] as const satisfies readonly DeliveryStatus[];

/** Prefixes of cursors of lists that walk an index of deliveries, or that of failures. */
const marks = { deliveries: 'd', failures: 'f' } as const;

interface EventListsOptions {
  shards: () => readonly ShardReader[];
  records: LocatedRecords;
  /** Whether a filter lets a delivery pass. */
  meets: (org: string, filter: DeliveryFilter, delivery: LocatedDelivery) => Promise<boolean>;
}

/** Options of reads of event lists. Throws UNAVAILABLE when Redis does not answer. */
export class EventLists {
  readonly #shards: () => readonly ShardReader[];
  readonly #records: LocatedRecords;
  readonly #meets: EventListsOptions['meets'];

  constructor({ shards, records, meets }: EventListsOptions) {
    this.#shards = shards;
    this.#records = records;
    this.#meets = meets;
  }

  /**
   * The list of the events that a filter selects, without those that it names by id. One with a filter of deliveries walks the smallest index that has all of
   * its events. In an index of deliveries, an event has the position of the first of its deliveries that meets the filter: it may be younger than
   * the event, so that a list up to a time walks the events themselves. Events of which deliveries have failed are found by these where they are few.
   */
  async listing(org: string, filter: EventFilter, cursor: string | undefined): Promise<Listing<EventView>> {
    const { ids, delivery = failedDelivery(filter), toMs } = filter;
    const reading = eventReading(org, filter);
    const ofEvents = { ...reading, kind: 'e' as const };
    const walk =
      delivery === undefined || ids !== undefined || toMs !== undefined
        ? null
        : await this.#deliveryWalk(org, reading.index, deliveryReading(org, delivery), {
            mark: cursorMark(ofEvents, filter, cursor),
            isOfFailures: filter.delivery === undefined,
          });
    if (delivery === undefined || walk === null)
      return { ...ofEvents, views: (shard, entries) => this.#eventsThatMeet(org, filter, shard, entries) };
    const views: Listing<EventView>['views'] = (shard, entries, index) =>
      this.#eventsOfDeliveries(org, { ...filter, delivery }, { shard, entries, index });
    return { ...ofEvents, ...walk, entries: 'm', views };
  }

  /** Null: the index of events is the smallest. A list is read to its end from the index with which it began. `isOfFailures`: no other index of deliveries is walked. */
  async #deliveryWalk(
    org: string,
    events: OneOrMore,
    reading: DeliveryReading,
    { mark, isOfFailures }: { mark: string | null; isOfFailures: boolean },
  ) {
    const { index, conditions, besides, hasFailed, hasBatchMembers } = reading;
    const failures = `i:bad:${org}`;
    const walks = {
      [marks.deliveries]: { index, conditions, besides, mark: marks.deliveries },
      [marks.failures]: { index: failures, conditions, besides, mark: marks.failures },
    };
    if (mark === marks.deliveries || mark === marks.failures) return walks[mark];
    if (mark !== null) return null;
    const ofEvents = listed(events);
    const ofDeliveries = [...listed(index), ...(besides === undefined ? [] : [besides.index])];
    const names = [...new Set([failures, ...ofEvents, ...ofDeliveries])];
    const found = await Promise.all(this.#shards().map((shard) => shard.sizes(org, names)));
    const sizeOf = (some: readonly string[]): number =>
      found.flatMap(({ sizes }) => sizes.filter((_, i) => some.includes(names[i] ?? ''))).reduce((sum, size) => sum + size, 0);
    const isComplete = hasFailed && found.every(({ hasFailedBatches }) => !hasBatchMembers || !hasFailedBatches);
    if (isComplete && sizeOf([failures]) < Math.min(sizeOf(ofEvents), sizeOf(ofDeliveries))) return walks[marks.failures];
    return !isOfFailures && sizeOf(ofDeliveries) < sizeOf(ofEvents) ? walks[marks.deliveries] : null;
  }

  /** Returns the events of entries of an index of events that belong to the list; null for the others. */
  async #eventsThatMeet(
    org: string,
    filter: EventFilter,
    { shard }: ShardReader,
    entries: readonly IndexEntry[],
  ): Promise<(EventView | null)[]> {
    const { delivery } = filter;
    const all = await this.#records.events(shard, entries);
    const events = all.map((view) => (view !== null && meetsEventFilter(org, filter, view) ? view : null));
    if (delivery === undefined) return events;
    const places = entries.map(({ key, reply, asked = [] }, i) =>
      events[i] === null
        ? []
        : [...asked.map((each) => ({ id: recordId('msg_', shard, each), shard })), ...eventView(shard, key, reply).elsewhere],
    );
    const meant = new Set((await this.#deliveriesThatMeet(org, delivery, places)).map(({ view }) => view.eventId));
    return events.map((event) => (event !== null && meant.has(event.id) ? event : null));
  }

  /** The events of the list at entries of an index of deliveries, at that position. */
  async #eventsOfDeliveries(
    org: string,
    filter: EventFilter & { delivery: DeliveryFilter },
    { shard: { shard }, entries, index }: { shard: ShardReader; entries: readonly IndexEntry[]; index: string },
  ): Promise<(EventView | null)[]> {
    const { delivery, fromMs = 0 } = filter;
    const found = await this.#records.resolved(shard, entries);
    const deliveries = await Promise.all(
      found.map(async (each) => {
        const isHere = each !== null && !isShownFirst(delivery, each.view, index);
        return isHere && (await this.#meets(org, delivery, each)) ? each : null;
      }),
    );
    const ids = new Set(deliveries.flatMap((each) => each?.view.eventId ?? []));
    const located = (await this.#records.locatedEvents([...ids])).filter(
      ({ at, item }) => at.ms >= fromMs && meetsEventFilter(org, filter, item),
    );
    const events = new Map(located.map(({ item }) => [item.id, item]));
    const firsts = await this.#firstDeliveries(
      org,
      delivery,
      located.filter(({ item }) => item.deliveryCount > 1),
      index.startsWith('i:bad:'),
    );
    return deliveries.map((each) => {
      const event = each === null ? undefined : events.get(each.view.eventId);
      const isFirst = event !== undefined && (event.deliveryCount <= 1 || firsts.get(event.id) === each?.id);
      return isFirst ? event : null;
    });
  }

  /** By event the delivery that meets the filter and whose entry is the oldest in the indexes that are walked. */
  async #firstDeliveries(
    org: string,
    filter: DeliveryFilter,
    events: readonly LocatedEvent[],
    isOfFailures: boolean,
  ): Promise<Map<string, string>> {
    const asked = await Promise.all(
      [...Map.groupBy(events, ({ at }) => at.shard)].map(async ([shard, group]) => {
        const parts = inParts(group, maxLooked, ({ item }) => item.deliveryCount);
        const keys = await Promise.all(parts.map((part) => this.#matchingMessages(filter, shard, part)));
        return keys.flat().map((ofEvent) =>
          ofEvent.map((key) => {
            const id = recordId('msg_', shard, key);
            return { id, shard: homeShard(id) ?? shard };
          }),
        );
      }),
    );
    const firsts = new Map<string, LocatedDelivery>();
    const destinationId = isOfFailures ? undefined : filter.destinationId;
    for (const each of await this.#deliveriesThatMeet(org, filter, asked.flat())) {
      const first = firsts.get(each.view.eventId);
      if (first === undefined || isOlder(each, first, destinationId)) firsts.set(each.view.eventId, each);
    }
    return new Map([...firsts].map(([eventId, { id }]) => [eventId, id]));
  }

  async #matchingMessages(filter: DeliveryFilter, shard: number, events: readonly LocatedEvent[]): Promise<string[][]> {
    const reader = this.#shards().find((each) => each.shard === shard);
    const keys = events.flatMap(({ item }) => recordLocation(item.id)?.key ?? []);
    const { routeId, destinationId } = filter;
    return (await reader?.matchingMessages(keys, { routeId, destinationId, outcome: outcomeConditions(filter) })) ?? [];
  }

  /** The deliveries at positions of several events that meet the filter, of each event at most the first 1,000 positions. */
  async #deliveriesThatMeet(
    org: string,
    filter: DeliveryFilter,
    places: readonly (readonly MessageLocation[])[],
  ): Promise<LocatedDelivery[]> {
    const read = places.flatMap((ofEvent) => ofEvent.slice(0, maxEvaluated));
    const found = await Promise.all(inParts(read, maxRead).map((part) => this.#records.deliveries(part)));
    const deliveries = found.flatMap((part) => [...part.values()]);
    const verdicts = await Promise.all(deliveries.map((each) => this.#meets(org, filter, each)));
    return deliveries.filter((_, i) => verdicts[i]);
  }
}

/** Conditions on a delivery of each event that the filter selects by its status; undefined: none. */
function failedDelivery({ statuses }: EventFilter): DeliveryFilter | undefined {
  return statuses?.every((status) => status === 'failed' || status === 'partial') === true ? { statuses: failedEnds } : undefined;
}

/** Whether the first entry of one delivery is older than that of another in the indexes of these destinations, or in others by creation. */
function isOlder(one: LocatedDelivery, other: LocatedDelivery, destinationId: OneOrMore | undefined): boolean {
  const [first, second] = [firstEntry(one, destinationId), firstEntry(other, destinationId)];
  if (first.ms !== second.ms) return first.ms < second.ms;
  return first.shard === second.shard ? one.id < other.id : first.shard < second.shard;
}

/** One that has failed over is in the index of its later destination by the time when it came there. */
function firstEntry({ id, shard, view }: LocatedDelivery, destinationId: OneOrMore | undefined): { ms: number; shard: number } {
  const { createdAtMs, failedOverFrom, failedOverAtMs } = view;
  const cameLater = destinationId !== undefined && failedOverFrom !== null && !listed(destinationId).includes(failedOverFrom);
  return cameLater ? { ms: failedOverAtMs ?? createdAtMs, shard } : { ms: createdAtMs, shard: homeShard(id) ?? shard };
}
