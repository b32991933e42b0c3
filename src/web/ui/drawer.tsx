import type { ReactElement, ReactNode } from 'react';
import { Icon } from './icon.tsx';

export interface DrawerProps {
  label: string;
  head: ReactNode;
  foot?: ReactNode;
  onClose: () => void;
  children: ReactNode;
}

/** What a list shows of its selected row, beside it. */
export function Drawer({ label, head, foot, onClose, children }: DrawerProps): ReactElement {
  return (
    <aside className="drawer" aria-label={label}>
      <div className="drawer-head">
        {head}
        <button className="btn is-quiet is-sm is-icon" type="button" aria-label="Close" title="Close" onClick={onClose}>
          <Icon name="x" />
        </button>
      </div>
      {children}
      {foot === undefined ? null : <div className="drawer-foot">{foot}</div>}
    </aside>
  );
}
