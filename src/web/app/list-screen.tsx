import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, type ReactNode, type RefObject, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Mark } from '../ui/charts.tsx';
import { FilterBar, type FilterField, type FilterValues } from '../ui/filters.tsx';
import { count, quantityOf } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { type Column, Rows } from '../ui/rows.tsx';
import type { CountedList } from './list-counts.ts';
import type { ListName } from './list-filters.ts';
import { ListHistogram } from './list-histogram.tsx';
import type { CursorList } from './use-api.ts';
import { useChecked } from './use-checked.ts';
import { useSelectionKeys } from './use-selection.ts';
import { ViewsMenu } from './views-menu.tsx';

export interface ListScreenProps<Row> {
  /** What it lists, such as `events`. */
  what: string;
  list: CursorList<Row>;
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  fields: readonly FilterField[];
  /** Search parameters of the address: filters, and the selected row as `at`. */
  search: FilterValues;
  /** What Enter does; absent: the drawer shows all there is. */
  open?: (key: string) => void;
  drawer: (key: string, close: () => void) => ReactNode;
  /** What can be done with rows that are checked; `clear` drops the selection. Absent: rows cannot be checked. */
  acts?: ((rows: readonly Row[], clear: () => void) => ReactNode) | undefined;
  /** Shown above the filters. */
  head?: ReactNode;
  /** What the histogram above the list counts. Absent: there is none. */
  counts?: CountedList;
  /** What the histogram marks. */
  marks?: readonly Mark[];
  /** Absent: the list has no views. */
  views?: ListName;
  /** Shown where there is nothing at all. */
  empty: ReactNode;
}

/** A list with filters and a drawer; all of its state is in the address. */
export function ListScreen<Row>({
  what,
  list,
  columns,
  keyOf,
  fields,
  search,
  open,
  drawer,
  acts,
  head,
  counts,
  marks,
  views,
  empty,
}: ListScreenProps<Row>): ReactElement {
  const navigate = useNavigate();
  const { rows, error, isLoading, hasMore, readsOn, isCut, scanned, loadMore, refresh } = list;
  const { at = null, filters } = useMemo(() => {
    const { at: place, ...others } = search;
    return { at: place, filters: others };
  }, [search]);
  const setSearch = useCallback(
    (next: FilterValues): void => {
      const none = Object.fromEntries(fields.map(({ name }) => [name, undefined]));
      void navigate({
        to: '.',
        search: ((before: FilterValues) => ({ ...before, ...none, at: undefined, ...next })) as never,
        replace: true,
      });
    },
    [navigate, fields],
  );
  const setRange = useCallback((range: FilterValues) => setSearch({ ...filters, ...range }), [setSearch, filters]);
  const select = useCallback(
    (key: string | null) =>
      void navigate({ to: '.', search: ((before: FilterValues) => ({ ...before, at: key ?? undefined })) as never, replace: true }),
    [navigate],
  );
  useSelectionKeys({ rows, keyOf, selected: at, select, open });
  const checked = useChecked({ list, keyOf, selected: at, isOn: acts !== undefined });
  const hasBar = acts !== undefined && checked.rows.length > 0;
  const frame = useFocusAfter(hasBar);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const isNotEmpty = isFiltered || rows.length > 0;
  // The histogram keeps its focus while the list is reloaded.
  const [hasCounts, setHasCounts] = useState(false);
  if (!isLoading && error === null && hasCounts !== isNotEmpty) setHasCounts(isNotEmpty);
  return (
    <>
      <div>
        {head}
        {fields.length === 0 ? null : (
          <FilterBar fields={fields} values={filters} onChange={setSearch}>
            {views === undefined ? null : <ViewsMenu list={views} />}
          </FilterBar>
        )}
        {counts === undefined || !hasCounts ? null : (
          <ListHistogram of={counts} fields={fields} filters={filters} marks={marks} onRange={setRange} />
        )}
        {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={refresh} />}
        {isLoading ? <Loading what={what} /> : null}
      </div>
      {!isLoading && error === null && rows.length === 0 ? (
        isFiltered ? (
          <NoMatch what={what} scanned={scanned} hasMore={hasMore} loadMore={loadMore} clear={() => setSearch({})} />
        ) : (
          empty
        )
      ) : null}
      {rows.length === 0 && !hasBar ? null : (
        <div className="split">
          <div className="live-list" ref={frame}>
            {rows.length === 0 ? null : (
              <Rows
                label={what}
                columns={columns}
                rows={rows}
                keyOf={keyOf}
                selected={at}
                onSelect={select}
                checked={acts === undefined ? undefined : checked.boxes}
                onEnd={readsOn ? loadMore : undefined}
              />
            )}
            {acts === undefined || !hasBar ? null : (
              <section className="table-foot is-checked" aria-label="Selected rows">
                <strong role="status">{count(checked.rows.length)} selected</strong>
                {checked.gone === 0 ? null : <span>{count(checked.gone)} of them not in the list any more</span>}
                <span className="spacer" />
                {acts(checked.rows, checked.clear)}
                <button type="button" className="btn is-quiet is-sm" onClick={checked.clear}>
                  Clear
                </button>
              </section>
            )}
            {rows.length === 0 ? null : (
              <div className="table-foot" role="status">
                <span>
                  {hasMore ? `${count(rows.length)} or more ${what}` : quantityOf(rows.length, what)}
                  {scanned === null || scanned === rows.length ? '' : `, ${count(scanned)} read`}
                </span>
                {isCut ? <span>The list ends here. A filter finds older ones.</span> : null}
                {hasMore && !readsOn ? (
                  <button type="button" className="btn is-sm" onClick={loadMore}>
                    Look further back
                  </button>
                ) : null}
                <span className="spacer" />
                <span className="wide-only">
                  <kbd>J</kbd> <kbd>K</kbd>
                </span>
              </div>
            )}
          </div>
          {at === null ? null : drawer(at, () => select(null))}
        </div>
      )}
    </>
  );
}

/** The frame of a list. Its table has the focus after the bar that had it is gone, or the page where the list is empty. */
function useFocusAfter(hasBar: boolean): RefObject<HTMLDivElement | null> {
  const frame = useRef<HTMLDivElement>(null);
  const had = useRef(false);
  useEffect(() => {
    const isGone = had.current && !hasBar;
    had.current = hasBar;
    if (!isGone) return;
    // A dialog of the bar gives the page free after this.
    const timer = setTimeout(() => {
      if (document.activeElement === document.body)
        (frame.current?.querySelector<HTMLElement>('.table-wrap') ?? document.getElementById('main'))?.focus();
    });
    return () => clearTimeout(timer);
  }, [hasBar]);
  return frame;
}

interface NoMatchProps {
  what: string;
  scanned: number | null;
  hasMore: boolean;
  loadMore: () => void;
  clear: () => void;
}

function NoMatch({ what, scanned, hasMore, loadMore, clear }: NoMatchProps): ReactElement {
  return (
    <Empty title={`No ${what} match`}>
      {scanned === null ? null : <p>{scanned === 1 ? '1 was' : `${count(scanned)} were`} looked at.</p>}
      <div className="btn-row">
        <button type="button" className="btn" onClick={clear}>
          Drop all filters
        </button>
        {hasMore ? (
          <button type="button" className="btn" onClick={loadMore}>
            Look further back
          </button>
        ) : null}
      </div>
    </Empty>
  );
}
