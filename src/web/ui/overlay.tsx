import { Dialog, DialogProvider } from '@ariakit/react';
import type { ReactElement, ReactNode } from 'react';

export interface OverlayProps {
  isOpen: boolean;
  onClose: () => void;
  className: string;
  /** Absent where a heading names it. */
  label?: string;
  /** Neither Escape nor a click beside it closes it. */
  needsAct?: boolean;
  children: ReactNode;
}

/** Something above the page, which waits for it. Escape and a click beside it close it unless it needs an act, and the focus goes back. */
export function Overlay({ isOpen, onClose, className, label, needsAct = false, children }: OverlayProps): ReactElement {
  return (
    <DialogProvider open={isOpen} setOpen={(open) => (open ? undefined : onClose())}>
      <Dialog
        className={className}
        aria-label={label}
        backdrop={false}
        unmountOnHide
        hideOnEscape={!needsAct}
        hideOnInteractOutside={!needsAct}
        render={(props) => (
          <div className="scrim">
            <div {...props} />
          </div>
        )}
      >
        {children}
      </Dialog>
    </DialogProvider>
  );
}
