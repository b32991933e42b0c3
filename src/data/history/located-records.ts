import type { Position } from '../shard/cursor.ts';
import type { DeliveryView, EventView, MessageEnd } from '../shard/messages.ts';
import { homeShard, recordLocation } from '../shard/record-key.ts';
import type { IndexEntry, ShardReader } from '../shard/shard-reader.ts';
import { followMessages } from './follow-messages.ts';
import { deliveryView, eventPosition, eventStatus, eventView, type MessageLocation, messageEnd } from './message-view.ts';

export interface LocatedDelivery extends MessageLocation {
  view: DeliveryView;
  number: number;
}

export interface LocatedEvent {
  at: Position;
  item: EventView;
}

/** Where an event or a message is at home; null when it is no id of one. */
export function homeLocation(id: string): MessageLocation | null {
  const shard = homeShard(id);
  return shard === null ? null : { id, shard };
}

/** Reads events and messages in whatever shards they are. Throws UNAVAILABLE when Redis does not answer. */
export class LocatedRecords {
  readonly #in: (shard: number) => ShardReader;

  constructor(readerOf: (shard: number) => ShardReader) {
    this.#in = readerOf;
  }

  /** Existing events, each with its list position. */
  async locatedEvents(ids: readonly string[]): Promise<LocatedEvent[]> {
    const places = ids.flatMap((id) => recordLocation(id) ?? []);
    const found = await Promise.all(
      [...Map.groupBy(places, ({ shard }) => shard)].map(async ([shard, group]) => {
        const keys = group.map(({ key }) => key);
        const entries = (await this.#in(shard).eventHeadViews(keys)).map((reply, i) => ({ key: keys[i] ?? '', reply }));
        const views = await this.events(shard, entries);
        return views.flatMap((item, i) => (item === null ? [] : [{ at: eventPosition(shard, entries[i]?.reply), item }]));
      }),
    );
    return found.flat();
  }

  /** Messages by id, wherever they have moved. What is just on its way is shown as it was where it left. */
  async deliveries(places: readonly MessageLocation[]): Promise<Map<string, LocatedDelivery>> {
    const found = new Map<string, LocatedDelivery>();
    await followMessages(
      this.#in,
      places,
      (reader, keys) => reader.messages(keys),
      ({ id, shard, key }, reply) => {
        const { view, elsewhere, number } = deliveryView(shard, key, reply);
        found.set(id, { id, shard, view, number });
        return elsewhere;
      },
    );
    return found;
  }

  /** How those of the messages have ended that are not under way any more, by id; null: the message is gone. */
  async ends(ids: readonly string[]): Promise<Map<string, MessageEnd | null>> {
    const ends = new Map<string, MessageEnd | null>(ids.map((id) => [id, null]));
    await followMessages(
      this.#in,
      ids.flatMap((id) => homeLocation(id) ?? []),
      (reader, keys) => reader.ends(keys),
      ({ id }, { letter, elsewhere, end }) => {
        if (end === null) ends.delete(id);
        else ends.set(id, messageEnd(letter, end.reason));
        return elsewhere;
      },
    );
    return ends;
  }

  /** Messages of entries of an index, each where it is now; null for one that is gone. */
  async resolved(shard: number, entries: readonly IndexEntry[]): Promise<(LocatedDelivery | null)[]> {
    const here = entries.map(({ key, reply }) => (reply === null ? null : deliveryView(shard, key, reply)));
    const moved = here.flatMap((each) => (each?.elsewhere == null ? [] : [{ id: each.view.id, shard: each.elsewhere }]));
    const elsewhere = await this.deliveries(moved);
    return here.map((each) => {
      if (each === null) return null;
      const { view, number } = each;
      return elsewhere.get(view.id) ?? { id: view.id, shard, view, number };
    });
  }

  /** Events of a shard from what it has of them (`event_head_view`); null for one that is gone. */
  async events(shard: number, entries: readonly { key: string; reply: unknown }[]): Promise<(EventView | null)[]> {
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
    await followMessages(
      this.#in,
      places,
      (reader, keys) => reader.letters(keys),
      ({ id }, { letter, elsewhere }) => {
        found.set(id, letter);
        return elsewhere;
      },
    );
    return found;
  }
}
