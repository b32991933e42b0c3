import { useVirtualizer } from '@tanstack/react-virtual';
import { type AriaRole, type KeyboardEvent, type ReactElement, type ReactNode, useEffect, useRef } from 'react';

export interface VirtualLinesProps {
  label: string;
  count: number;
  line: (index: number) => ReactNode;
  /** The line to bring into view. */
  shown?: number | null;
  role?: AriaRole;
  /** The id of the line that the keyboard is at. */
  active?: string;
  onKeyDown?: (event: KeyboardEvent) => void;
}

const lineHeight = 19;

/** Lines of code of any number: only those in view are in the page. */
export function VirtualLines({ label, count, line, shown = null, role = 'region', active, onKeyDown }: VirtualLinesProps): ReactElement {
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count, getScrollElement: () => frame.current, estimateSize: () => lineHeight, overscan: 20 });
  useEffect(() => {
    if (shown !== null && shown >= 0) virtual.scrollToIndex(shown, { align: 'auto' });
  }, [shown, virtual]);
  const items = virtual.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it is a tree where it has keys
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: its role is a region or a tree
    <div
      className="lines"
      ref={frame}
      role={role}
      aria-label={label}
      aria-activedescendant={active}
      // What scrolls must be reachable by keyboard.
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div className="json" role="presentation">
        <div role="presentation" style={{ height: before }} />
        {items.map(({ index }) => line(index))}
        <div role="presentation" style={{ height: after }} />
      </div>
    </div>
  );
}
