import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { call, type Input } from '../api/client.ts';
import type { ReferenceFamily } from '../api/form-schema.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { maxSearchLength, useSettled } from './settled.ts';
import { useOrganization } from './use-api.ts';

export interface Candidate {
  id: string;
  name: string;
  /** The slug, or the name of an event type, which references take, too; null: it has none. */
  slug: string | null;
}

export interface Candidates {
  /** By name: those that are found, and those that are chosen. */
  named: Candidate[];
  /** The field that searches; null: all there are are listed. */
  search: ReactElement | null;
  /** Message while they are not loaded; null: they are. */
  notice: ReactElement | null;
}

const pageSize = 100;
/** Maximum pages of those that the API does not search. */
const maxPages = 10;
export type CandidateFamily = ReferenceFamily | 'webhook-subscriptions';
/** Resources in a list of the API go by pages; these go by cursors. */
const byCursor: readonly CandidateFamily[] = ['webhook-applications', 'webhook-endpoints', 'event-types', 'webhook-subscriptions'];
const unsearched: readonly CandidateFamily[] = ['webhook-endpoints', 'notification-channels', 'webhook-subscriptions'];

/** What can be referred to: the first hundred, or what a search finds. `chosen`: ids or slugs that are named in any case. */
export function useCandidates(to: CandidateFamily, chosen: readonly string[]): Candidates {
  const organization = useOrganization();
  const [text, setText] = useState('');
  const wanted = text.trim().slice(0, maxSearchLength);
  const settled = useSettled(wanted);
  const list = (search: string) => ({
    queryKey: [organization, `GET /${to}`, 'candidates', search],
    queryFn: ({ signal }: { signal: AbortSignal }) => found(to, search, { organization, signal }),
  });
  const first = useQuery(list(''));
  const searched = useQuery({ ...list(settled), enabled: settled !== '' });
  const { data, error, refetch } = settled === '' ? first : searched;
  const listed = data?.named ?? [];
  const absent = chosen.filter((key) => !listed.some((each) => isNamed(each, key)));
  const others = useQuery({
    queryKey: [organization, `GET /${to}`, 'chosen candidates', absent],
    queryFn: ({ signal }) => these(to, absent, { organization, signal }),
    enabled: first.data !== undefined && absent.length > 0,
    placeholderData: keepPreviousData,
  });
  const chosenOthers = (others.data ?? []).filter((each) => absent.some((key) => isNamed(each, key)));
  const all = [...listed, ...chosenOthers];
  const named = [...new Map(all.map((each) => [each.id, each])).values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const what = to.replaceAll('-', ' ');
  const hasMore = first.data?.hasMore === true;
  return {
    named,
    search: hasMore ? (
      <>
        <input
          type="search"
          className="input is-sm"
          aria-label={`Search the ${what}`}
          placeholder={`Search the ${what}`}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <p className="help" role="status">
          {foundWords(settled, settled === wanted ? data : undefined)}
        </p>
      </>
    ) : null,
    notice:
      data !== undefined ? null : error === null ? (
        settled === '' ? (
          <Loading what={what} />
        ) : null
      ) : (
        <Failure message={error.message} retry={() => void refetch()} />
      ),
  };
}

/** Whether a reference by id or slug means it. */
export function isNamed({ id, slug }: Candidate, idOrSlug: string): boolean {
  return id === idOrSlug || slug === idOrSlug;
}

interface Found {
  named: Candidate[];
  hasMore: boolean;
}

function foundWords(search: string, found: Found | undefined): string {
  if (found === undefined) return 'Searching…';
  if (search === '') return 'The first 100 are listed. A search finds the others.';
  if (found.named.length === 0) return 'Nothing has that name.';
  return `${found.named.length}${found.hasMore ? ' or more' : ''} found.`;
}

interface Read {
  organization: string;
  signal: AbortSignal;
}

/** The first hundred that have the text in their names. */
async function found(to: CandidateFamily, search: string, read: Read): Promise<Found> {
  if (!unsearched.includes(to) || search === '') {
    const sent = search === '' ? {} : { search };
    return await page(to, byCursor.includes(to) ? { ...sent, limit: pageSize } : { ...sent, pageSize }, read);
  }
  const named: Candidate[] = [];
  let cursor: string | null = null;
  for (let number = 1; number <= maxPages; number++) {
    const place = cursor === null ? {} : { cursor };
    const next: PageOf = await page(to, byCursor.includes(to) ? { limit: pageSize, ...place } : { page: number, pageSize }, read);
    named.push(...next.named.filter(({ id, name }) => id === search || name.toLowerCase().includes(search.toLowerCase())));
    cursor = next.cursor;
    if (!next.hasMore || named.length >= pageSize) return { named, hasMore: next.hasMore };
  }
  return { named, hasMore: true };
}

interface PageOf extends Found {
  cursor: string | null;
}

async function page(to: CandidateFamily, query: Record<string, unknown>, read: Read): Promise<PageOf> {
  const answer: unknown = await call(`GET /${to}`, { query } as Input<`GET /${CandidateFamily}`>, read);
  const { data, pagination }: { data?: unknown; pagination?: Record<string, unknown> } = Object(answer);
  const rows: unknown[] = Array.isArray(data) ? data : [];
  const { total, page: number, hasMore, nextCursor } = Object(pagination);
  const isLast =
    typeof total === 'number' ? Number(number) * pageSize >= total : hasMore !== undefined ? hasMore !== true : rows.length < pageSize;
  return { named: rows.map((row) => candidate(to, row)), hasMore: !isLast, cursor: typeof nextCursor === 'string' ? nextCursor : null };
}

/** Returns the candidates with these ids or slugs that exist; none if the API does not respond. */
async function these(to: CandidateFamily, keys: readonly string[], read: Read): Promise<Candidate[]> {
  if (byCursor.includes(to)) return (await Promise.all(keys.map((key) => one(to, key, read)))).flat();
  const query = { id: keys.slice(0, pageSize), pageSize };
  const { named } = await page(to, query, read).catch((): Found => ({ named: [], hasMore: false }));
  return named;
}

/** Reads one candidate of a family that the API lists by cursors: these lists take no ids. */
async function one(to: CandidateFamily, key: string, read: Read): Promise<Candidate[]> {
  const answer: unknown = await call(`GET /${to}/{id}`, { path: { id: key } }, read).catch(() => null);
  if (answer === null) return [];
  return [candidate(to, Object(answer).data ?? answer)];
}

function candidate(to: CandidateFamily, row: unknown): Candidate {
  const { id, name, url, slug, eventTypeName, endpointUrl }: Record<string, unknown> = Object(row);
  if (to === 'webhook-subscriptions')
    return { id: String(id), name: `${eventTypeName ?? 'a deleted event type'} to ${endpointUrl ?? 'a deleted endpoint'}`, slug: null };
  const named = to === 'event-types' ? name : slug;
  return { id: String(id), name: String(name ?? url ?? id), slug: typeof named === 'string' ? named : null };
}
