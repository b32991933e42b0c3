import { DialogHeading } from '@ariakit/react';
import type { ReactElement, ReactNode } from 'react';
import { Overlay } from './overlay.tsx';

export interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** A question or a text above the page. */
export function Dialog({ title, isOpen, onClose, children }: DialogProps): ReactElement {
  return (
    <Overlay isOpen={isOpen} onClose={onClose} className="pop dialog">
      <DialogHeading>{title}</DialogHeading>
      {children}
    </Overlay>
  );
}
