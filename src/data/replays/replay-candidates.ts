import type { ReplayFilter, ReplayRecord } from '../../core/replay-record.ts';
import { replayedDeliveryStatuses, replayedMessageStatuses } from '../../core/replay-statuses.ts';
import type { Semaphore } from '../../core/semaphore.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisMessageReader } from '../history/message-reader.ts';
import { mayBeReplayed } from '../history/message-replayer.ts';
import type { MessageFilter, PayloadFilter } from '../shard/message-filter.ts';
import type { DeliveryView, MessageEnd, PageQuery } from '../shard/messages.ts';
import type { WebhookMessages } from '../webhooks/webhook-messages.ts';
import { EventOriginals, type EventRouting, eventOriginal, originalId } from './event-originals.ts';

const perPage = 100;
/** Pages of one step: those after the first are read only where the ones before were full. */
const pagesPerStep = 2;
/** Each is evaluated by all routes of its source. */
const eventsPerPage = 20;

/** Originals of a replay; of events one target of one (`event-originals.ts`). */
export interface Candidate extends Pick<DeliveryView, 'id' | 'eventId' | 'routeId' | 'destinationId'> {
  createdAtMs: number;
}

/** A page of the walk over what a replay selects. */
export interface CandidatePage {
  /** Replayable candidates. */
  candidates: Candidate[];
  /** Null: it is the last page. */
  next: string | null;
}

/** The organization under which the messages of a replay are stored. */
function replayedOrganization({ org, what }: Pick<ReplayRecord, 'org' | 'what'>): string {
  return what === 'messages' ? webhookOrganization(org) : org;
}

interface CandidatesOptions {
  deliveries: RedisMessageReader;
  messages: WebhookMessages;
  routing: EventRouting;
  payloadMemory: Semaphore;
}

/** Walks over what replays select, newest first. Rejects with UNAVAILABLE, and with another error of Posthorn for a filter that cannot be evaluated. */
export class ReplayCandidates {
  readonly #deliveries: RedisMessageReader;
  readonly #messages: WebhookMessages;
  readonly #events: EventOriginals;

  constructor({ deliveries, messages, ...judging }: CandidatesOptions) {
    this.#deliveries = deliveries;
    this.#messages = messages;
    this.#events = new EventOriginals({ events: deliveries, ...judging });
  }

  /** `upToMs`: only what was created until then, so that the walk meets none that the replay makes. `limit`: of the page, at most 100. `looksAhead` as of `PageQuery`. */
  async page(
    record: ReplayRecord,
    upToMs: number,
    { cursor, limit = perPage, looksAhead }: { cursor: string | null; limit?: number; looksAhead?: false },
  ): Promise<CandidatePage> {
    const page = { limit: Math.min(limit, perPage), ...(cursor !== null && { cursor }), ...(looksAhead === false && { looksAhead }) };
    if (record.what === 'events') {
      const { originals, next } = await this.#events.page(record, upToMs, { ...page, limit: Math.min(page.limit, eventsPerPage) });
      return { candidates: originals.map((original) => ({ ...original, id: originalId(original) })), next };
    }
    const { views, nextCursor } = await this.#list(record, upToMs, page);
    return { candidates: views.filter((view) => mayBeReplayed(view, {})), next: nextCursor };
  }

  /** Candidates of a step, from one page or two: `limit` candidates at most, of events `limit` events with all their targets. */
  async next(record: ReplayRecord, upToMs: number, { cursor, limit }: { cursor: string | null; limit: number }): Promise<CandidatePage> {
    const found: Candidate[] = [];
    let next = cursor;
    for (let pages = 0; pages < pagesPerStep; pages++) {
      const page = await this.page(record, upToMs, { cursor: next, limit: limit - found.length, looksAhead: false });
      found.push(...page.candidates);
      ({ next } = page);
      if (next === null || page.candidates.length < perPage || found.length >= limit) break;
    }
    return { candidates: found, next };
  }

  async #list(record: ReplayRecord, upToMs: number, page: PageQuery): Promise<{ views: DeliveryView[]; nextCursor: string | null }> {
    const { org, what, filter } = record;
    const { routeId, destinationId, applicationId, endpointId, eventType } = filter;
    const shared = { ...sharedFilter(filter), toMs: Math.min(filter.toMs ?? upToMs, upToMs) };
    if (what === 'messages') {
      const statuses = replayedMessageStatuses.filter((status) => filter.statuses.includes(status));
      const { items, nextCursor } = await this.#messages.messages(org, { ...shared, statuses, applicationId, endpointId, eventType }, page);
      const ids = items.map(({ id }) => id);
      const views = await this.views(record, ids);
      return { views: ids.flatMap((id) => views.get(id) ?? []), nextCursor };
    }
    const statuses = replayedDeliveryStatuses.filter((status) => filter.statuses.includes(status));
    const { items, nextCursor } = await this.#deliveries.deliveries(org, { ...shared, statuses, routeId, destinationId }, page);
    return { views: items, nextCursor };
  }

  /** Bytes of the payloads that the candidates send. */
  async bytes(candidates: readonly Candidate[]): Promise<number> {
    const sizes = await this.#deliveries.payloadSizes(candidates.map(({ eventId }) => eventId));
    return candidates.reduce((sum, { eventId }) => sum + (sizes.get(eventId) ?? 0), 0);
  }

  /** A candidate that a page had; null: it is gone. */
  async candidate(record: Pick<ReplayRecord, 'org' | 'what'>, id: string): Promise<Pick<Candidate, 'routeId' | 'destinationId'> | null> {
    return record.what === 'events' ? eventOriginal(id) : ((await this.views(record, [id])).get(id) ?? null);
  }

  /** How those of the messages have ended that are not under way any more, by id; null: the message is gone. */
  async ends(ids: readonly string[]): Promise<Map<string, MessageEnd | null>> {
    return await this.#deliveries.ends(ids);
  }

  /** Messages that there are, by id. */
  async views(record: Pick<ReplayRecord, 'org' | 'what'>, ids: readonly string[]): Promise<Map<string, DeliveryView>> {
    const located = await this.#deliveries.located(replayedOrganization(record), ids);
    return new Map([...located].map(([id, { view }]) => [id, view]));
  }
}

function sharedFilter(filter: ReplayFilter): MessageFilter & PayloadFilter {
  const { ids, errorTypes, responseStatuses, attemptsMin, attemptsMax, fromMs, failedFromMs, failedToMs, where } = filter;
  return { ids, errorTypes, responseStatuses, attemptsMin, attemptsMax, fromMs, failedFromMs, failedToMs, where };
}
