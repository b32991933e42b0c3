import { setTimeout as pause } from 'node:timers/promises';
import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { decodeCursor, encodeCursor, isBefore, type Position } from './cursor.ts';
import { listed, type OneOrMore } from './message-filter.ts';
import type { PageQuery, ScannedPage } from './messages.ts';
import type { IndexConditions, IndexEntry, ShardReader } from './shard-reader.ts';

const maxPerPage = 100;
/** Up to so many messages that may match are all read, instead of a walk down an index. */
export const maxGathered = 1000;
/** For so long a page of a filter that matches rarely is filled; its cursor leads on. */
export const longestFillMs = 1000;
/** Maximum time for which a full page searches for more. */
const longestLookAheadMs = 100;
/** A walk that has found nothing for so long leaves Redis half of its time to others. */
export const unpacedMs = 50;
export const longestPauseMs = 20;
/** Entries that one script reads where few of them match: a millisecond or two. */
const looksPerScript = { e: 250, m: 1000 };

export interface TimeRange {
  fromMs?: number | undefined;
  toMs?: number | undefined;
}

/** Part of an index of a shard: its entries not older than `fromMs`. */
export interface IndexPart {
  index: string;
  fromMs: number;
}

/** The sources of a list: an index, and a mapping of its entries (null: does not belong to the list). */
export interface Listing<T> {
  /** Several are walked together. */
  index: OneOrMore;
  /** Which ones in a shard, instead of `index`. */
  indexesIn?: ((shard: ShardReader) => readonly string[]) | undefined;
  kind: 'e' | 'm';
  /** Kind of the index's entries; absent: of `kind`. */
  entries?: 'e' | 'm' | undefined;
  /** Which entries may belong to the list, so that no others are read (`list.lua`); absent: all. */
  conditions?: IndexConditions | undefined;
  /** Names the list in cursors, together with the range of time. */
  scope: readonly (string | undefined)[];
  views: (shard: ShardReader, entries: readonly IndexEntry[], index: string) => Promise<(T | null)[]>;
  /** Walked in a shard instead of `index`, the newest first. */
  partsIn?: (shard: ShardReader) => readonly IndexPart[];
  /** A second index with members of the list, and which of its entries these may be. */
  besides?: { index: string; conditions: IndexConditions } | undefined;
  /** Part of the cursors of the list; identifies the index that it was read from. */
  mark?: string | undefined;
}

/** Limits of one page of a search of payloads: entries that it reads, in all and at once, and time. */
export interface SearchLimits {
  scanned: number;
  looks: number;
  ms: number;
}

export const longestSearch: SearchLimits = { scanned: 10_000, looks: 1250, ms: 500 };

/** Options of readers of lists over all shards; `shards`: how many there are, `fillMs`: how long a page is filled, `search`: how long payloads are searched. */
export interface ReaderOptions {
  redis: RedisClient;
  prefix: string;
  shards?: () => number;
  fillMs?: number;
  search?: SearchLimits;
}

/** Throws INVALID_QUERY for a limit that cannot be. */
export function requireLimit({ limit }: PageQuery): void {
  if (limit < 1 || limit > maxPerPage) throw new PosthornError('INVALID_QUERY', `limit must be between 1 and ${maxPerPage}`);
}

/**
 * A page of a list over all shards, newest first: it has `limit` members unless the list ends before, or its time is over. Throws INVALID_QUERY for a
 * limit or a cursor that cannot be.
 */
export async function indexPage<T>(
  shards: readonly ShardReader[],
  listing: Listing<T>,
  range: TimeRange,
  { limit, cursor, looksAhead }: PageQuery,
  { fillMs }: { fillMs: number },
): Promise<ScannedPage<T>> {
  requireLimit({ limit });
  const beganMs = performance.now();
  const items: T[] = [];
  let pageEnd: (() => string) | null = null;
  let scanned = 0;
  const endingHere = () => ({ items, nextCursor: pageEnd?.() ?? null, scanned });
  for await (const { item, scanned: steps, cursor: here } of indexEntries(shards, listing, range, { cursor, limit })) {
    scanned += steps;
    if (item !== null && items.length === limit) return endingHere();
    if (item !== null) items.push(item);
    if (item !== null || items.length < limit) pageEnd = here;
    if (items.length === limit && looksAhead === false) return endingHere();
    const isOver = performance.now() - beganMs >= (items.length === limit ? Math.min(longestLookAheadMs, fillMs) : fillMs);
    if (item === null && isOver) return endingHere();
  }
  return { items, nextCursor: null, scanned };
}

export interface ListedEntry<T> {
  /** Null: so far the walk has come, and it has found nothing since the entry before. */
  item: T | null;
  /** Index entries that were read since the entry before. */
  scanned: number;
  at: Position;
  /** The cursor with which the list continues after it. */
  cursor: () => string;
}

/**
 * The members of a list over all shards, newest first, from `cursor` on, read a chunk at a time. `limit` is how many are wanted about,
 * which decides how much is read at once; `maxLooks`: entries that it reads at once, over all shards.
 */
export async function* indexEntries<T>(
  shards: readonly ShardReader[],
  listing: Listing<T>,
  range: TimeRange,
  { limit, cursor, maxLooks = Number.POSITIVE_INFINITY }: { limit: number; cursor?: string | undefined; maxLooks?: number },
): AsyncGenerator<ListedEntry<T>> {
  const { index, entries: kind = listing.kind, views, conditions, besides, mark = '' } = listing;
  const { fromMs = 0 } = range;
  const scope = scopeOf(listing, range);
  const position = startOf(cursor, scope, range);
  const indexesIn = listing.indexesIn ?? (() => listed(index));
  const walksApart = Math.max(
    1,
    shards.reduce((sum, shard) => sum + indexesIn(shard).length, 0),
  );
  const maxInWalk = Math.max(1, Math.floor(maxLooks / walksApart));
  const count = Math.min(maxInWalk, walksApart === 1 ? maxPerPage : Math.min(maxPerPage, Math.ceil((2 * limit) / walksApart) + 5));
  const walkOf = (shard: ShardReader, parts: readonly IndexPart[], chosen: IndexConditions | undefined) => {
    const load = async (part: IndexPart, before: Position) => {
      const looks = chosen === undefined ? count : Math.min(maxInWalk, looksPerScript[kind]);
      const { entries, last, scanned } = await shard.scan(part.index, kind, {
        position: before,
        fromMs: Math.max(fromMs, part.fromMs),
        count,
        looks,
        ...chosen,
      });
      const items = await views(shard, entries, part.index);
      const steps = entries.flatMap(({ ms, number }, i) => {
        const item = items[i] ?? null;
        return item === null ? [] : [{ at: { ms, shard: shard.shard, number }, item }];
      });
      return { steps, scanned, last: last === null ? null : { ...last, shard: shard.shard } };
    };
    return new Walk(position, parts, load);
  };
  const walks = shards.flatMap((shard) => [
    ...(listing.partsIn === undefined
      ? indexesIn(shard).map((each) => walkOf(shard, [{ index: each, fromMs: 0 }], conditions))
      : [walkOf(shard, listing.partsIn(shard), conditions)]),
    ...(besides === undefined ? [] : [walkOf(shard, [{ index: besides.index, fromMs: 0 }], besides.conditions)]),
  ]);
  const cursorOf = (at: Position) => () => encodeCursor(at, scope, mark);
  let scanned = 0;
  let emptyMs = 0;
  for (;;) {
    const newest = walks.reduce<Walk<T> | null>(
      (best, walk) => (walk.head !== null && (best?.head == null || isBefore(walk.head.at, best.head.at)) ? walk : best),
      null,
    );
    const head = newest?.head ?? null;
    const behind = walks.filter((walk) => walk.isOpen && (head === null || isBefore(walk.position, head.at)));
    if (behind.length === 0) {
      if (newest === null || head === null) return;
      newest.shift();
      yield { item: head.item, scanned, at: head.at, cursor: cursorOf(head.at) };
      scanned = 0;
      emptyMs = 0;
      continue;
    }
    const beganMs = performance.now();
    scanned += (await Promise.all(behind.map((walk) => walk.advance()))).reduce((sum, each) => sum + each, 0);
    const tookMs = performance.now() - beganMs;
    emptyMs += tookMs;
    if (emptyMs > unpacedMs) await pause(Math.min(longestPauseMs, tookMs));
    const reached = reachedBy(walks);
    if (reached === null) continue;
    yield { item: null, scanned, at: reached, cursor: cursorOf(reached) };
    scanned = 0;
  }
}

/** The end of the part that was read without a match; null: there is a member to show first, or nothing is left. */
function reachedBy<T>(walks: readonly Walk<T>[]): Position | null {
  const open = walks.filter(({ isOpen }) => isOpen).map(({ position }) => position);
  const newest = open.reduce<Position | null>((best, each) => (best === null || isBefore(each, best) ? each : best), null);
  const isFirst = newest !== null && walks.every(({ head }) => head === null || isBefore(newest, head.at));
  return isFirst ? newest : null;
}

/** Members that were all read, each with its position: newest first, from `cursor` on. Throws INVALID_QUERY for an invalid cursor. */
export async function* gatheredEntries<T>(
  found: readonly Gathered<T>[],
  listing: Pick<Listing<T>, 'kind' | 'scope'>,
  range: TimeRange,
  cursor: string | undefined,
): AsyncGenerator<ListedEntry<T>> {
  const scope = scopeOf(listing, range);
  for (const { at, item } of gatheredFrom(cursor, found, scope, range))
    yield { item, scanned: 1, at, cursor: () => encodeCursor(at, scope) };
}

export interface Gathered<T> {
  at: Position;
  item: T;
}

function gatheredFrom<T>(cursor: string | undefined, found: readonly Gathered<T>[], scope: string, range: TimeRange): Gathered<T>[] {
  const start = startOf(cursor, scope, range);
  return found
    .filter(({ at }) => isBefore(start, at) && at.ms >= (range.fromMs ?? 0))
    .sort((one, other) => (isBefore(one.at, other.at) ? -1 : 1));
}

/** The page of the same. Throws as `indexPage` does. */
export function gatheredPage<T>(
  found: readonly Gathered<T>[],
  listing: Pick<Listing<T>, 'kind' | 'scope'>,
  range: TimeRange,
  { limit, cursor }: PageQuery,
): ScannedPage<T> {
  requireLimit({ limit });
  const scope = scopeOf(listing, range);
  const rest = gatheredFrom(cursor, found, scope, range);
  const last = rest[limit - 1];
  return {
    items: rest.slice(0, limit).map(({ item }) => item),
    nextCursor: rest.length > limit && last !== undefined ? encodeCursor(last.at, scope) : null,
    scanned: found.length,
  };
}

/** The mark that a cursor of the list has (`Listing`); null without a cursor. Throws INVALID_QUERY. */
export function cursorMark<T>(listing: Pick<Listing<T>, 'kind' | 'scope'>, range: TimeRange, cursor: string | undefined): string | null {
  return cursor === undefined ? null : decodeCursor(cursor, scopeOf(listing, range)).mark;
}

function scopeOf<T>({ kind, scope }: Pick<Listing<T>, 'kind' | 'scope'>, { fromMs = 0, toMs }: TimeRange): string {
  return JSON.stringify([kind, ...scope, fromMs, toMs]);
}

function startOf(cursor: string | undefined, scope: string, { toMs }: TimeRange): Position {
  const { position } = decodeCursor(cursor, scope);
  return toMs !== undefined && toMs + 1 < position.ms ? { ms: toMs + 1, shard: 0, number: 0 } : position;
}

interface Step<T> {
  at: Position;
  item: T;
}

/** The result of reading a part of an index; `last` is the last entry read, null at the end. */
interface Loaded<T> {
  steps: Step<T>[];
  scanned: number;
  last: Position | null;
}

/** Walks down the parts of an index of one shard, a chunk at a time. */
class Walk<T> {
  readonly #load: (part: IndexPart, before: Position) => Promise<Loaded<T>>;
  readonly #parts: IndexPart[];
  #steps: Step<T>[] = [];
  #position: Position;

  constructor(position: Position, parts: readonly IndexPart[], load: (part: IndexPart, before: Position) => Promise<Loaded<T>>) {
    this.#position = position;
    this.#parts = [...parts];
    this.#load = load;
  }

  /** The next member that is known; null: none is. */
  get head(): Step<T> | null {
    return this.#steps[0] ?? null;
  }

  /** Whether the next member is not known, but there may be one behind `position`. */
  get isOpen(): boolean {
    return this.#steps.length === 0 && this.#parts.length > 0;
  }

  get position(): Position {
    return this.#position;
  }

  /** Reads the next entries; returns their number. */
  async advance(): Promise<number> {
    const [part] = this.#parts;
    if (part === undefined) return 0;
    const { steps, last, scanned } = await this.#load(part, this.#position);
    if (last === null) {
      this.#parts.shift();
      // Later entries are older than all of this part.
      if (this.#parts.length > 0 && part.fromMs < this.#position.ms) this.#position = { ms: part.fromMs, shard: 0, number: 0 };
    } else this.#position = last;
    this.#steps = steps;
    return scanned;
  }

  shift(): void {
    this.#steps.shift();
  }
}
