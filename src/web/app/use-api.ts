import {
  type InfiniteData,
  type UseInfiniteQueryResult,
  type UseMutationResult,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { type Answer, ApiError, call, type Input, type OperationName, readBytes } from '../api/client.ts';
import type { Operations } from '../api/schema.ts';
import { useIdempotencyKey } from './idempotency-key.ts';

type ReadName = Extract<OperationName, `GET ${string}`>;
type WriteName = Exclude<OperationName, ReadName>;

/** The organization that the address names. */
export function useOrganization(): string {
  const { org } = useParams({ strict: false });
  return org ?? '';
}

/** Failed queries are repeated, so that a screen recovers by itself. */
export const againMs = 5000;

export interface ReadOptions {
  /** Milliseconds between two readings while the page is seen. Default: it is read once, and when the page is seen again. */
  everyMs?: number;
  isEnabled?: boolean;
}

/** Response to a GET. That for another query of the same thing stays while the new one is on its way. */
export function useRead<Name extends ReadName>(
  name: Name,
  input: Input<Name> = {},
  { everyMs, isEnabled = true }: ReadOptions = {},
): UseQueryResult<Answer<Name>, ApiError> {
  const organization = useOrganization();
  return useQuery<Answer<Name>, ApiError>({
    queryKey: [organization, name, input],
    queryFn: ({ signal }) => call(name, input, { organization, signal }),
    refetchInterval: ({ state }) => (state.status === 'error' ? againMs : (everyMs ?? false)),
    enabled: isEnabled,
    placeholderData: (previous, query) => (isOfSameThing(query?.queryKey, [organization, name, input]) ? previous : undefined),
  });
}

/** Whether two keys of `useRead` differ at most in the query. */
function isOfSameThing(one: readonly unknown[] | undefined, other: readonly unknown[]): boolean {
  const pathOf = (key: readonly unknown[]): string => JSON.stringify([key[0], key[1], Object(key[2]).path]);
  return one !== undefined && pathOf(one) === pathOf(other);
}

/** Where the bytes that `useBytes` has read are kept. */
export function bytesKey<Name extends ReadName>(organization: string, name: Name, input: Input<Name>): readonly unknown[] {
  return [organization, name, input, 'bytes'];
}

/** The bytes of a GET; read once. */
export function useBytes<Name extends ReadName>(
  name: Name,
  input: Input<Name>,
  { isEnabled = true }: { isEnabled?: boolean } = {},
): UseQueryResult<Uint8Array<ArrayBuffer>, ApiError> {
  const organization = useOrganization();
  return useQuery<Uint8Array<ArrayBuffer>, ApiError>({
    queryKey: bytesKey(organization, name, input),
    queryFn: ({ signal }) => readBytes(name, input, { organization, signal }),
    enabled: isEnabled,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}

type CursorListName = Extract<
  { [Name in ReadName]: Answer<Name> extends { data: unknown[]; pagination: { nextCursor: string | null } } ? Name : never }[ReadName],
  ReadName
>;
export type RowOf<Name extends CursorListName> = Answer<Name>['data'][number];

export interface CursorList<Row> {
  /** Key of the list: organization, operation and query. */
  key: string;
  rows: Row[];
  /** Records read, where a filter has to scan. */
  scanned: number | null;
  error: ApiError | null;
  isLoading: boolean;
  hasMore: boolean;
  /** Further pages are read as the reader comes to the end. Otherwise a page may find nothing, or has failed, and the reader requests it. */
  readsOn: boolean;
  /** The list ends here, though there are more. */
  isCut: boolean;
  loadMore: () => void;
  refresh: () => void;
}

const pageSize = 100;
/** So a list has 10,000 rows at most. */
const maxPages = 100;
const listEveryMs = 10_000;

interface ListState {
  state: { status: string; data?: { pages: unknown[] } | undefined };
}

export interface ListOptions {
  /** All of its pages are read again by themselves, each as seldom as there are pages. */
  isWhole?: boolean;
}

const pagesIn = ({ state }: ListState): number => state.data?.pages.length ?? 0;
/** A list of one page is read again by itself; of several it would take a call for each. */
const hasOnePage = (list: ListState): boolean => pagesIn(list) <= 1;
const ofLists = ({ isWhole = false }: ListOptions) => ({
  refetchInterval: (list: ListState): number | false => {
    if (!hasOnePage(list)) return isWhole ? listEveryMs * pagesIn(list) : false;
    return list.state.status === 'error' ? againMs : listEveryMs;
  },
  refetchOnWindowFocus: hasOnePage,
});

/** Common data of the pages of all lists. `rowsOf` takes the rows out of a page; it is always the same function. */
function useListParts<Page, Row>(
  { data, error, isLoading, isFetching, hasNextPage, fetchNextPage, refetch }: UseInfiniteQueryResult<InfiniteData<Page, unknown>>,
  rowsOf: (page: Page) => Row[],
): Omit<CursorList<Row>, 'key' | 'scanned' | 'readsOn' | 'isCut'> {
  const rows = useMemo(() => data?.pages.flatMap(rowsOf) ?? [], [data, rowsOf]);
  const loadMore = useCallback(() => {
    // Two components that show the same list read its pages once.
    if (!isFetching) void fetchNextPage({ cancelRefetch: false });
  }, [isFetching, fetchNextPage]);
  return {
    rows,
    error: error instanceof ApiError ? error : null,
    isLoading,
    hasMore: hasNextPage,
    loadMore,
    refresh: () => void refetch(),
  };
}

function dataOf<Row>({ data }: { data: Row[] }): Row[] {
  return data;
}

/** A list with a cursor, page after page. */
export function useCursorList<Name extends CursorListName>(
  name: Name,
  query: Input<Name>['query'],
  options: ListOptions = {},
): CursorList<RowOf<Name>> {
  const organization = useOrganization();
  const list = useInfiniteQuery({
    ...ofLists(options),
    queryKey: [organization, name, query, 'pages'],
    queryFn: async ({ signal, pageParam }) => {
      const paged = { query: { ...query, limit: pageSize, ...(pageParam === null ? {} : { cursor: pageParam }) } };
      return await call(name, paged as Input<Name>, { organization, signal });
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ pagination }, all) => (pagination.hasMore && all.length < maxPages ? pagination.nextCursor : null),
  });
  const read = useListParts(list, dataOf<RowOf<Name>>);
  const pages = list.data?.pages ?? [];
  const scanned = pages.reduce((sum, { pagination }) => sum + (pagination.scanned ?? 0), 0);
  return {
    ...read,
    key: JSON.stringify([organization, name, query]),
    scanned: pages.some(({ pagination }) => pagination.scanned !== undefined) ? scanned : null,
    readsOn: read.hasMore && list.error === null && pages.at(-1)?.data.length === pageSize,
    isCut: pages.length >= maxPages && pages.at(-1)?.pagination.hasMore === true,
  };
}

type PagesName = Extract<
  { [Name in ReadName]: Operations[Name]['query'] extends { page?: number; pageSize?: number } ? Name : never }[ReadName],
  ReadName
>;

/** Number of rows of all pages, if the response has it. */
function totalOf(answer: unknown): number {
  const total: unknown = Object(Object(answer).pagination).total;
  return typeof total === 'number' ? total : Number.POSITIVE_INFINITY;
}

/** A list that the API gives in numbered pages, page after page. `rowsOf` takes the rows out of an answer; it is always the same function. */
export function usePages<Name extends PagesName, Row>(
  name: Name,
  query: Input<Name>['query'],
  rowsOf: (answer: Answer<Name>) => Row[],
  options: ListOptions = {},
): CursorList<Row> {
  const organization = useOrganization();
  const list = useInfiniteQuery({
    ...ofLists(options),
    queryKey: [organization, name, query, 'pages'],
    queryFn: async ({ signal, pageParam }) => {
      const paged = { query: { ...query, page: pageParam, pageSize } };
      return await call(name, paged as Input<Name>, { organization, signal });
    },
    initialPageParam: 1,
    getNextPageParam: (answer, all, page) => {
      const isLast = rowsOf(answer).length < pageSize || page * pageSize >= totalOf(answer);
      return isLast || all.length >= maxPages ? undefined : page + 1;
    },
  });
  const read = useListParts(list, rowsOf);
  return {
    ...read,
    key: JSON.stringify([organization, name, query]),
    scanned: null,
    readsOn: read.hasMore && list.error === null,
    isCut: (list.data?.pages.length ?? 0) >= maxPages,
  };
}

/** Acts that are meant to be done again: each press is a request of its own. */
function isRepeatable(name: WriteName): boolean {
  return name.endsWith('/test') || name.endsWith('/reset-circuit');
}

/** The API answers these after the receiver has, whose deadline is 120 s at most. */
function waitsForReceiver(name: WriteName): boolean {
  return name.endsWith('/test') || name.endsWith('/trigger');
}
const receiverDeadlineMs = 130_000;

export interface WriteOptions {
  /** The response has a secret: it is forgotten with the component that requested it. */
  isSecret?: boolean;
  /** One call of many: what has been read is not read again after each of them. `useReadAgain` does that once. A call whose end is not known keeps its Idempotency-Key until `reset`. */
  isStep?: boolean;
}

/** Reads again what has been read of the organization. */
export function useReadAgain(): () => void {
  const organization = useOrganization();
  const client = useQueryClient();
  return useCallback(() => void client.invalidateQueries({ queryKey: [organization] }), [client, organization]);
}

/** A call that changes something; what has been read of the organization is read again after it. `reset` also forgets a request whose end is not known. */
export function useWrite<Name extends WriteName>(
  name: Name,
  { isSecret = false, isStep = false }: WriteOptions = {},
): UseMutationResult<Answer<Name>, ApiError, Input<Name>> {
  const organization = useOrganization();
  const readAgain = useReadAgain();
  const keys = useIdempotencyKey({ expires: !isStep });
  const isKeyed = name.startsWith('POST ') && !isRepeatable(name);
  const mutation = useMutation<Answer<Name>, ApiError, Input<Name>>({
    mutationFn: (input) =>
      call(name, input, {
        organization,
        ...(isKeyed && { idempotencyKey: keys.keyOf(input) }),
        ...(waitsForReceiver(name) && { deadlineMs: receiverDeadlineMs }),
      }),
    ...(isSecret && { gcTime: 0 }),
    onSettled: (_answer, error) => {
      keys.hasEnded(error);
      // The caller does not wait for what is read again.
      if (!isStep) readAgain();
    },
  });
  const reset = (): void => {
    keys.drop();
    mutation.reset();
  };
  return { ...mutation, reset };
}
