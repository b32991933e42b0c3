import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import type { Abandonment } from '../../core/loop-turns.ts';
import { Semaphore } from '../../core/semaphore.ts';
import type { MatchableEvent } from './subscription-matcher.ts';
import type { Narrowing, WebhookMatcher, WebhookMatches } from './webhook-matcher.ts';

const longestMs = 20_000;
/** Most counts of an organization that wait in this process. */
const maxWaiting = 100;
const retrySeconds = 10;

/** Request to count the matches of an event. `known`: matches found so far. The count ends when it is far beyond `atMost`. */
export interface MatchCount {
  org: string;
  eventTypeId: string;
  narrowing: Narrowing;
  event: MatchableEvent;
  known: WebhookMatches;
  atMost: number;
  /** Aborted when the number is no longer needed. */
  signal: Abandonment;
}

/**
 * Counts what an event matches where that is not known without a look at all candidates: as its expansion will walk over them, one event of an
 * organization at a time.
 */
export class MatchCounter {
  readonly #matcher: WebhookMatcher;
  readonly #clock: Clock;
  readonly #turns = new Map<string, { semaphore: Semaphore; asked: number }>();

  constructor({ matcher, clock }: { matcher: WebhookMatcher; clock: Clock }) {
    this.#matcher = matcher;
    this.#clock = clock;
  }

  /** All matches, or more than `atMost`. Rejects with UNAVAILABLE when Redis does not answer, or when it takes longer than 20 s; with AbandonedError. */
  async total(count: MatchCount): Promise<number> {
    const { known, org } = count;
    if (known.isCounted || known.rest === null) return known.total;
    const turn = this.#turns.get(org) ?? { semaphore: new Semaphore(1), asked: 0 };
    if (turn.asked >= maxWaiting) throw tooMuch();
    this.#turns.set(org, turn);
    turn.asked++;
    const untilMs = this.#clock.now() + longestMs;
    try {
      return await turn.semaphore.run(1, () => this.#walk(count, known.rest, untilMs));
    } finally {
      turn.asked--;
      if (turn.asked === 0) this.#turns.delete(org);
    }
  }

  async #walk(
    { org, eventTypeId, narrowing, event, known, atMost, signal }: MatchCount,
    rest: WebhookMatches['rest'],
    untilMs: number,
  ): Promise<number> {
    let total = known.first.length;
    for (let range = rest; range !== null && total <= atMost; ) {
      if (this.#clock.now() > untilMs) throw tooMuch();
      const { matches, next } = await this.#matcher.matchWindow(org, eventTypeId, narrowing, event, range, { signal });
      total += matches.length;
      range = next === null ? null : { from: next, end: range.end };
    }
    return total;
  }
}

function tooMuch(): PosthornError {
  return new PosthornError('UNAVAILABLE', 'The targets of the event could not be counted in time', { retryAfterSeconds: retrySeconds });
}
