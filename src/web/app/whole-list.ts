import { useEffect, useRef } from 'react';
import type { CursorList } from './use-api.ts';

/** Rows of a list before the reader requests more. */
export const maxRead = 1000;

/** Reads page after page, up to the bound. What was read as a whole stays until the next whole. */
export function useWholeList<Row>(list: CursorList<Row>): CursorList<Row> {
  const { key, rows, isLoading, hasMore, readsOn, loadMore } = list;
  const whole = useRef<{ key: string; rows: Row[] }>(null);
  const isPart = hasMore && rows.length < maxRead;
  useEffect(() => {
    if (isPart && readsOn) loadMore();
    if (!isPart && !isLoading) whole.current = { key, rows };
  });
  const kept = isPart && whole.current?.key === key ? whole.current.rows : null;
  const isReading = isPart && readsOn;
  return {
    ...list,
    rows: kept ?? rows,
    isLoading: isLoading || (isReading && kept === null),
    hasMore: hasMore && !isReading,
    readsOn: false,
  };
}
