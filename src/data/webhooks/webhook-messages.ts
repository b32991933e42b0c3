import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { fewMessages } from '../history/few-messages.ts';
import { attemptViews, deliveryView, eventView, type MessageLocation } from '../history/message-view.ts';
import { decodeEvent } from '../shard/event-text.ts';
import { failureWalk } from '../shard/failure-walk.ts';
import {
  cursorMark,
  type Gathered,
  indexEntries,
  type ListedEntry,
  type Listing,
  longestFillMs,
  longestSearch,
  maxGathered,
  type ReaderOptions,
  type SearchLimits,
  type TimeRange,
} from '../shard/index-pages.ts';
import { listed, type PayloadFilter } from '../shard/message-filter.ts';
import type { AttemptView, PageQuery, ScannedPage } from '../shard/messages.ts';
import { listPage, searchOf } from '../shard/payload-search.ts';
import { homeShard, recordLocation } from '../shard/record-key.ts';
import { list, text } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardReader } from '../shard/shard-reader.ts';
import { WebhookEventLists } from './webhook-event-lists.ts';
import {
  type DeadLetterFilter,
  deadLetterListing,
  eventsOf,
  type MessageListing,
  messageListing,
  messagesIn,
  type WebhookEventFilter,
  type WebhookMessageFilter,
} from './webhook-message-listing.ts';
import {
  type FoundMessage,
  type WebhookEventView,
  type WebhookMessageView,
  webhookEventView,
  webhookMessageView,
} from './webhook-message-view.ts';
import { type StatusCounts, webhookStatusCounts } from './webhook-status-counts.ts';

/** Messages to webhook endpoints, and their events, as the API shows them. Throws UNAVAILABLE when Redis does not answer. */
export class WebhookMessages {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: () => number;
  readonly #fillMs: number;
  readonly #searchLimits: SearchLimits;
  readonly #readers = new Map<number, ShardReader>();
  readonly #events = new WebhookEventLists((shard) => this.#in(shard));

  /** `shards`: how many there are; `fillMs`, `search`: for how long a page is filled. */
  constructor({ redis, prefix, shards = () => 1, fillMs = longestFillMs, search = longestSearch }: ReaderOptions) {
    this.#fillMs = fillMs;
    this.#searchLimits = search;
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
  }

  async message(org: string, id: string): Promise<WebhookMessageView | null> {
    const own = await this.#own(org, id);
    if (own === null) return null;
    return webhookMessageView(own.found, (await eventsOf(own.reader, [own.found.view])).get(own.found.view.eventId));
  }

  /** Newest first. Throws INVALID_QUERY for a forged cursor. */
  async messages(org: string, filter: WebhookMessageFilter, page: PageQuery): Promise<ScannedPage<WebhookMessageView>> {
    const listing = messageListing(org, filter);
    const gathered = await this.#gathered(org, filter, listing);
    const walk = gathered === null ? await this.#failures(org, listing, page.cursor) : undefined;
    return await this.#page(org, { ...listing, ...walk }, listing.range, page, { filter, gathered });
  }

  /** The same list, as long as it is; entries that do not belong to it are null. */
  async *everyMessage(org: string, filter: WebhookMessageFilter, cursor?: string): AsyncGenerator<ListedEntry<WebhookMessageView>> {
    if (filter.eventTypeIds?.length === 0) return;
    const listing = messageListing(org, filter);
    const walk = await this.#failures(org, listing, cursor);
    yield* indexEntries(this.#all(), { ...listing, ...walk }, listing.range, { cursor, limit: entriesAtOnce });
  }

  /** Dead letters, the last moved first; the range of time means that move. Throws INVALID_QUERY for a forged cursor. */
  async deadLetters(org: string, filter: DeadLetterFilter, page: PageQuery): Promise<ScannedPage<WebhookMessageView>> {
    const listing = deadLetterListing(org, filter);
    const range = { fromMs: filter.movedFromMs, toMs: filter.movedToMs };
    const gathered =
      filter.ids !== undefined
        ? await this.#gatheredFrom(filter.ids.flatMap(placesOf), { ...listing, isDead: true })
        : filter.eventTypeIds?.length === 0
          ? []
          : null;
    return await this.#page(org, listing, range, page, { filter, gathered });
  }

  /** How many messages there are of each status. */
  counts(org: string): Promise<StatusCounts> {
    return webhookStatusCounts({ redis: this.#redis, prefix: this.#prefix, shards: this.#shards() }, org);
  }

  /** All attempts of a message; none where it is not there. */
  async attempts(org: string, id: string): Promise<AttemptView[]> {
    const own = await this.#own(org, id);
    return own === null ? [] : attemptViews(...(await own.reader.attempts(own.key)));
  }

  /** An event with its payload and at most its first 1,000 messages. */
  async event(
    org: string,
    id: string,
  ): Promise<{ event: WebhookEventView; payload: Buffer | null; messages: WebhookMessageView[] } | null> {
    const place = recordLocation(id);
    const reply = place && (await this.#in(place.shard).eventWithMessages(place.key));
    if (place === null || reply === null) return null;
    const { shard, key } = place;
    const [stored, ...pairs] = list(reply);
    const { view, elsewhere } = eventView(shard, key, stored);
    const event = webhookEventView(webhookOrganization(org), view);
    if (event === null) return null;
    const here = pairs.map((pair) => {
      const [messageKey, message] = list(pair);
      return deliveryView(shard, text(messageKey), message);
    });
    const others = await this.#found(elsewhere.slice(0, maxMessagesOfEvent - here.length));
    const source = { sourceSlug: view.source, webhook: view.webhook };
    return { event, payload: view.payload, messages: [...here, ...others].map((found) => webhookMessageView(found, source)) };
  }

  /** Returns the event as it was sent; null: it does not exist, or its payload is not stored. */
  async payload(org: string, id: string): Promise<Buffer | null> {
    const place = recordLocation(id);
    const reply = place && (await this.#in(place.shard).event(place.key));
    if (place === null || reply === null) return null;
    const { view } = eventView(place.shard, place.key, reply);
    return view.org === webhookOrganization(org) ? view.payload : null;
  }

  /** The response to a duplicate of the event (`NewEvent`); null: none is kept. */
  async answer(org: string, eventId: string): Promise<string | null> {
    const place = recordLocation(eventId);
    if (place === null) return null;
    const { shard, key } = place;
    const [head] = await this.#in(shard).eventHeads([key]);
    if (head == null || decodeEvent(head).org !== webhookOrganization(org)) return null;
    return await this.#redis.get(shardKeys(this.#prefix, shard).answer(key)).catch(throwUnavailable);
  }

  /** Newest first, without the parts of events with very many messages. Throws INVALID_QUERY for a forged cursor. */
  async events(org: string, filter: WebhookEventFilter, page: PageQuery): Promise<ScannedPage<WebhookEventView>> {
    const gathered = filter.eventTypeIds?.length === 0 ? [] : await this.#events.gathered(org, filter);
    const search = this.#search<WebhookEventView>(org, filter, page, ({ id }) => id);
    return await listPage(this.#all(), this.#events.listing(org, filter), filter, page, { gathered, search, fillMs: this.#fillMs });
  }

  /** Whether there are events of an event type of this name, as far as one page tells: true also if the page ends before the list does. */
  async mayHaveEvents(org: string, eventType: string): Promise<boolean> {
    const { items, nextCursor } = await this.events(org, { eventType }, { limit: 1 });
    return items.length > 0 || nextCursor !== null;
  }

  /** The list of `events`, as long as it is, without a search; entries that do not belong to it are null. */
  async *everyEvent(org: string, filter: WebhookEventFilter, cursor?: string): AsyncGenerator<ListedEntry<WebhookEventView>> {
    if (filter.eventTypeIds?.length === 0) return;
    yield* indexEntries(this.#all(), this.#events.listing(org, filter), filter, { cursor, limit: entriesAtOnce });
  }

  /** How a list is read all of whose messages have failed. */
  async #failures(org: string, listing: MessageListing, cursor?: string) {
    if (!listing.hasFailed) return undefined;
    const internal = webhookOrganization(org);
    const mark = cursorMark(listing, listing.range, cursor);
    return await failureWalk(this.#all(), { org: internal, index: listing.index, hasBatchMembers: false, mark });
  }

  /** All messages that may belong to the list, each with its place, where they are known to be few without a walk; else null. */
  async #gathered(
    org: string,
    { ids, statuses, eventTypeIds, applicationId, endpointId }: WebhookMessageFilter,
    { shown, isDead }: MessageListing,
  ): Promise<Gathered<WebhookMessageView>[] | null> {
    if (ids === undefined && isDead) return eventTypeIds?.length === 0 ? [] : null;
    const internal = webhookOrganization(org);
    const isWaiting = statuses?.every((status) => status === 'pending' || status === 'processing') === true;
    const narrow = listed(endpointId ?? applicationId);
    const few =
      ids?.flatMap(placesOf) ??
      (eventTypeIds === undefined ? null : await fewMessages(this.#all(), (shard) => shard.messagesOfSources(eventTypeIds, maxGathered))) ??
      (isWaiting ? await fewMessages(this.#all(), (shard) => shard.waiting(internal, narrow, maxGathered)) : null);
    return few === null ? null : await this.#gatheredFrom(few, { shown, isDead });
  }

  /** What a list shows of the messages at these places, each with its place in the list. */
  async #gatheredFrom(
    places: readonly MessageLocation[],
    { shown, isDead }: Pick<MessageListing, 'shown' | 'isDead'>,
  ): Promise<Gathered<WebhookMessageView>[]> {
    const gathered = await Promise.all(
      [...Map.groupBy(places, ({ id, shard }) => homeShard(id) ?? shard)].map(async ([shard, group]) => {
        const reader = this.#in(shard);
        const found = await messagesIn(reader, group);
        const items = await shown(reader, found);
        return items.flatMap((item, i) => {
          if (item === null) return [];
          const { createdAtMs, deadLetter } = item;
          const ms = isDead ? (deadLetter?.movedAtMs ?? createdAtMs) : createdAtMs;
          return [{ at: { ms, shard, number: found[i]?.number ?? 0 }, item }];
        });
      }),
    );
    return gathered.flat();
  }

  /** A message of this organization, and where it is. */
  async #own(org: string, id: string): Promise<{ reader: ShardReader; key: string; found: FoundMessage } | null> {
    const place = recordLocation(id);
    if (place === null) return null;
    const { shard, key } = place;
    const reader = this.#in(shard);
    const [reply] = await reader.messages([key]);
    if (reply === null || reply === undefined) return null;
    const found = deliveryView(shard, key, reply);
    return found.view.org === webhookOrganization(org) ? { reader, key, found } : null;
  }

  async #found(places: readonly MessageLocation[]): Promise<FoundMessage[]> {
    const byShard = Map.groupBy(places, ({ shard }) => shard);
    const found = await Promise.all([...byShard].map(([shard, group]) => messagesIn(this.#in(shard), group)));
    return found.flat().filter((message) => message !== null);
  }

  #page(
    org: string,
    listing: Listing<WebhookMessageView>,
    range: TimeRange,
    page: PageQuery,
    { filter, gathered }: { filter: PayloadFilter; gathered: Gathered<WebhookMessageView>[] | null },
  ): Promise<ScannedPage<WebhookMessageView>> {
    const search = this.#search<WebhookMessageView>(org, filter, page, ({ eventId }) => eventId);
    return listPage(this.#all(), listing, range, page, { gathered, search, fillMs: this.#fillMs });
  }

  #search<T>(org: string, { where }: PayloadFilter, page: PageQuery, eventOf: (item: T) => string) {
    return searchOf<T>(where, { org, ...page }, { eventOf, readerOf: (shard) => this.#in(shard), limits: this.#searchLimits });
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

const entriesAtOnce = 1000;
const maxMessagesOfEvent = 1000;

function placesOf(id: string): MessageLocation[] {
  const shard = homeShard(id);
  return shard === null ? [] : [{ id, shard }];
}
