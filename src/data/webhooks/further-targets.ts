import type { Clock } from '../../core/clock.ts';
import { newTimedId } from '../../core/ids.ts';
import { parseLargeJson } from '../../core/large-json.ts';
import { loopTurns } from '../../core/loop-turns.ts';
import { organizationOfWebhooks } from '../../core/webhook.ts';
import type { FindFurtherTargets } from '../queue/outbox-carrier.ts';
import type { WebhookMatcher } from './webhook-matcher.ts';
import { webhookTarget } from './webhook-target.ts';

/**
 * Finds what an event goes to beyond the targets that it was accepted with, a window of candidates at a time. Rejects with UNAVAILABLE when
 * Redis does not answer.
 */
export function furtherTargets({
  matcher,
  maxAttempts,
  clock,
}: {
  matcher: WebhookMatcher;
  /** Largest number of attempts of a message. */
  maxAttempts: number;
  clock: Clock;
}): FindFurtherTargets {
  return async (event, range, turns) => {
    const { webhook, sourceId, sourceSlug, notBeforeMs } = event;
    const org = organizationOfWebhooks(event.org);
    if (webhook === null || org === null) return { targets: [], next: null };
    const { labels, metadata } = webhook;
    const data = await loopTurns.of(org).run(parseLargeJson(event.payload));
    const matchable = { type: sourceSlug, data, labels, metadata };
    const { matches, next } = await matcher.matchWindow(org, sourceId, webhook, matchable, range, { turns });
    const nowMs = clock.now();
    const common = { maxAttempts, notBeforeMs, receivedAtMs: event.receivedAtMs, expiresAfterSeconds: webhook.expiresAfterSeconds };
    const targets = matches.map((match) => webhookTarget(match, { messageId: newTimedId('msg_', match.shard, nowMs), ...common }));
    return { targets, next };
  };
}
