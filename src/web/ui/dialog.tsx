import { Dialog as Ariakit, DialogHeading, DialogProvider } from '@ariakit/react';
import type { ReactElement, ReactNode } from 'react';

export interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** A question or a text above the page; Escape closes it, and the focus goes back. */
export function Dialog({ title, isOpen, onClose, children }: DialogProps): ReactElement {
  return (
    <DialogProvider open={isOpen} setOpen={(open) => (open ? undefined : onClose())}>
      <Ariakit className="pop dialog" backdrop={<div className="scrim" />} unmountOnHide>
        <DialogHeading>{title}</DialogHeading>
        {children}
      </Ariakit>
    </DialogProvider>
  );
}
