import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { Semaphore } from '../../core/semaphore.ts';
import { type CandidateIndex, CandidateIndexBuilder } from './candidate-index.ts';
import { type CandidatePage, candidatesPerRead, maxPerRead, type WebhookCandidates } from './webhook-candidates.ts';

/** Over all event types: about 40 MB. */
const maxKept = 100_000;
/** Candidates with more changes than this are read completely. */
const maxChanged = 2000;
/** Where very many are disabled fewer are read before the answer. */
const maxFirstPages = 40;
/** After the others of an event type were read they are not read again for so many times as long. */
const completionPauses = 4;
const maxPauses = 1000;

interface Kept {
  version: string;
  index: CandidateIndex;
}

/**
 * The candidates of event types, as they are when they are asked for: what has changed since they were read is read again, all else is
 * kept. Of very many the first ones are there at once, the others are counted meanwhile. Rejects with UNAVAILABLE when Redis does not answer.
 */
export class CandidateCache {
  readonly #candidates: WebhookCandidates;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #kept = new LRUCache<string, Kept>({ maxSize: maxKept, sizeCalculation: ({ index }) => index.size });
  readonly #refreshing = new Map<string, Promise<Kept>>();
  readonly #completing = new Map<string, Promise<void>>();
  readonly #pausesUntilMs = new LRUCache<string, number>({ max: maxPauses });
  readonly #oneAtATime = new Semaphore(1);

  constructor({ candidates, clock, logger }: { candidates: WebhookCandidates; clock: Clock; logger: Logger }) {
    this.#candidates = candidates;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Waits at most so long until those after the first ones are counted, too. */
  async index(org: string, eventTypeId: string, { waitMs }: { waitMs: number }): Promise<CandidateIndex> {
    const key = keyOf(org, eventTypeId);
    const index = await this.#current(org, eventTypeId);
    if (index.coverage !== 'first') return index;
    // What was broken off begins anew.
    if (!this.#completing.has(key) && this.#kept.delete(key)) await this.#current(org, eventTypeId);
    const completing = this.#completing.get(key);
    if (completing === undefined) return index;
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(waitMs, resolve);
    await Promise.race([completing, isLate]);
    cancel();
    return await this.#current(org, eventTypeId);
  }

  async #current(org: string, eventTypeId: string): Promise<CandidateIndex> {
    const key = keyOf(org, eventTypeId);
    const version = await this.#candidates.version(org, eventTypeId);
    const kept = this.#kept.get(key);
    if (kept?.version === version) return kept.index;
    const underWay = this.#refreshing.get(key);
    if (underWay !== undefined) {
      const refreshed = await underWay;
      if (refreshed.version === version) return refreshed.index;
    }
    // One that began after the version was read sees what that told.
    return (await (this.#refreshing.get(key) ?? this.#refresh(org, eventTypeId))).index;
  }

  #refresh(org: string, eventTypeId: string): Promise<Kept> {
    const key = keyOf(org, eventTypeId);
    const work = this.#refreshed(org, eventTypeId).finally(() => this.#refreshing.delete(key));
    this.#refreshing.set(key, work);
    return work;
  }

  async #refreshed(org: string, eventTypeId: string): Promise<Kept> {
    const key = keyOf(org, eventTypeId);
    const { version, changesSince } = await this.#candidates.state(org, eventTypeId);
    const known = this.#kept.get(key);
    const index = known === undefined ? null : await this.#changed(org, eventTypeId, known.index, changesSince(known.version));
    const kept = { version, index: index ?? (await this.#read(org, eventTypeId, version)) };
    this.#kept.set(key, kept);
    return kept;
  }

  /** Null: too much has changed. */
  async #changed(
    org: string,
    eventTypeId: string,
    index: CandidateIndex,
    changes: { subscriptions: number[]; applications: number[] } | null,
  ): Promise<CandidateIndex | null> {
    if (changes === null) return null;
    const numbers = [...new Set([...changes.subscriptions, ...changes.applications.flatMap((each) => index.numbersOf(each))])];
    if (numbers.length > maxChanged) return null;
    const pages: CandidatePage[] = [];
    for (let i = 0; i < numbers.length; i += maxPerRead)
      pages.push(await this.#candidates.ofNumbers(org, eventTypeId, numbers.slice(i, i + maxPerRead)));
    if (numbers.length === 0) return index;
    return index.changed(numbers, {
      candidates: pages.flatMap((page) => page.candidates),
      dormant: pages.flatMap((page) => page.dormant),
    });
  }

  /** The first ones; where there are more, these are read behind it. */
  async #read(org: string, eventTypeId: string, version: string): Promise<CandidateIndex> {
    const builder = new CandidateIndexBuilder();
    let next: number | null = 0;
    for (let pages = 0; next !== null && pages < maxFirstPages && !builder.hasFirst; pages++) {
      const page: CandidatePage = await this.#candidates.ofEventType(org, eventTypeId, next, maxPerRead);
      builder.add(page);
      next = page.next;
    }
    if (next !== null) this.#complete(org, eventTypeId, { version, builder, next });
    return builder.build();
  }

  #complete(
    org: string,
    eventTypeId: string,
    { version, builder, next }: { version: string; builder: CandidateIndexBuilder; next: number },
  ): void {
    const key = keyOf(org, eventTypeId);
    if (this.#completing.has(key)) return;
    const clock = this.#clock;
    const read = async (): Promise<void> => {
      const startedAtMs = clock.now();
      for (let from: number | null = next; from !== null && !builder.isTooMuch; ) {
        const page: CandidatePage = await this.#candidates.ofEventType(org, eventTypeId, from, candidatesPerRead);
        builder.add(page);
        from = page.next;
      }
      this.#pausesUntilMs.set(key, clock.now() + (clock.now() - startedAtMs) * completionPauses);
      // What has changed meanwhile is read when it is asked for.
      this.#kept.set(key, { version, index: builder.build() });
    };
    const work = clock.sleep(Math.max(0, (this.#pausesUntilMs.get(key) ?? 0) - clock.now())).then(() => this.#oneAtATime.run(1, read));
    const logged = work.catch((error: unknown) =>
      this.#logger.debug({ err: error, eventTypeId }, 'reading the candidate subscriptions failed before the last page'),
    );
    this.#completing.set(key, logged);
    void logged.then(() => this.#completing.delete(key));
  }
}

function keyOf(org: string, eventTypeId: string): string {
  return `${org} ${eventTypeId}`;
}
