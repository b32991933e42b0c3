import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { EventJudge, type JudgedEvent, type Judgement, type SubscriptionWishes } from './event-judge.ts';
import { FilterErrorNotes } from './filter-error-notes.ts';
import type { CandidatePage, WebhookCandidate, WebhookCandidates } from './webhook-candidates.ts';
import type { WebhookStore } from './webhooks.ts';

/** What an event is sent to: everything that wants it, or of an application, or of some endpoints (of that application). */
export interface Narrowing {
  applicationId: string | null;
  endpointIds: readonly string[];
}

export interface WebhookMatches {
  /** The first ones, in the order in which they were made; at most 1,000. */
  first: WebhookCandidate[];
  total: number;
  /** Where the walk over the others begins and ends; null: there are none. */
  rest: { from: number; end: number } | null;
}

const mostMatchesAtOnce = 1000;
const perPage = 200;
/** How far an expansion goes at a time: a copy of the payload for each shard that has matches among them. */
const defaultWindowPlaces = 2000;
/** Of each event type so many candidates are kept in memory, and of further ones how many there are of each wish. */
const keptPerType = 2000;
const mostWishes = 5000;
/** Over all event types: about 40 MB. */
const mostKept = 100_000;

/** Between so many others have their turn. */
const judgedAtOnce = 250;
const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

interface KeptCandidates {
  version: string;
  candidates: WebhookCandidate[];
  end: number;
  /** Of those after the kept ones. Null: they want too many different things to be counted beforehand. */
  counts: { wishes: SubscriptionWishes; count: number }[] | null;
  /** Where those after the kept ones begin; null: there are none. */
  next: number | null;
}

type Walk = (from: number) => Promise<CandidatePage>;

/** Finds the subscriptions that an event goes to. Rejects with UNAVAILABLE when Redis does not answer. */
export class WebhookMatcher {
  readonly #candidates: WebhookCandidates;
  readonly #notes: FilterErrorNotes;
  readonly #windowPlaces: number;
  readonly #judge = new EventJudge();
  readonly #kept = new LRUCache<string, KeptCandidates>({
    maxSize: mostKept,
    sizeCalculation: ({ candidates, counts }) => 1 + candidates.length + (counts?.length ?? 0),
  });
  readonly #loading = new Map<string, Promise<KeptCandidates>>();

  constructor(options: {
    candidates: WebhookCandidates;
    store: Pick<WebhookStore, 'noteFilterError'>;
    clock: Clock;
    logger: Logger;
    windowPlaces?: number | undefined;
  }) {
    this.#candidates = options.candidates;
    this.#notes = new FilterErrorNotes(options);
    this.#windowPlaces = options.windowPlaces ?? defaultWindowPlaces;
  }

  async match(org: string, eventTypeId: string, { applicationId, endpointIds }: Narrowing, event: JudgedEvent): Promise<WebhookMatches> {
    const judge = this.#judgeOf(org, event);
    if (endpointIds.length > 0) {
      const found = await this.#candidates.ofEndpoints(org, eventTypeId, [...new Set(endpointIds)]);
      const first = found.filter((each) => (applicationId === null || each.applicationId === applicationId) && judge(each));
      return { first, total: first.length, rest: null };
    }
    if (applicationId !== null) return await walkOn(this.#walk(org, eventTypeId, applicationId), 0, noMatches(), judge);
    const kept = await this.#keptOf(org, eventTypeId);
    const matches = noMatches();
    for (const [i, candidate] of kept.candidates.entries()) {
      if (i % judgedAtOnce === judgedAtOnce - 1) await nextTurn();
      add(matches, candidate, judge);
    }
    matches.end = kept.end;
    if (kept.next === null) return summed(matches);
    const judgeWishes = this.#judge.of(event);
    const later = kept.counts?.reduce((sum, { wishes, count }) => sum + (judgeWishes(wishes).isMatch ? count : 0), 0);
    const isKnown = later === 0 || (later !== undefined && matches.first.length === mostMatchesAtOnce);
    if (!isKnown) return await walkOn(this.#walk(org, eventTypeId, null), kept.next, matches, judge);
    matches.total += later;
    if (later > 0) matches.restFrom ??= kept.next;
    return summed(matches);
  }

  /**
   * Matches of one window of a walk that began with `match`; `next` null: it is over. Windows are of places, so that whoever repeats one finds
   * the same ones, but for those that have changed.
   */
  async matchWindow(
    org: string,
    eventTypeId: string,
    { applicationId }: Pick<Narrowing, 'applicationId'>,
    event: JudgedEvent,
    { from, end }: { from: number; end: number },
  ): Promise<{ matches: WebhookCandidate[]; next: number | null }> {
    const judge = this.#judgeOf(org, event);
    const walk = this.#walk(org, eventTypeId, applicationId);
    const windowEnd = Math.min(from + this.#windowPlaces, end);
    const matches: WebhookCandidate[] = [];
    let at: number | null = from;
    while (at !== null && at < windowEnd) {
      const page: CandidatePage = await walk(at);
      for (const candidate of page.candidates) if (candidate.place < windowEnd && judge(candidate)) matches.push(candidate);
      at = page.next;
    }
    return { matches, next: windowEnd >= end ? null : windowEnd };
  }

  #walk(org: string, eventTypeId: string, applicationId: string | null): Walk {
    return (from) =>
      applicationId === null
        ? this.#candidates.ofEventType(org, eventTypeId, from, perPage)
        : this.#candidates.ofApplication(org, eventTypeId, applicationId, from, perPage);
  }

  async #keptOf(org: string, eventTypeId: string): Promise<KeptCandidates> {
    const key = `${org} ${eventTypeId}`;
    const version = await this.#candidates.version(org, eventTypeId);
    const kept = this.#kept.get(key);
    if (kept?.version === version) return kept;
    const loadingKey = `${key} ${version}`;
    const loading = this.#loading.get(loadingKey) ?? this.#load(org, eventTypeId, version).finally(() => this.#loading.delete(loadingKey));
    this.#loading.set(loadingKey, loading);
    const loaded = await loading;
    this.#kept.set(key, loaded);
    return loaded;
  }

  async #load(org: string, eventTypeId: string, version: string): Promise<KeptCandidates> {
    const walk = this.#walk(org, eventTypeId, null);
    const candidates: WebhookCandidate[] = [];
    let page = await walk(0);
    candidates.push(...page.candidates);
    while (page.next !== null && candidates.length < keptPerType) {
      page = await walk(page.next);
      candidates.push(...page.candidates);
    }
    const { next } = page;
    const counts = new Map<string, { wishes: SubscriptionWishes; count: number }>();
    while (page.next !== null && counts.size <= mostWishes) {
      page = await walk(page.next);
      for (const { filterExpression, labelFilters, labelFilterMode } of page.candidates) {
        const wishes = { filterExpression, labelFilters, labelFilterMode };
        const known = counts.get(JSON.stringify(wishes));
        if (known === undefined) counts.set(JSON.stringify(wishes), { wishes, count: 1 });
        else known.count++;
      }
    }
    return { version, candidates, end: page.end, counts: counts.size > mostWishes ? null : [...counts.values()], next };
  }

  /** Judges, and notes with a subscription what its filter has failed with, once. */
  #judgeOf(org: string, event: JudgedEvent): (candidate: WebhookCandidate) => boolean {
    const judge = this.#judge.of(event);
    return (candidate) => {
      const { isMatch, wasAsked, error }: Judgement = judge(candidate);
      if (wasAsked && error !== candidate.lastFilterError && this.#notes.note(org, candidate.subscriptionId, error))
        candidate.lastFilterError = error;
      return isMatch;
    };
  }
}

interface Gathered {
  first: WebhookCandidate[];
  total: number;
  /** Place of the first match that is not among the first ones. */
  restFrom: number | null;
  end: number;
}

function noMatches(): Gathered {
  return { first: [], total: 0, restFrom: null, end: 0 };
}

function add(matches: Gathered, candidate: WebhookCandidate, judge: (candidate: WebhookCandidate) => boolean): void {
  if (!judge(candidate)) return;
  matches.total++;
  if (matches.first.length < mostMatchesAtOnce) matches.first.push(candidate);
  else matches.restFrom ??= candidate.place;
}

async function walkOn(
  walk: Walk,
  from: number,
  matches: Gathered,
  judge: (candidate: WebhookCandidate) => boolean,
): Promise<WebhookMatches> {
  for (let next: number | null = from; next !== null; ) {
    const page: CandidatePage = await walk(next);
    for (const candidate of page.candidates) add(matches, candidate, judge);
    matches.end = page.end;
    next = page.next;
  }
  return summed(matches);
}

function summed({ first, total, restFrom, end }: Gathered): WebhookMatches {
  return { first, total, rest: restFrom === null ? null : { from: restFrom, end } };
}
