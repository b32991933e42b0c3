import type { Clock } from '../../core/clock.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import type { CandidatePage, ReplayCandidates } from './replay-candidates.ts';

/** An older page is read again: the messages may have changed meanwhile. */
const maxAgeMs = 1000;
/** A replay with smaller pages has the time to read them one by one. */
const minLimit = 50;

type Range = { cursor: string | null; limit: number };

/** Reads the next page of a replay while the one before is queued. */
export class PagesAhead {
  readonly #candidates: Pick<ReplayCandidates, 'next'>;
  readonly #clock: Clock;
  /** By identity; null: the page could not be read. */
  readonly #pages = new Map<string, { cursor: string; atMs: number; page: Promise<CandidatePage | null> }>();

  constructor({ candidates, clock }: { candidates: Pick<ReplayCandidates, 'next'>; clock: Clock }) {
    this.#candidates = candidates;
    this.#clock = clock;
  }

  /** Begins to read the page after the cursor. Pages of events are not read ahead: each event is evaluated by all routes of its source. */
  begin(record: ReplayRecord, upToMs: number, { cursor, limit }: Range): void {
    this.#forgetOld();
    if (cursor === null || limit < minLimit || record.what === 'events') return;
    const page = this.#candidates.next(record, upToMs, { cursor, limit }).catch(() => null);
    this.#pages.set(record.identity, { cursor, atMs: this.#clock.now(), page });
  }

  /** The page behind the cursor, read ahead or now. One that was read ahead may have more candidates than `limit`. */
  async next(record: ReplayRecord, upToMs: number, { cursor, limit }: Range): Promise<CandidatePage> {
    const ahead = this.#pages.get(record.identity);
    this.#pages.delete(record.identity);
    const isTaken = ahead?.cursor === cursor && this.#isFresh(ahead);
    return (isTaken ? await ahead.page : null) ?? (await this.#candidates.next(record, upToMs, { cursor, limit }));
  }

  forget(identity: string): void {
    this.#pages.delete(identity);
  }

  /** Pages of replays that another process has taken over are of no use any more. */
  #forgetOld(): void {
    for (const [identity, ahead] of this.#pages) if (!this.#isFresh(ahead)) this.#pages.delete(identity);
  }

  #isFresh({ atMs }: { atMs: number }): boolean {
    return this.#clock.now() - atMs <= maxAgeMs;
  }
}
