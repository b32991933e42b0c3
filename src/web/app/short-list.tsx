import type { ReactElement, ReactNode } from 'react';
import { Failure, Loading } from '../ui/notices.tsx';
import type { CursorList } from './use-api.ts';

export interface ShortListProps<Row> {
  /** In the plural, such as `endpoints`. */
  what: string;
  /** Meaning of an empty list. */
  empty: string;
  list: CursorList<Row>;
  /** The terms and details of a row. */
  children: (row: Row) => ReactNode;
}

/** A list that is a part of a page or of a drawer. More rows are read on demand. */
export function ShortList<Row>({ what, empty, list, children }: ShortListProps<Row>): ReactElement {
  const { rows, error, isLoading, hasMore, loadMore } = list;
  return (
    <>
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} />}
      {isLoading ? <Loading what={`the ${what}`} /> : null}
      {!isLoading && error === null && rows.length === 0 ? <p className="small muted">{empty}</p> : null}
      <dl className="kv is-tight">{rows.map(children)}</dl>
      {hasMore ? (
        <button type="button" className="btn is-sm" onClick={loadMore}>
          More {what}
        </button>
      ) : null}
    </>
  );
}
