import type { Clock } from '../../core/clock.ts';
import { derivedTimedId, newTimedId } from '../../core/ids.ts';
import { organizationOfWebhooks } from '../../core/webhook.ts';
import type { StoredEvent } from '../event-text.ts';
import type { MessageAcceptor, NewEvent } from '../messages.ts';
import type { WebhookMatcher } from './webhook-matcher.ts';
import { webhookTarget } from './webhook-target.ts';

export interface EventExpanderOptions {
  matcher: WebhookMatcher;
  acceptor: MessageAcceptor;
  /** Largest number of attempts of a message. */
  maxAttempts: number;
  clock: Clock;
}

/**
 * Stores what an event has above a thousand targets, a page of candidates at a time, as parts of it: events of their own with the same
 * payload, whose ids follow from the event and the page. A page that is stored twice is stored once.
 */
export class EventExpander {
  readonly #options: EventExpanderOptions;

  constructor(options: EventExpanderOptions) {
    this.#options = options;
  }

  /** Stores the page; answers where the next one begins, null after the last. Rejects with UNAVAILABLE when Redis is away or full. */
  async storePage(eventId: string, event: StoredEvent, range: { from: number; end: number }): Promise<number | null> {
    const { matcher, acceptor, maxAttempts, clock } = this.#options;
    const { webhook, sourceId, sourceSlug } = event;
    const org = organizationOfWebhooks(event.org);
    if (webhook === null || org === null) return null;
    const { labels, metadata } = webhook;
    const judged = { type: sourceSlug, data: JSON.parse(event.payload.toString()), labels, metadata };
    const { matches, next } = await matcher.matchWindow(org, sourceId, webhook, judged, range);
    const byShard = Map.groupBy(matches, ({ shard }) => shard);
    const parts = [...byShard].map(([shard, group]): NewEvent => {
      const nowMs = clock.now();
      return {
        ...event,
        id: derivedTimedId('evt_', shard, event.receivedAtMs, `${eventId} ${range.from}`),
        webhook: { ...webhook, partOf: eventId },
        targets: group.map((match) => webhookTarget(match, { messageId: newTimedId('msg_', shard, nowMs), maxAttempts })),
        filtered: [],
      };
    });
    await Promise.all(parts.map((part) => acceptor.accept(part)));
    return next;
  }
}
