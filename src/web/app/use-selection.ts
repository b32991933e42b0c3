import { useMemo } from 'react';
import { type Keys, useKeys } from './keys.ts';

export interface SelectionOptions<Row> {
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  selected: string | null;
  select: (key: string | null) => void;
  open?: (key: string) => void;
}

/** `j` and `k` move over the rows, Enter opens the selected one, Escape deselects it. */
export function useSelectionKeys<Row>({ rows, keyOf, selected, select, open }: SelectionOptions<Row>): void {
  const keys = useMemo((): Keys => {
    const at = selected === null ? -1 : rows.findIndex((row) => keyOf(row) === selected);
    const go = (to: number): void => {
      const row = rows[Math.min(Math.max(to, 0), rows.length - 1)];
      if (row !== undefined) select(keyOf(row));
    };
    const found = new Map([
      ['j', () => go(at + 1)],
      ['k', () => go(at - 1)],
    ]);
    if (selected !== null) {
      found.set('Escape', () => select(null));
      if (open !== undefined) found.set('Enter', () => open(selected));
    }
    return found;
  }, [rows, keyOf, selected, select, open]);
  useKeys(keys);
}
