import { DialogHeading } from '@ariakit/react';
import type { ReactElement, ReactNode } from 'react';
import { Overlay } from './overlay.tsx';

export interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  /** Only what is in it closes it. */
  needsAct?: boolean;
  children: ReactNode;
}

/** A question or a text above the page. */
export function Dialog({ title, isOpen, onClose, needsAct, children }: DialogProps): ReactElement {
  return (
    <Overlay isOpen={isOpen} onClose={onClose} needsAct={needsAct} className="pop dialog">
      <DialogHeading>{title}</DialogHeading>
      {children}
    </Overlay>
  );
}
