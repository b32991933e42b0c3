import type { PageQuery, ViewPage } from '../../src/data/shard/messages.ts';

/** All members of a list, page by page. */
export async function allPages<T>(list: (page: PageQuery) => Promise<ViewPage<T>>, limit: number): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await list({ limit, ...(cursor === undefined ? {} : { cursor }) });
    all.push(...page.items);
    cursor = page.nextCursor;
  }
  return all;
}
