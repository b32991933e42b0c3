import { LRUCache } from 'lru-cache';
import { type CelEvent, type CelFilter, type CelVerdict, celEvent, celEventInPieces, compileCelFilter } from '../../core/cel-filter.ts';
import { matchesLabels } from '../../core/label-filters.ts';
import { type Abandonment, type LoopTurn, throwIfAbandoned } from '../../core/loop-turns.ts';
import type { WebhookCandidate } from './webhook-candidates.ts';

/** An event as subscriptions match it. `data` and `metadata` are parsed JSON. */
export interface MatchableEvent {
  type: string;
  data: unknown;
  labels: Readonly<Record<string, string>>;
  metadata: Readonly<Record<string, unknown>>;
}

export type SubscriptionCriteria = Pick<WebhookCandidate, 'filterExpression' | 'labelFilters' | 'labelFilterMode'>;

/** `error` of the filter expression; null: it gave an answer, or was not asked. */
export interface MatchResult {
  isMatch: boolean;
  wasEvaluated: boolean;
  error: string | null;
}

export interface EventMatcher {
  /** To be awaited before `match`, when there is anything to wait for: other work has its turn. */
  before(criteria: SubscriptionCriteria): Promise<void> | null;
  match(criteria: SubscriptionCriteria): MatchResult;
}

const maxCompiled = 5000;
/** All expressions of one event together; what is asked after it fails. Label filters only take turns: each is bounded, and they decide for good. */
const maxMsPerEvent = 500;
export const filtersTakeTooLong = 'the filters of the event take too long together';
const tooLong: CelVerdict = { isMatch: false, error: filtersTakeTooLong };

/** Whether an event meets what subscriptions want of it: their labels first, then their expression. */
export class SubscriptionMatcher {
  readonly #compiled = new LRUCache<string, CelFilter>({ max: maxCompiled });

  /** Returns the matcher of one event, for any number of subscriptions in turn. It judges nothing once `signal` is aborted: throws AbandonedError. */
  of(event: MatchableEvent, turn: LoopTurn, signal?: Abandonment): EventMatcher {
    let seen: CelEvent | null = null;
    /** Prepares the event for expressions: for most events in one piece, and nothing waits. */
    const see = (): Promise<void> | null => {
      const pieces = celEventInPieces(event);
      const isSeen = (): boolean => {
        const startedMs = performance.now();
        const { done, value } = pieces.next();
        turn.spend(performance.now() - startedMs);
        if (done === true) seen = value;
        return done === true;
      };
      return isSeen() ? turn.pause() : seeRest(isSeen);
    };
    const seeRest = async (isSeen: () => boolean): Promise<void> => {
      do {
        await turn.rest();
        throwIfAbandoned(signal);
      } while (!isSeen());
    };
    let leftMs = maxMsPerEvent;
    const timed = <T>(work: () => T): { result: T; tookMs: number } => {
      throwIfAbandoned(signal);
      const startedMs = performance.now();
      const result = work();
      const tookMs = performance.now() - startedMs;
      turn.spend(tookMs);
      return { result, tookMs };
    };
    const charged = <T>(work: () => T): T => {
      const { result, tookMs } = timed(work);
      leftMs -= tookMs;
      return result;
    };
    const verdicts = new Map<string, CelVerdict>();
    const ask = (expression: string): CelVerdict => {
      const known = verdicts.get(expression);
      if (known !== undefined) return known;
      if (leftMs <= 0) return tooLong;
      const verdict = charged(() => {
        seen ??= celEvent(event);
        return this.#filter(expression)(seen);
      });
      verdicts.set(expression, verdict);
      return verdict;
    };
    return {
      before: ({ filterExpression }) => {
        if (filterExpression === null) return turn.pause();
        // To compile an expression may take as long as to evaluate it: something else may come in between.
        if (leftMs > 0 && !this.#compiled.has(filterExpression)) charged(() => this.#filter(filterExpression));
        return seen === null ? see() : turn.pause();
      },
      match: ({ filterExpression, labelFilters, labelFilterMode }) => {
        if (Object.keys(labelFilters).length > 0 && !timed(() => matchesLabels(labelFilters, labelFilterMode, event.labels)).result)
          return { isMatch: false, wasEvaluated: false, error: null };
        if (filterExpression === null) return { isMatch: true, wasEvaluated: false, error: null };
        return { ...ask(filterExpression), wasEvaluated: true };
      },
    };
  }

  #filter(expression: string): CelFilter {
    const known = this.#compiled.get(expression);
    if (known !== undefined) return known;
    const filter = compiled(expression);
    this.#compiled.set(expression, filter);
    return filter;
  }
}

/** One that another release took and this one does not matches nothing, and says so. */
function compiled(expression: string): CelFilter {
  try {
    return compileCelFilter(expression);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return () => ({ isMatch: false, error: text });
  }
}
