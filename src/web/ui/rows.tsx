import { useVirtualizer } from '@tanstack/react-virtual';
import { createContext, type KeyboardEvent, memo, type ReactElement, type ReactNode, use, useEffect, useMemo, useRef } from 'react';
import { dayOf, ZoneContext } from './time.tsx';

export interface Column<Row> {
  title: string;
  /** `p2` and `p3` are hidden where space is scarce; `num` is at the end of its cell. */
  className?: string;
  /** The text `0` is dim. */
  cell: (row: Row) => ReactNode;
}

/** Rows that are checked, for an act on several. */
export interface CheckedRows {
  has: (key: string) => boolean;
  /** How many of the rows of the table are. */
  count: number;
  /** `isRange`: all rows from the one that was checked last. */
  check: (key: string, isRange: boolean) => void;
  checkAll: (isChecked: boolean) => void;
}

export interface RowsProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  selected: string | null;
  onSelect: (key: string) => void;
  /** Absent: rows have no boxes. */
  checked?: CheckedRows | undefined;
  /** Called when the end is near. */
  onEnd?: () => void;
  isDense?: boolean;
  /** A number that grows brings the first row into view. */
  toTop?: number;
  /** Whether the first row is in view. */
  onTop?: (isAtTop: boolean) => void;
}

const nearEnd = 20;

/** How close together the rows of tables are. */
export type Density = 'standard' | 'compact';
export const DensityContext = createContext<Density>('standard');

/** Height of a row, in pixels: the token follows the density, the pointer and the reader's font size. */
function heightOf(token: string): number {
  const style = getComputedStyle(document.documentElement);
  return Number.parseFloat(style.getPropertyValue(token)) * Number.parseFloat(style.fontSize);
}

/** A table of any length: only the rows in view are in the page. A click selects a row, and while the table has the focus the arrows do. */
export function Rows<Row>(props: RowsProps<Row>): ReactElement {
  const { label, rows, keyOf, selected, onSelect, checked, onEnd, isDense = false, toTop = 0, onTop } = props;
  const columns = useMemo(() => withLast(props.columns), [props.columns]);
  const frame = useRef<HTMLElement>(null);
  const today = dayOf(new Date(), use(ZoneContext));
  const density = use(DensityContext);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the token follows the density
  const height = useMemo(() => heightOf(isDense ? '--row-dense' : '--row'), [isDense, density]);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => frame.current, estimateSize: () => height, overscan: 4 });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows of another height move
  useEffect(() => virtual.measure(), [height, virtual]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - nearEnd) onEnd?.();
  }, [last, rows.length, onEnd]);
  useEffect(() => {
    if (toTop > 0) frame.current?.scrollTo({ top: 0 });
  }, [toTop]);
  const position = selected === null ? -1 : rows.findIndex((row) => keyOf(row) === selected);
  useEffect(() => {
    if (position >= 0) virtual.scrollToIndex(position, { align: 'auto' });
  }, [position, virtual]);
  const pressed = (event: KeyboardEvent<HTMLElement>): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const row = rows[Math.max(0, position + step)];
    if (step === 0 || row === undefined || event.target !== event.currentTarget) return;
    event.preventDefault();
    onSelect(keyOf(row));
  };
  const columnCount = columns.length + (checked === undefined ? 0 : 1);
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    <section
      className="table-wrap"
      ref={frame}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      onKeyDown={pressed}
      onScroll={onTop === undefined ? undefined : ({ currentTarget }) => onTop(currentTarget.scrollTop < height)}
    >
      <table className={isDense ? 'table is-dense' : 'table'} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {checked === undefined ? null : <AllBox checked={checked} total={rows.length} />}
            {columns.map(({ title, className }) => (
              <th key={title} scope="col" className={className}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer height={before} columns={columnCount} />
          {items.map(({ index }) => {
            const row = rows[index];
            if (row === undefined) return null;
            const key = keyOf(row);
            return (
              <tr
                key={key}
                aria-rowindex={index + 2}
                aria-selected={key === selected ? true : undefined}
                onClick={({ target }) => (isOfBox(target) ? undefined : onSelect(key))}
              >
                {checked === undefined ? null : <Box rowKey={key} isChecked={checked.has(key)} onCheck={checked.check} />}
                <Cells row={row} columns={columns} today={today} />
              </tr>
            );
          })}
          <Spacer height={after} columns={columnCount} />
        </tbody>
      </table>
    </section>
  );
}

/** The row of a box that is pressed is not selected. */
function isOfBox(target: EventTarget): boolean {
  return target instanceof Element && target.closest('.tick') !== null;
}

/** Checks all rows that the table has, or none. */
function AllBox({ checked: { count, checkAll }, total }: { checked: CheckedRows; total: number }): ReactElement {
  const isAll = count > 0 && count === total;
  return (
    <td className="tick">
      <label>
        <input
          type="checkbox"
          aria-label="Select all rows that are listed"
          checked={isAll}
          ref={(box) => {
            if (box !== null) box.indeterminate = count > 0 && !isAll;
          }}
          onChange={() => checkAll(!isAll)}
        />
      </label>
    </td>
  );
}

interface BoxProps {
  rowKey: string;
  isChecked: boolean;
  onCheck: CheckedRows['check'];
}

/** Checks a row. */
const Box = memo(function Box({ rowKey, isChecked, onCheck }: BoxProps): ReactElement {
  return (
    <td className="tick">
      <label>
        <input
          type="checkbox"
          aria-label={`Select ${rowKey}`}
          checked={isChecked}
          onChange={({ nativeEvent }) => onCheck(rowKey, nativeEvent instanceof MouseEvent && nativeEvent.shiftKey)}
        />
      </label>
    </td>
  );
});

/** Marks the last column that stays where those with `p3` are hidden. */
function withLast<Row>(columns: readonly Column<Row>[]): readonly Column<Row>[] {
  const last = columns.findLastIndex(({ className = '' }) => !className.split(' ').includes('p3'));
  return columns.map((column, i) => (i === last ? { ...column, className: `${column.className ?? ''} is-last` } : column));
}

interface CellsProps<Row> {
  row: Row;
  columns: readonly Column<Row>[];
  /** On another day, times have their dates. */
  today: string;
}

/** A row that stays in view is not rendered again while others come and go. */
const Cells = memo(function Cells<Row>({ row, columns }: CellsProps<Row>): ReactElement {
  return (
    <>
      {columns.map(({ title, className, cell }) => {
        const shown = cell(row);
        return (
          <td key={title} className={shown === '0' ? `${className ?? ''} dim` : className}>
            {shown}
          </td>
        );
      })}
    </>
  );
}) as <Row>(props: CellsProps<Row>) => ReactElement;

/** The space of rows that are not in the page. */
function Spacer({ height, columns }: { height: number; columns: number }): ReactElement | null {
  if (height <= 0) return null;
  return (
    <tr>
      <td colSpan={columns} className="spacer-row" style={{ height }} />
    </tr>
  );
}
