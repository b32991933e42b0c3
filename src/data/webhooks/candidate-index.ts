import type { SubscriptionCriteria } from './subscription-matcher.ts';
import type { CandidatePage, WebhookCandidate } from './webhook-candidates.ts';

/** Candidates that are kept whole; of further ones what they want is kept. */
const keptWhole = 2000;
/** Further ones that want more different things than this are not kept: an expansion finds them. */
const maxWishes = 20_000;

/** Subscriptions that want the same. */
export interface CriteriaGroup {
  criteria: SubscriptionCriteria;
  /** Numbers of the subscriptions, ascending. */
  numbers: readonly number[];
  /** Numbers of their applications. */
  applications: readonly number[];
}

/** Contents of an index: all candidates, the first ones so far, or only the first ones because the others have too many different criteria. */
export type IndexCoverage = 'all' | 'first' | 'tooMany';

interface Content {
  first: readonly WebhookCandidate[];
  /** Place where those begin that are not kept whole; null: all are. */
  next: number | null;
  groups: ReadonlyMap<string, CriteriaGroup>;
  coverage: IndexCoverage;
  /** By application the subscriptions that wait for it to be enabled. */
  dormant: ReadonlyMap<number, ReadonlySet<number>>;
  end: number;
}

/** The candidates of an event type at one version; it does not change. */
export class CandidateIndex {
  readonly #content: Content;

  private constructor(content: Content) {
    this.#content = content;
  }

  static of(content: Content): CandidateIndex {
    return new CandidateIndex(content).#bounded();
  }

  /** The first candidates, in their order. */
  get first(): readonly WebhookCandidate[] {
    return this.#content.first;
  }

  /** Criteria of the candidates after the first ones; null: unknown. */
  get groups(): readonly CriteriaGroup[] | null {
    return this.#content.coverage === 'all' ? [...this.#content.groups.values()] : null;
  }

  get coverage(): IndexCoverage {
    return this.#content.coverage;
  }

  /** The place where those after the first ones begin; null: there are none. */
  get next(): number | null {
    return this.#content.next;
  }

  /** Higher than all places. */
  get end(): number {
    return this.#content.end;
  }

  /** Memory of the index, in candidates. */
  get size(): number {
    const { first, groups, dormant } = this.#content;
    let numbers = 0;
    for (const group of groups.values()) numbers += group.numbers.length;
    for (const group of dormant.values()) numbers += group.size;
    return 1 + first.length + groups.size + Math.ceil(numbers / 20);
  }

  /** Subscriptions of an application, as far as they are known. */
  numbersOf(application: number): number[] {
    const { first, groups, dormant } = this.#content;
    const numbers = first.filter((each) => each.application === application).map(({ number }) => number);
    for (const group of groups.values())
      for (const [i, each] of group.applications.entries()) if (each === application) numbers.push(group.numbers[i] ?? 0);
    return [...numbers, ...(dormant.get(application) ?? [])];
  }

  /** The index once these subscriptions are what the page says of them; those that are not in it are none any more. */
  changed(numbers: readonly number[], page: Pick<CandidatePage, 'candidates' | 'dormant'>): CandidateIndex {
    const gone = new Set(numbers);
    const { next, coverage } = this.#content;
    const isFirst = ({ place }: WebhookCandidate): boolean => next === null || place < next;
    const first = [...this.#content.first.filter(({ number }) => !gone.has(number)), ...page.candidates.filter(isFirst)].sort(
      (one, other) => one.number - other.number,
    );
    const groups = new Map(this.#content.groups);
    for (const [key, group] of groups) {
      if (!group.numbers.some((number) => gone.has(number))) continue;
      const kept = group.numbers.map((number, i) => [number, group.applications[i] ?? 0] as const).filter(([number]) => !gone.has(number));
      if (kept.length === 0) groups.delete(key);
      else groups.set(key, withMembers(group.criteria, kept));
    }
    for (const candidate of coverage === 'all' ? page.candidates : []) {
      if (isFirst(candidate)) continue;
      const group = groups.get(keyOf(candidate)) ?? { criteria: criteriaOf(candidate), numbers: [], applications: [] };
      const members = group.numbers.map((number, i) => [number, group.applications[i] ?? 0] as const);
      members.push([candidate.number, candidate.application]);
      groups.set(
        keyOf(candidate),
        withMembers(
          group.criteria,
          members.sort(([one], [other]) => one - other),
        ),
      );
    }
    const dormant = new Map(
      [...this.#content.dormant].map(([application, each]) => [application, new Set([...each].filter((n) => !gone.has(n)))]),
    );
    for (const { number, application } of page.dormant) dormant.set(application, (dormant.get(application) ?? new Set()).add(number));
    const end = Math.max(this.#content.end, ...page.candidates.map(({ place }) => place + 1));
    return new CandidateIndex({ ...this.#content, first, groups, dormant, end }).#bounded();
  }

  /** Groups the candidates beyond the bounds by their criteria, and forgets the groups if there are too many. */
  #bounded(): CandidateIndex {
    const { first, next, groups } = this.#content;
    if (groups.size > maxWishes) return new CandidateIndex({ ...this.#content, groups: new Map(), coverage: 'tooMany' });
    const [beyond] = first.slice(keptWhole, keptWhole + 1);
    if (next !== null || beyond === undefined) return this;
    const whole = new CandidateIndex({ ...this.#content, first: first.slice(0, keptWhole), next: beyond.place });
    return whole.changed([], { candidates: first.slice(keptWhole), dormant: [] });
  }
}

/** Makes an index from all candidates, page by page, in their order. */
export class CandidateIndexBuilder {
  readonly #first: WebhookCandidate[] = [];
  readonly #groups = new Map<string, { criteria: SubscriptionCriteria; numbers: number[]; applications: number[] }>();
  readonly #dormant = new Map<number, Set<number>>();
  #beyond: number | null = null;
  #last: CandidatePage | null = null;

  add(page: CandidatePage): void {
    this.#last = page;
    for (const candidate of page.candidates) {
      if (this.#first.length < keptWhole) {
        this.#first.push(candidate);
        continue;
      }
      this.#beyond ??= candidate.place;
      const key = keyOf(candidate);
      const group = this.#groups.get(key) ?? { criteria: criteriaOf(candidate), numbers: [], applications: [] };
      group.numbers.push(candidate.number);
      group.applications.push(candidate.application);
      this.#groups.set(key, group);
    }
    for (const { number, application } of page.dormant)
      this.#dormant.set(application, (this.#dormant.get(application) ?? new Set()).add(number));
  }

  /** All candidates that are kept whole are there. */
  get hasFirst(): boolean {
    return this.#first.length === keptWhole;
  }

  /** The candidates have more different criteria than are kept. */
  get isTooMuch(): boolean {
    return this.#groups.size > maxWishes;
  }

  /** Makes the index of what was added; what comes after the last page is not known. */
  build(): CandidateIndex {
    const next = this.#beyond ?? this.#last?.next ?? null;
    return CandidateIndex.of({
      first: [...this.#first],
      next,
      groups: new Map(this.#groups),
      coverage: this.#last?.next == null ? 'all' : this.isTooMuch ? 'tooMany' : 'first',
      dormant: new Map(this.#dormant),
      end: this.#last?.end ?? 0,
    });
  }
}

function withMembers(criteria: SubscriptionCriteria, members: readonly (readonly [number, number])[]): CriteriaGroup {
  return { criteria, numbers: members.map(([number]) => number), applications: members.map(([, application]) => application) };
}

function criteriaOf({ filterExpression, labelFilters, labelFilterMode }: WebhookCandidate): SubscriptionCriteria {
  return { filterExpression, labelFilters, labelFilterMode };
}

function keyOf(candidate: WebhookCandidate): string {
  return JSON.stringify(criteriaOf(candidate));
}
