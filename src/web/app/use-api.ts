import {
  keepPreviousData,
  type UseMutationResult,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { type Answer, ApiError, call, type Input, type OperationName, readBytes } from '../api/client.ts';
import type { Operations } from '../api/schema.ts';

type ReadName = Extract<OperationName, `GET ${string}`>;
type WriteName = Exclude<OperationName, ReadName>;

/** The organization that the address names. */
export function useOrganization(): string {
  const { org } = useParams({ strict: false });
  return org ?? '';
}

/** What has failed is asked for again, so that a screen recovers by itself. */
const againMs = 5000;

export interface ReadOptions {
  /** Milliseconds between two readings while the page is seen. Default: it is read once, and when the page is seen again. */
  everyMs?: number;
  isEnabled?: boolean;
}

/** What a GET answers. An answer before stays while a new one is on its way. */
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
    placeholderData: keepPreviousData,
  });
}

/** The bytes that a GET answers; read once. */
export function useBytes<Name extends ReadName>(
  name: Name,
  input: Input<Name>,
  { isEnabled = true }: { isEnabled?: boolean } = {},
): UseQueryResult<Uint8Array<ArrayBuffer>, ApiError> {
  const organization = useOrganization();
  return useQuery<Uint8Array<ArrayBuffer>, ApiError>({
    queryKey: [organization, name, input, 'bytes'],
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
  rows: Row[];
  /** Looked at, where a filter has to look. */
  scanned: number | null;
  error: ApiError | null;
  isLoading: boolean;
  isRefreshing: boolean;
  hasMore: boolean;
  loadMore: () => void;
  refresh: () => void;
}

/** A list with a cursor, page after page. */
export function useCursorList<Name extends CursorListName>(name: Name, query: Input<Name>['query']): CursorList<RowOf<Name>> {
  const organization = useOrganization();
  const { data, error, isLoading, isFetching, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: [organization, name, query, 'pages'],
    queryFn: async ({ signal, pageParam }) => {
      const paged = { query: { ...query, limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) } };
      return await call(name, paged as Input<Name>, { organization, signal });
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ pagination }) => (pagination.hasMore ? pagination.nextCursor : null),
    maxPages: 100,
    refetchInterval: ({ state }) => (state.status === 'error' ? againMs : false),
  });
  const pages = data?.pages ?? [];
  const scanned = pages.reduce((sum, { pagination }) => sum + (pagination.scanned ?? 0), 0);
  return {
    rows: pages.flatMap((page): RowOf<Name>[] => page.data),
    scanned: pages.some(({ pagination }) => pagination.scanned !== undefined) ? scanned : null,
    error: error instanceof ApiError ? error : null,
    isLoading,
    isRefreshing: isFetching && !isLoading,
    hasMore: hasNextPage,
    loadMore: () => {
      if (!isFetching) void fetchNextPage();
    },
    refresh: () => void refetch(),
  };
}

type PagesName = Extract<
  { [Name in ReadName]: Operations[Name]['query'] extends { page?: number; pageSize?: number } ? Name : never }[ReadName],
  ReadName
>;

const pageSize = 100;

/** A list that the API gives in numbered pages, page after page. `rowsOf` takes the rows out of an answer. */
export function usePages<Name extends PagesName, Row>(
  name: Name,
  query: Input<Name>['query'],
  rowsOf: (answer: Answer<Name>) => Row[],
): CursorList<Row> {
  const organization = useOrganization();
  const { data, error, isLoading, isFetching, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: [organization, name, query, 'pages'],
    queryFn: async ({ signal, pageParam }) => {
      const paged = { query: { ...query, page: pageParam, pageSize } };
      return await call(name, paged as Input<Name>, { organization, signal });
    },
    initialPageParam: 1,
    getNextPageParam: (answer, _all, page) => (rowsOf(answer).length < pageSize ? undefined : page + 1),
    maxPages: 100,
  });
  return {
    rows: (data?.pages ?? []).flatMap(rowsOf),
    scanned: null,
    error: error instanceof ApiError ? error : null,
    isLoading,
    isRefreshing: isFetching && !isLoading,
    hasMore: hasNextPage,
    loadMore: () => {
      if (!isFetching) void fetchNextPage();
    },
    refresh: () => void refetch(),
  };
}

/** A call that changes something; what has been read of the organization is read again after it. */
export function useWrite<Name extends WriteName>(name: Name): UseMutationResult<Answer<Name>, ApiError, Input<Name>> {
  const organization = useOrganization();
  const client = useQueryClient();
  return useMutation<Answer<Name>, ApiError, Input<Name>>({
    mutationFn: (input) => call(name, input, { organization }),
    onSettled: () => client.invalidateQueries({ queryKey: [organization] }),
  });
}
