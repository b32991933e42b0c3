import { type CelFilter, celEventInPieces, compileCelSearch } from '../../core/cel-filter.ts';
import { joinedHeaders } from '../../core/joined-headers.ts';
import { keptHeaders } from '../../core/kept-headers.ts';
import { type Abandonment, type LoopTurn, loopTurns } from '../../core/loop-turns.ts';
import { payloadValue } from '../../core/payload-value.ts';
import { type PayloadFormat, readablePayload, storedFormat } from '../../core/readable-payload.ts';
import { decodeEvent } from './event-text.ts';
import {
  type Gathered,
  gatheredEntries,
  gatheredPage,
  indexEntries,
  indexPage,
  type ListedEntry,
  type Listing,
  requireLimit,
  type SearchLimits,
  type TimeRange,
} from './index-pages.ts';
import type { PageQuery, ScannedPage } from './messages.ts';
import { homeShard, recordKey } from './record-key.ts';
import type { ShardReader } from './shard-reader.ts';

/** Records whose events are read together; the first page of a search begins with one, so that every page gets on. */
const maxTogether = 64;

/** Whether the event behind an item meets an expression. */
interface Search<T> {
  /** Id of the event of an item. */
  eventOf: (item: T) => string;
  readerOf: (shard: number) => ShardReader;
  /** Owner of the search's turns of the event loop. */
  turn: LoopTurn;
  signal: Abandonment | undefined;
  filter: CelFilter;
  limits: SearchLimits;
}

/** The search of a list of an organization; null where nothing is searched for. Throws INVALID_QUERY for an expression that is wrong. */
export function searchOf<T>(
  where: string | undefined,
  { org, turn = loopTurns.of(org), signal }: { org: string } & Pick<PageQuery, 'turn' | 'signal'>,
  { eventOf, readerOf, limits }: Pick<Search<T>, 'eventOf' | 'readerOf' | 'limits'>,
): Search<T> | null {
  if (where === undefined) return null;
  return { eventOf, readerOf, limits, turn, signal, filter: compileCelSearch(where) };
}

/** A page of a list, whose members are `gathered` or else are in its indexes. Throws as `indexPage` does. */
export async function listPage<T>(
  shards: readonly ShardReader[],
  listing: Listing<T>,
  range: TimeRange,
  page: PageQuery,
  { gathered, search, fillMs }: { gathered: readonly Gathered<T>[] | null; search: Search<T> | null; fillMs: number },
): Promise<ScannedPage<T>> {
  if (search === null)
    return gathered === null ? await indexPage(shards, listing, range, page, { fillMs }) : gatheredPage(gathered, listing, range, page);
  requireLimit(page);
  const { cursor } = page;
  const entries =
    gathered === null
      ? indexEntries(shards, listing, range, { cursor, limit: maxTogether, maxLooks: search.limits.looks })
      : gatheredEntries(gathered, listing, range, cursor);
  return await searchedPage(entries, search, page);
}

/**
 * A page of those entries of a list whose event meets the expression. The page ends when it is full, when as many entries were read or as much
 * time has gone as in `limits`, or at the end of the list; the cursor continues it.
 */
async function searchedPage<T>(entries: AsyncIterable<ListedEntry<T>>, search: Search<T>, { limit }: PageQuery): Promise<ScannedPage<T>> {
  const { limits } = search;
  const endMs = performance.now() + limits.ms;
  const items: T[] = [];
  const verdicts = new Map<string, boolean>();
  let together = 1;
  let scanned = 0;
  let cursor: (() => string) | null = null;
  let open: ListedEntry<T>[] = [];
  // Two indexes may be read at once.
  const isWithin = (): boolean => scanned + 2 * limits.looks <= limits.scanned && performance.now() < endMs;
  /** Evaluates the open entries. Returns false when the page is complete. */
  const evaluateOpen = async (): Promise<boolean> => {
    const found = open.flatMap(({ item, at: { shard } }) => (item === null ? [] : [{ eventId: search.eventOf(item), shard }]));
    await evaluate(search, found, verdicts, together === 1 ? Number.POSITIVE_INFINITY : endMs);
    together = Math.min(maxTogether, together * 4);
    for (const entry of open) {
      const verdict = entry.item === null ? false : verdicts.get(search.eventOf(entry.item));
      if (verdict === undefined) return false;
      if (verdict && entry.item !== null) items.push(entry.item);
      cursor = entry.cursor;
      if (items.length === limit) return false;
    }
    open = [];
    if (verdicts.size > limits.scanned) verdicts.clear();
    return isWithin();
  };
  const endingHere = () => ({ items, nextCursor: cursor?.() ?? null, scanned });
  for await (const entry of entries) {
    scanned += entry.scanned;
    open.push(entry);
    const isDue = open.length >= together || entry.item === null || !isWithin();
    if (isDue && !(await evaluateOpen())) return endingHere();
  }
  while (open.length > 0) if (!(await evaluateOpen()) && open.length > 0) return endingHere();
  return { items, nextCursor: null, scanned };
}

interface EventPlace {
  eventId: string;
  /** The item's shard; its event is there, too, or at home. */
  shard: number;
}

/** Finds the verdicts of events that have none, until `endMs`; an event that is gone meets nothing. */
async function evaluate<T>(search: Search<T>, places: readonly EventPlace[], verdicts: Map<string, boolean>, endMs: number): Promise<void> {
  const wanted = places.filter(({ eventId }) => !verdicts.has(eventId));
  const missing = await evaluateIn(search, wanted, verdicts, endMs);
  const moved = missing.flatMap(({ eventId, shard }) => {
    const home = homeShard(eventId);
    return home === null || home === shard ? [] : [{ eventId, shard: home }];
  });
  await evaluateIn(search, moved, verdicts, endMs);
  if (performance.now() >= endMs) return;
  for (const { eventId } of missing) if (!verdicts.has(eventId)) verdicts.set(eventId, false);
}

/** The same in these shards; returns those where the event is not. */
async function evaluateIn<T>(
  search: Search<T>,
  places: readonly EventPlace[],
  verdicts: Map<string, boolean>,
  endMs: number,
): Promise<EventPlace[]> {
  const missing = await Promise.all(
    [...Map.groupBy(places, ({ shard }) => shard)].map(async ([shard, group]) => {
      const absent: EventPlace[] = [];
      const ids = [...new Set(group.map(({ eventId }) => eventId))];
      for (let next = 0; next < ids.length && performance.now() < endMs; ) {
        const rest = ids.slice(next);
        const events = await search.readerOf(shard).eventTexts(rest.map((id) => recordKey(id, shard) ?? ''));
        for (const [i, text] of events.entries()) {
          const eventId = rest[i] ?? '';
          if (performance.now() >= endMs) break;
          if (text === null) absent.push({ eventId, shard });
          else verdicts.set(eventId, await search.turn.runShort(verdictInPieces(search.filter, text), search.signal));
        }
        next += events.length;
      }
      return absent;
    }),
  );
  return missing.flat();
}

function* verdictInPieces(filter: CelFilter, text: Buffer): Generator<undefined, boolean> {
  yield;
  const { sourceSlug: type, contentType, headers, webhook, payload, chunks } = decodeEvent(text);
  // One above 1 MiB is not read.
  const data = chunks === undefined ? yield* fieldsOf(payload, storedFormat(contentType, headers)) : null;
  yield;
  const seen = yield* celEventInPieces({
    type,
    data,
    labels: webhook?.labels ?? {},
    metadata: webhook?.metadata ?? {},
    headers: joinedHeaders(keptHeaders(headers)),
  });
  yield;
  return filter(seen).isMatch;
}

/** The payload as filters of routes see it, in chunks. */
function* fieldsOf(payload: Buffer, format: PayloadFormat): Generator<undefined, unknown> {
  const { bytes } = readablePayload(payload, format);
  if (bytes !== payload) yield;
  return yield* payloadValue(bytes);
}
