import { z } from 'zod';
import { queryInteger } from './query.ts';

const page = queryInteger({ min: 1, max: 1_000_000 });
const pageSize = queryInteger({ min: 1, max: 100 });
const defaults = { page: 1, pageSize: 20 };

/** Numbered pages, of the lists of configuration. */
export const pageQuery = {
  page: page.default(defaults.page).describe('Number of the page, from 1.'),
  pageSize: pageSize.default(defaults.pageSize).describe('Records per page.'),
};

/** Query of lists that are one response unless pages are requested. */
export const optionalPageQuery = {
  page: page.optional().describe('Number of the page, from 1. Without page and pageSize the list is one answer.'),
  pageSize: pageSize.optional().describe(`Records per page; ${defaults.pageSize} where only page is sent.`),
};

const pagination = z
  .object({
    total: z.int().min(0).describe('Records on all pages.'),
    page: z.int().min(1).describe('Number of this page.'),
    pageSize: z.int().min(1).describe('Most records on a page.'),
  })
  .meta({ id: 'Pagination', description: 'Which page this is.' });

export function pageOf(item: z.ZodType) {
  return z.object({ data: z.array(item).describe('The records.'), pagination });
}

/** The members of the page, with the paging fields of the answer. */
export function cutPage<T>(all: readonly T[], { page, pageSize }: { page: number; pageSize: number }) {
  return { items: all.slice((page - 1) * pageSize, page * pageSize), pagination: { total: all.length, page, pageSize } };
}

/** The members of the requested page; without one all, at most `largest`. Past the last page there are none. */
export function optionalPage<T>(
  all: readonly T[],
  sent: { page?: number | undefined; pageSize?: number | undefined },
  largest?: number,
): T[] {
  if (sent.page === undefined && sent.pageSize === undefined) return all.slice(0, largest);
  return cutPage(all, { page: sent.page ?? defaults.page, pageSize: sent.pageSize ?? defaults.pageSize }).items;
}

/** Pages by cursor, of events, of deliveries and of the webhook subscription API. */
export const cursorQuery = {
  limit: queryInteger({ min: 1, max: 100 }).default(50).describe('Most records in the answer.'),
  cursor: z.string().min(1).max(1024).optional().describe('`nextCursor` of the answer before.'),
};

/** Text for descriptions of lists with filters. */
export const pagesAreFilled = 'A page may be short: `hasMore` is true while there are more.';
export const searchesEnd = 'With `where` a page may be empty and lead on.';
export const unknownIds = 'A filter by an unknown id or event type without history is 404.';

export const cursorPaginationRecord = z
  .object({
    hasMore: z
      .boolean()
      .describe(
        'Whether there is a next page. A page is shorter than `limit` only at the end of the list, or when a filter matches so rarely that the search for more takes a second.',
      ),
    nextCursor: z.string().nullable().describe('What `cursor` of the next request is; null on the last page.'),
    scanned: z.int().min(0).optional().describe('Of a list with filters: how many records, or index entries, were read for the page.'),
  })
  .meta({ id: 'CursorPagination', description: 'Where the next page begins.' });

export function cursorPageOf(item: z.ZodType) {
  return z.object({ data: z.array(item).describe('The records.'), pagination: cursorPaginationRecord });
}

/** Paging fields of a filtered page. */
export function scannedPagination({ nextCursor, scanned }: { nextCursor: string | null; scanned: number }) {
  return { ...cursorPagination(nextCursor), scanned };
}

export function cursorPagination(nextCursor: string | null): { hasMore: boolean; nextCursor: string | null } {
  return { hasMore: nextCursor !== null, nextCursor };
}
