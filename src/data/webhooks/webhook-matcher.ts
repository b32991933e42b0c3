import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { type Abandonment, loopTurns } from '../../core/loop-turns.ts';
import type { ScriptRunner } from '../../core/paced-executor.ts';
import { CandidateCache } from './candidate-cache.ts';
import type { CandidateIndex } from './candidate-index.ts';
import { FilterErrorNotes } from './filter-error-notes.ts';
import type { RedisWebhookStore } from './redis-webhook-store.ts';
import { type MatchableEvent, type SubscriptionCriteria, SubscriptionMatcher } from './subscription-matcher.ts';
import { type CandidatePage, candidatesPerRead, type WebhookCandidate, type WebhookCandidates } from './webhook-candidates.ts';

/** Recipients of an event: all matching subscriptions, those of an application, or those of some of its endpoints. */
export interface Narrowing {
  applicationId: string | null;
  endpointIds: readonly string[];
}

export interface WebhookMatches {
  /** The first ones, in the order in which they were made; at most 1,000. */
  first: WebhookCandidate[];
  /** How many there are or, when they are not counted, how many are known. */
  total: number;
  /** False: they want too many different things, or are not all read yet. */
  isCounted: boolean;
  /** Where the walk over the others begins and ends; null: there are none. */
  rest: { from: number; end: number } | null;
}

const maxMatchesAtOnce = 1000;
/** How far an expansion goes at a time. */
const defaultWindowPlaces = 300;
/** Pages of endpoints of one application that are looked at before the answer. */
const maxPagesOfApplication = 80;
/** For so long an event waits until the candidates of its type are counted, and one whose number decides whether it is taken. */
const countingWaitMs = 500;
const longCountingWaitMs = 3000;

type Walk = (from: number) => Promise<CandidatePage>;

/** Whether an event meets what a subscription wants; of a candidate its last error is noted. */
interface BoundMatcher {
  /** To be awaited before each, when there is anything to wait for. */
  before(criteria: SubscriptionCriteria): Promise<void> | null;
  matchesCandidate(candidate: WebhookCandidate): boolean;
  meetsCriteria(criteria: SubscriptionCriteria): boolean;
}

/** Finds the subscriptions that an event goes to. Rejects with UNAVAILABLE when Redis does not answer. */
export class WebhookMatcher {
  readonly #candidates: WebhookCandidates;
  readonly #notes: FilterErrorNotes;
  readonly #windowPlaces: number;
  readonly #matcher = new SubscriptionMatcher();
  readonly #cache: CandidateCache;

  constructor(options: {
    candidates: WebhookCandidates;
    store: Pick<RedisWebhookStore, 'noteFilterError'>;
    clock: Clock;
    logger: Logger;
    windowPlaces?: number | undefined;
  }) {
    this.#candidates = options.candidates;
    this.#notes = new FilterErrorNotes(options);
    this.#windowPlaces = options.windowPlaces ?? defaultWindowPlaces;
    this.#cache = new CandidateCache(options);
  }

  /**
   * `mustCount`: rather wait longer than not count them; what wants too many different things is not counted all the same. No filter is evaluated
   * once `signal` is aborted: rejects with AbandonedError.
   */
  async match(
    org: string,
    eventTypeId: string,
    { applicationId, endpointIds }: Narrowing,
    event: MatchableEvent,
    { mustCount = false, signal }: { mustCount?: boolean; signal?: Abandonment } = {},
  ): Promise<WebhookMatches> {
    const waitMs = mustCount ? longCountingWaitMs : countingWaitMs;
    const matcher = this.#matcherOf(org, event, signal);
    if (endpointIds.length > 0) {
      const found = await this.#candidates.ofEndpoints(org, eventTypeId, [...new Set(endpointIds)]);
      return allOf(await matching(matcher, applicationId === null ? found : found.filter((each) => each.applicationId === applicationId)));
    }
    if (applicationId !== null) return await this.#matchesOfApplication(org, eventTypeId, { applicationId, waitMs }, matcher);
    const index = await this.#cache.index(org, eventTypeId, { waitMs });
    return await this.#matchesOfAll(org, eventTypeId, index, matcher);
  }

  async #matchesOfAll(org: string, eventTypeId: string, index: CandidateIndex, matcher: BoundMatcher): Promise<WebhookMatches> {
    const { end, groups } = index;
    const early = await matching(matcher, index.first);
    const first = early.slice(0, maxMatchesAtOnce);
    const beyond = early[maxMatchesAtOnce]?.place ?? index.next;
    if (groups === null)
      return { first, total: early.length, isCounted: beyond === null, rest: beyond === null ? null : { from: beyond, end } };
    const later: (readonly number[])[] = [];
    for (const { criteria, numbers } of groups) {
      const waiting = matcher.before(criteria);
      if (waiting !== null) await waiting;
      if (matcher.meetsCriteria(criteria)) later.push(numbers);
    }
    const count = later.reduce((sum, { length }) => sum + length, 0);
    const total = early.length + count;
    if (beyond === null || total <= first.length) return allOf(first);
    if (early.length >= maxMatchesAtOnce) return { first, total, isCounted: true, rest: { from: beyond, end } };
    const wanted = lowest(later, maxMatchesAtOnce - first.length);
    const found = await this.#ofNumbers(org, eventTypeId, wanted);
    first.push(...(await matching(matcher, found)));
    if (wanted.length === count) return allOf(first);
    return { first, total, isCounted: true, rest: { from: (found.at(-1)?.place ?? beyond - 1) + 1, end } };
  }

  /** Places are those of its endpoints, of which the first ones are looked at one by one. */
  async #matchesOfApplication(
    org: string,
    eventTypeId: string,
    { applicationId, waitMs }: { applicationId: string; waitMs: number },
    matcher: BoundMatcher,
  ): Promise<WebhookMatches> {
    const walk = this.#walk(org, eventTypeId, applicationId);
    const found: WebhookCandidate[] = [];
    let application: number | null = null;
    let page = await walk(0);
    for (let pages = 1; ; pages++) {
      application ??= page.candidates[0]?.application ?? null;
      found.push(...(await matching(matcher, page.candidates)));
      if (page.next === null || pages === maxPagesOfApplication) break;
      page = await walk(page.next);
    }
    const first = found.slice(0, maxMatchesAtOnce);
    const beyond = found[maxMatchesAtOnce]?.place ?? page.next;
    const rest = beyond === null ? null : { from: beyond, end: page.end };
    if (page.next === null || application === null) return { first, total: found.length, isCounted: page.next === null, rest };
    const index = await this.#cache.index(org, eventTypeId, { waitMs });
    const numbers = await numbersOf(index, application, matcher);
    if (numbers === null) return { first, total: found.length, isCounted: false, rest };
    if (numbers.length > maxMatchesAtOnce) return { first, total: numbers.length, isCounted: true, rest };
    return allOf(await matching(matcher, await this.#ofNumbers(org, eventTypeId, numbers)));
  }

  async #ofNumbers(org: string, eventTypeId: string, numbers: readonly number[]): Promise<WebhookCandidate[]> {
    const found: WebhookCandidate[] = [];
    for (let i = 0; i < numbers.length; i += candidatesPerRead)
      found.push(...(await this.#candidates.ofNumbers(org, eventTypeId, numbers.slice(i, i + candidatesPerRead))).candidates);
    return found;
  }

  /**
   * Matches of one window of a walk that began with `match`; `next` null: it is over. Windows are of places, so that a caller that repeats one finds
   * the same ones, but for those that have changed. `turns`: of the scripts; null: one after the other. `signal`: as for `match`.
   */
  async matchWindow(
    org: string,
    eventTypeId: string,
    { applicationId }: Pick<Narrowing, 'applicationId'>,
    event: MatchableEvent,
    { from, end }: { from: number; end: number },
    { turns = null, signal }: { turns?: ScriptRunner | null; signal?: Abandonment } = {},
  ): Promise<{ matches: WebhookCandidate[]; next: number | null }> {
    const matcher = this.#matcherOf(org, event, signal);
    const walk = this.#walk(org, eventTypeId, applicationId);
    const windowEnd = Math.min(from + this.#windowPlaces, end);
    const matches: WebhookCandidate[] = [];
    let at: number | null = from;
    while (at !== null && at < windowEnd) {
      const from: number = at;
      const page: CandidatePage = await (turns === null ? walk(from) : turns.run(() => walk(from)));
      const inWindow = page.candidates.filter(({ place }) => place < windowEnd);
      matches.push(...(await matching(matcher, inWindow)));
      at = page.next;
    }
    return { matches, next: windowEnd >= end ? null : windowEnd };
  }

  #walk(org: string, eventTypeId: string, applicationId: string | null): Walk {
    return (from) =>
      applicationId === null
        ? this.#candidates.ofEventType(org, eventTypeId, from, candidatesPerRead)
        : this.#candidates.ofApplication(org, eventTypeId, applicationId, from, candidatesPerRead);
  }

  #matcherOf(org: string, event: MatchableEvent, signal: Abandonment | undefined): BoundMatcher {
    const { before, match } = this.#matcher.of(event, loopTurns.of(org), signal);
    return {
      before,
      meetsCriteria: (criteria) => match(criteria).isMatch,
      matchesCandidate: (candidate) => {
        const { isMatch, wasEvaluated, error } = match(candidate);
        const { subscriptionId, filterExpression } = candidate;
        if (wasEvaluated && error !== candidate.lastFilterError && this.#notes.note(org, subscriptionId, { filterExpression, error }))
          candidate.lastFilterError = error;
        return isMatch;
      },
    };
  }
}

/** They are all that there are. */
function allOf(first: WebhookCandidate[]): WebhookMatches {
  return { first, total: first.length, isCounted: true, rest: null };
}

/** Returns the lowest numbers of ascending lists, ascending. */
function lowest(lists: readonly (readonly number[])[], count: number): number[] {
  const candidates = lists.flatMap((numbers) => numbers.slice(0, count));
  return candidates.sort((one, other) => one - other).slice(0, count);
}

/** Those that the event meets. */
async function matching(matcher: BoundMatcher, candidates: readonly WebhookCandidate[]): Promise<WebhookCandidate[]> {
  const found: WebhookCandidate[] = [];
  for (const candidate of candidates) {
    const waiting = matcher.before(candidate);
    if (waiting !== null) await waiting;
    if (matcher.matchesCandidate(candidate)) found.push(candidate);
  }
  return found;
}

/** Subscriptions of an application that match; null: not all are known. */
async function numbersOf({ first, groups }: CandidateIndex, application: number, matcher: BoundMatcher): Promise<number[] | null> {
  if (groups === null) return null;
  const early = await matching(
    matcher,
    first.filter((candidate) => candidate.application === application),
  );
  const found = early.map(({ number }) => number);
  for (const { criteria, numbers, applications } of groups) {
    const waiting = matcher.before(criteria);
    if (waiting !== null) await waiting;
    if (matcher.meetsCriteria(criteria)) found.push(...numbers.filter((_, i) => applications[i] === application));
  }
  return found;
}
