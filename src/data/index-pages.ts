import { PosthornError } from '../core/errors.ts';
import { decodeCursor, encodeCursor, type Position } from './cursor.ts';
import type { PageQuery, ViewPage } from './messages.ts';
import type { IndexEntry, ShardReader } from './shard-reader.ts';

const mostPerPage = 100;
/** A filter that matches rarely ends its page after this many entries; the cursor leads on. */
const mostEntriesPerPage = 1000;

export interface TimeRange {
  fromMs?: number;
  toMs?: number;
}

/** What a list is made of: an index, and what becomes of its entries (null: does not belong to the list). */
export interface Listing<T> {
  index: string;
  kind: 'e' | 'm';
  /** Names the list in cursors, together with the range of time. */
  scope: readonly (string | undefined)[];
  views: (shard: ShardReader, entries: readonly IndexEntry[]) => Promise<(T | null)[]>;
}

/** A page of a list over all shards, newest first. Throws INVALID_QUERY for a limit or a cursor that cannot be. */
export async function indexPage<T>(
  shards: readonly ShardReader[],
  listing: Listing<T>,
  range: TimeRange,
  { limit, cursor }: PageQuery,
): Promise<ViewPage<T>> {
  if (limit < 1 || limit > mostPerPage) throw new PosthornError('INVALID_QUERY', `limit must be between 1 and ${mostPerPage}`);
  return await gather(indexEntries(shards, listing, range, { cursor, limit }), { limit, mostEntries: mostEntriesPerPage });
}

export interface ListedEntry<T> {
  /** Null: an entry of the index that does not belong to the list. */
  item: T | null;
  /** The cursor with which the list goes on behind it. */
  cursor: () => string;
}

/**
 * The entries of a list over all shards, newest first, from `cursor` on, read a chunk at a time. `limit` is how many members are wanted about,
 * which decides how much is read at once.
 */
export async function* indexEntries<T>(
  shards: readonly ShardReader[],
  { index, kind, scope: scopeParts, views }: Listing<T>,
  { fromMs = 0, toMs }: TimeRange,
  { limit, cursor }: { limit: number; cursor?: string },
): AsyncGenerator<ListedEntry<T>> {
  const scope = JSON.stringify([kind, ...scopeParts, fromMs, toMs]);
  let position = decodeCursor(cursor, scope);
  if (toMs !== undefined && toMs + 1 < position.ms) position = { ms: toMs + 1, shard: 0, number: 0 };
  const chunk = shards.length === 1 ? mostPerPage : Math.min(mostPerPage, Math.ceil((2 * limit) / shards.length) + 5);
  const walks = shards.map((shard) => {
    const load = async (before: Position) => {
      const entries = await shard.entries(index, kind, { position: before, fromMs, count: chunk });
      const items = await views(shard, entries);
      return entries.map(({ ms, number }, i) => ({ at: { ms, shard: shard.shard, number }, item: items[i] ?? null }));
    };
    return new Walk(position, load);
  });
  for (;;) {
    const heads = await Promise.all(walks.map((walk) => walk.head()));
    const newest = heads.reduce<number>((best, head, i) => {
      const other = heads[best];
      return head != null && (other == null || isBefore(head.at, other.at)) ? i : best;
    }, 0);
    const head = heads[newest];
    if (head == null) return;
    walks[newest]?.shift();
    yield { item: head.item, cursor: () => encodeCursor(head.at, scope) };
  }
}

async function gather<T>(
  entries: AsyncIterable<ListedEntry<T>>,
  { limit, mostEntries }: { limit: number; mostEntries: number },
): Promise<ViewPage<T>> {
  const items: T[] = [];
  let pageEnd: (() => string) | null = null;
  let looked = 0;
  for await (const { item, cursor } of entries) {
    if (item !== null && items.length === limit) return { items, nextCursor: pageEnd?.() ?? null };
    if (item !== null) items.push(item);
    if (item !== null || items.length < limit) pageEnd = cursor;
    looked += 1;
    if (looked === mostEntries) return { items, nextCursor: pageEnd?.() ?? null };
  }
  return { items, nextCursor: null };
}

interface Step<T> {
  at: Position;
  item: T | null;
}

/** Walks down an index of one shard, a chunk at a time. */
class Walk<T> {
  readonly #load: (before: Position) => Promise<Step<T>[]>;
  #position: Position;
  #steps: Step<T>[] = [];
  #isOver = false;

  constructor(position: Position, load: (before: Position) => Promise<Step<T>[]>) {
    this.#position = position;
    this.#load = load;
  }

  /** The next step; null at the end. */
  async head(): Promise<Step<T> | null> {
    if (this.#steps.length === 0 && !this.#isOver) {
      this.#steps = await this.#load(this.#position);
      this.#position = this.#steps.at(-1)?.at ?? this.#position;
      this.#isOver = this.#steps.length === 0;
    }
    return this.#steps[0] ?? null;
  }

  shift(): void {
    this.#steps.shift();
  }
}

/** Whether the first comes before the second in a list. */
function isBefore(one: Position, other: Position): boolean {
  if (one.ms !== other.ms) return one.ms > other.ms;
  return one.shard === other.shard ? one.number > other.number : one.shard > other.shard;
}
