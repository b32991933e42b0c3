import { z } from 'zod';
import { queryInteger } from './query.ts';

/** Numbered pages (family A's configuration lists). */
export const pageQuery = {
  page: queryInteger({ min: 1, max: 1_000_000 }).default(1).describe('Number of the page, from 1.'),
  pageSize: queryInteger({ min: 1, max: 100 }).default(20).describe('Records per page.'),
};

/** Of lists that are one answer: clients send it to every list. */
export const wholeListQuery = {
  page: pageQuery.page.describe('Without effect: the list is one answer.'),
  pageSize: pageQuery.pageSize.describe('Without effect: the list is one answer.'),
};

export function pageOf(item: z.ZodType) {
  return z.object({
    data: z.array(item),
    pagination: z.object({ total: z.int().min(0), page: z.int().min(1), pageSize: z.int().min(1) }),
  });
}

/** The members of the page, with what the answer says about it. */
export function cutPage<T>(all: readonly T[], { page, pageSize }: { page: number; pageSize: number }) {
  return { items: all.slice((page - 1) * pageSize, page * pageSize), pagination: { total: all.length, page, pageSize } };
}

/** Pages by cursor (events, deliveries, all of family B). */
export const cursorQuery = {
  limit: queryInteger({ min: 1, max: 100 }).default(50).describe('Most records in the answer.'),
  cursor: z.string().min(1).max(1024).optional().describe('`nextCursor` of the answer before.'),
};

export function cursorPageOf(item: z.ZodType) {
  return z.object({ data: z.array(item), pagination: z.object({ hasMore: z.boolean(), nextCursor: z.string().nullable() }) });
}

export function cursorPagination(nextCursor: string | null): { hasMore: boolean; nextCursor: string | null } {
  return { hasMore: nextCursor !== null, nextCursor };
}
