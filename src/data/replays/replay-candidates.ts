import type { ReplayFilter, ReplayRecord } from '../../core/replay-record.ts';
import { replayedDeliveryStatuses, replayedMessageStatuses } from '../../core/replay-statuses.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisMessageReader } from '../history/message-reader.ts';
import { mayBeReplayed } from '../history/message-replayer.ts';
import type { MessageFilter, PayloadFilter } from '../shard/message-filter.ts';
import type { DeliveryView } from '../shard/messages.ts';
import type { WebhookMessages } from '../webhooks/webhook-messages.ts';

const perPage = 100;

/** A page of the walk over what a replay selects. */
export interface CandidatePage {
  /** Those that can be replayed. */
  candidates: DeliveryView[];
  /** Null: it is the last page. */
  next: string | null;
}

/** The organization under which the messages of a replay are stored. */
function replayedOrganization({ org, what }: Pick<ReplayRecord, 'org' | 'what'>): string {
  return what === 'messages' ? webhookOrganization(org) : org;
}

/** Walks over what replays select, newest first. Rejects with UNAVAILABLE, and with another error of Posthorn for a filter that cannot be judged. */
export class ReplayCandidates {
  readonly #deliveries: RedisMessageReader;
  readonly #messages: WebhookMessages;

  constructor({ deliveries, messages }: { deliveries: RedisMessageReader; messages: WebhookMessages }) {
    this.#deliveries = deliveries;
    this.#messages = messages;
  }

  /** `upToMs`: only what was created until then, so that the walk meets none that the replay makes. `limit`: of the page, at most 100. */
  async page(
    record: ReplayRecord,
    upToMs: number,
    { cursor, limit = perPage }: { cursor: string | null; limit?: number },
  ): Promise<CandidatePage> {
    const page = { limit: Math.min(limit, perPage), ...(cursor !== null && { cursor }) };
    const { views, nextCursor } = await this.#list(record, upToMs, page);
    return { candidates: views.filter((view) => mayBeReplayed(view, {})), next: nextCursor };
  }

  async #list(
    record: ReplayRecord,
    upToMs: number,
    page: { limit: number; cursor?: string },
  ): Promise<{ views: DeliveryView[]; nextCursor: string | null }> {
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

  /** Messages that there are, by id. */
  async views(record: Pick<ReplayRecord, 'org' | 'what'>, ids: readonly string[]): Promise<Map<string, DeliveryView>> {
    const placed = await this.#deliveries.placed(replayedOrganization(record), ids);
    return new Map([...placed].map(([id, { view }]) => [id, view]));
  }
}

function sharedFilter(filter: ReplayFilter): MessageFilter & PayloadFilter {
  const { ids, errorTypes, responseStatuses, attemptsMin, attemptsMax, fromMs, failedFromMs, failedToMs, where } = filter;
  return { ids, errorTypes, responseStatuses, attemptsMin, attemptsMax, fromMs, failedFromMs, failedToMs, where };
}
