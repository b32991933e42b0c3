import { useCallback, useMemo, useRef, useState } from 'react';
import type { CheckedRows } from '../ui/rows.tsx';
import { type Keys, useKeys } from './keys.ts';
import type { CursorList } from './use-api.ts';

export interface CheckedOptions<Row> {
  list: CursorList<Row>;
  keyOf: (row: Row) => string;
  /** Key of the selected row, which the keys check. */
  selected: string | null;
  isOn: boolean;
}

export interface Checked<Row> {
  boxes: CheckedRows;
  /** The checked rows as they were read last. */
  rows: readonly Row[];
  /** How many of them the list no longer has. */
  gone: number;
  clear: () => void;
}

/** The rows of a list that are checked, until it lists something else. `x` checks the selected row, Shift X all from the last checked one, Escape clears the selection. */
export function useChecked<Row>({ list: { key: of, rows }, keyOf, selected, isOn }: CheckedOptions<Row>): Checked<Row> {
  const [state, setState] = useState<{ of: string; byKey: ReadonlyMap<string, Row> }>({ of, byKey: new Map() });
  const byKey = useMemo(() => (state.of === of ? state.byKey : new Map<string, Row>()), [state, of]);
  const listed = useMemo(() => new Map(isOn ? rows.map((row) => [keyOf(row), row]) : []), [rows, keyOf, isOn]);
  const last = useRef<string | null>(null);
  const set = useCallback((next: ReadonlyMap<string, Row>) => setState({ of, byKey: next }), [of]);
  const check = useCallback(
    (key: string, isRange: boolean): void => {
      const keys = [...listed.keys()];
      const [to, from] = [keys.indexOf(key), isRange && last.current !== null ? keys.indexOf(last.current) : -1];
      last.current = key;
      const next = new Map(byKey);
      const row = listed.get(key);
      if (from >= 0 && to >= 0) {
        for (const each of keys.slice(Math.min(from, to), Math.max(from, to) + 1)) {
          const between = listed.get(each);
          if (between !== undefined) next.set(each, between);
        }
      } else if (!next.delete(key) && row !== undefined) next.set(key, row);
      set(next);
    },
    [listed, byKey, set],
  );
  const clear = useCallback(() => set(new Map()), [set]);
  const checkAll = useCallback((isChecked: boolean) => (isChecked ? set(listed) : clear()), [set, clear, listed]);
  const has = useCallback((key: string) => byKey.has(key), [byKey]);
  const keys = useMemo((): Keys => {
    const found = new Map<string, () => void>();
    if (!isOn) return found;
    if (selected !== null) {
      found.set('x', () => check(selected, false));
      found.set('X', () => check(selected, true));
    } else if (byKey.size > 0) found.set('Escape', clear);
    return found;
  }, [isOn, selected, check, byKey, clear]);
  useKeys(keys);
  const checkedRows = useMemo(() => [...byKey].map(([key, row]) => listed.get(key) ?? row), [byKey, listed]);
  const gone = useMemo(() => [...byKey.keys()].filter((key) => !listed.has(key)).length, [byKey, listed]);
  return { boxes: { has, count: byKey.size - gone, check, checkAll }, rows: checkedRows, gone, clear };
}
