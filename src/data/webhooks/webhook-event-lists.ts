import { inParts } from '../../core/in-parts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { joinedScope } from '../history/delivery-listing.ts';
import { LocatedRecords } from '../history/located-records.ts';
import { eventView, type MessageLocation } from '../history/message-view.ts';
import type { Gathered, Listing } from '../shard/index-pages.ts';
import { filterScope, outcomeConditions } from '../shard/message-conditions.ts';
import { isAmong, listed } from '../shard/message-filter.ts';
import { homeShard, recordId, recordKey, recordLocation } from '../shard/record-key.ts';
import type { IndexConditions, IndexEntry, ShardReader } from '../shard/shard-reader.ts';
import { messageListing, messagesIn, type WebhookEventFilter } from './webhook-message-listing.ts';
import { statusOfLetter, type WebhookEventView, webhookEventView } from './webhook-message-view.ts';

/** Most event types whose own events are walked; with more those of all types are. */
const maxWalkedTypes = 20;
/** Messages of an event that are judged, and messages that one script reads. */
const maxJudged = 1000;
const maxRead = 1000;
/** Events about whose messages one script is asked; each has about a thousand at most. */
const maxAsked = 10;

/** An event that may belong to a list, with its messages that may be what the list asks for. */
interface Candidate {
  view: WebhookEventView;
  messages: readonly MessageLocation[];
}

/** Says how lists of webhook events are read. Throws UNAVAILABLE when Redis does not answer. */
export class WebhookEventLists {
  readonly #in: (shard: number) => ShardReader;
  readonly #records: LocatedRecords;

  constructor(readerOf: (shard: number) => ShardReader) {
    this.#in = readerOf;
    this.#records = new LocatedRecords(readerOf);
  }

  listing(org: string, filter: WebhookEventFilter): Listing<WebhookEventView> {
    const { ids, eventType, eventTypeIds = [], applicationId, endpointId, statuses } = filter;
    const internal = webhookOrganization(org);
    const ofTypes = eventTypeIds.length > 0 && eventTypeIds.length <= maxWalkedTypes;
    return {
      index: ofTypes ? eventTypeIds.map((id) => `i:${id}`) : `i:ev:${internal}`,
      kind: 'e',
      conditions: asksOfOneMessage(filter) || applicationId !== undefined ? messageConditions(filter) : undefined,
      scope: [
        internal,
        'events',
        joinedScope(eventType),
        joinedScope(applicationId),
        statuses?.toSorted().join(','),
        ...(endpointId === undefined ? [] : [`endpointId=${joinedScope(endpointId)}`]),
        ...filterScope(filter),
      ],
      views: async ({ shard }, entries) => {
        const events = entries.map(({ key, reply }) => (reply === null ? null : eventView(shard, key, reply)));
        const candidates = events.map((event, i) => {
          const view = event === null ? null : webhookEventView(internal, event.view);
          if (event === null || view === null || !isAmong(eventType, view.typeName) || !(ids?.includes(view.id) ?? true)) return null;
          return { view, messages: toJudge(filter, askedHere(shard, entries[i]), event.elsewhere) };
        });
        if (asksOfOneMessage(filter)) return await this.#thatHaveOne(org, filter, candidates);
        const elsewhere = await this.#letters(statuses === undefined ? [] : events.flatMap((event) => event?.elsewhere ?? []));
        const isOne = (letter: string): boolean => {
          const status = statusOfLetter(letter);
          return status !== null && statuses?.includes(status) === true;
        };
        const withStatus = candidates.map((candidate, i) => {
          const { letters = '', elsewhere: others = [] } = events[i] ?? {};
          const all = [...letters, ...others.map(({ id, letterOfMissing }) => elsewhere.get(id) ?? letterOfMissing)];
          return statuses === undefined || all.some(isOne) ? candidate : null;
        });
        return applicationId === undefined
          ? withStatus.map((each) => each?.view ?? null)
          : await this.#thatHaveOne(org, filter, withStatus);
      },
    };
  }

  /** The events that the filter names by id and selects, each with its place; null: it names none. */
  async gathered(org: string, filter: WebhookEventFilter): Promise<Gathered<WebhookEventView>[] | null> {
    const { ids, eventType } = filter;
    if (ids === undefined) return null;
    const internal = webhookOrganization(org);
    const found = (await this.#records.locatedEvents(ids)).flatMap(({ at, item }) => {
      const view = webhookEventView(internal, item);
      return view !== null && isAmong(eventType, view.typeName) ? [{ at, view }] : [];
    });
    const messages = await this.#matchingMessages(
      filter,
      found.map(({ view }) => view.id),
    );
    const candidates = found.map(({ view }) => ({ view, messages: messages.get(view.id) ?? [] }));
    const { statuses, applicationId } = filter;
    const isAsked = asksOfOneMessage(filter) || statuses !== undefined || applicationId !== undefined;
    const items = isAsked ? await this.#thatHaveOne(org, filter, candidates) : candidates.map(({ view }) => view);
    return found.flatMap(({ at }, i) => {
      const item = items[i] ?? null;
      return item === null ? [] : [{ at, item }];
    });
  }

  /** Returns the candidates with a message as the filter asks for, or that went to its application alone where it asks nothing else; null for the others. */
  async #thatHaveOne(
    org: string,
    filter: WebhookEventFilter,
    candidates: readonly (Candidate | null)[],
  ): Promise<(WebhookEventView | null)[]> {
    const { statuses, applicationId } = filter;
    const ofMessage = { ...filter, ids: undefined, fromMs: undefined, toMs: undefined, eventType: undefined, where: undefined };
    const isSentToIt = ({ view }: Candidate): boolean =>
      !asksOfOneMessage(filter) && statuses === undefined && isAmong(applicationId, view.applicationId);
    const open = candidates.filter((each) => each !== null && !isSentToIt(each));
    const meant = await this.#eventsOf(
      org,
      ofMessage,
      open.flatMap((each) => each?.messages.slice(0, maxJudged) ?? []),
    );
    return candidates.map((each) => (each !== null && (isSentToIt(each) || meant.has(each.view.id)) ? each.view : null));
  }

  /** Ids of the events of those of the messages that meet the filter. */
  async #eventsOf(org: string, filter: WebhookEventFilter, messages: readonly MessageLocation[]): Promise<ReadonlySet<string>> {
    const { shown } = messageListing(org, filter);
    const found = await Promise.all(
      [...Map.groupBy(messages, ({ shard }) => shard)].flatMap(([shard, group]) =>
        inParts(group, maxRead).map(async (part) => {
          const reader = this.#in(shard);
          return await shown(reader, await messagesIn(reader, part));
        }),
      ),
    );
    return new Set(found.flat().flatMap((each) => each?.eventId ?? []));
  }

  /** By event those of its messages that may be what the filter asks for. */
  async #matchingMessages(filter: WebhookEventFilter, eventIds: readonly string[]): Promise<ReadonlyMap<string, MessageLocation[]>> {
    const places = eventIds.flatMap((id) => {
      const place = recordLocation(id);
      return place === null ? [] : [{ id, ...place }];
    });
    const asked = await Promise.all(
      [...Map.groupBy(places, ({ shard }) => shard)].flatMap(([shard, group]) =>
        inParts(group, maxAsked).map(async (part) => {
          const keys = await this.#in(shard).matchingMessages(
            part.map(({ key }) => key),
            messageConditions(filter),
          );
          return part.map(({ id }, i) => [id, (keys[i] ?? []).map((key) => locationOf(shard, key))] as const);
        }),
      ),
    );
    return new Map(asked.flat());
  }

  async #letters(places: readonly MessageLocation[]): Promise<ReadonlyMap<string, string>> {
    const found = await Promise.all(
      [...Map.groupBy(places, ({ shard }) => shard)].map(async ([shard, group]) => {
        const letters = await this.#in(shard).letters(group.map(({ id }) => recordKey(id, shard) ?? ''));
        return group.map(({ id }, i) => [id, letters[i]?.letter ?? ''] as const);
      }),
    );
    return new Map(found.flat().filter(([, letter]) => letter !== ''));
  }
}

/** Whether one message has to meet more than one condition, or one that only its own record tells. */
function asksOfOneMessage({ statuses, applicationId, endpointId, ...filter }: WebhookEventFilter): boolean {
  const { errorTypes, responseStatuses, attemptsMin, attemptsMax, failedFromMs, failedToMs } = filter;
  const asked = [endpointId, errorTypes, responseStatuses, attemptsMin, attemptsMax, failedFromMs, failedToMs];
  return asked.some((each) => each !== undefined) || (statuses !== undefined && applicationId !== undefined);
}

/** Returns the messages to judge: one here that may be of the application is enough where nothing else is asked for. */
function toJudge(filter: WebhookEventFilter, here: readonly MessageLocation[], elsewhere: readonly MessageLocation[]): MessageLocation[] {
  return asksOfOneMessage(filter) || here.length === 0 ? [...here, ...elsewhere] : here.slice(0, 1);
}

/** The script is to name the messages, also where it can exclude none. */
function messageConditions(filter: WebhookEventFilter) {
  const { applicationId, endpointId } = filter;
  return { routeId: applicationId, destinationId: endpointId, outcome: outcomeConditions(filter) ?? {} } satisfies IndexConditions;
}

/** Ids of the messages in the shard of an entry that may match the filter. */
function askedHere(shard: number, entry: IndexEntry | undefined): MessageLocation[] {
  return listed(entry?.asked).map((key) => ({ id: recordId('msg_', shard, key), shard }));
}

function locationOf(shard: number, key: string): MessageLocation {
  const id = recordId('msg_', shard, key);
  return { id, shard: homeShard(id) ?? shard };
}
