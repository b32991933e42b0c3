import type { ReactElement, ReactNode } from 'react';
import { Dialog } from './dialog.tsx';
import { Failure } from './notices.tsx';

export interface ConfirmProps {
  title: string;
  /** Verb and object. */
  act: string;
  keep: string;
  isDanger?: boolean;
  isOpen: boolean;
  isPending: boolean;
  /** Why the act was refused. */
  error: { message: string; requestId: string | null } | null;
  onClose: () => void;
  onAct: () => void;
  /** The effect. */
  children: ReactNode;
}

/** Asks before something that cannot be undone. */
export function Confirm({
  title,
  act,
  keep,
  isDanger = false,
  isOpen,
  isPending,
  error,
  onClose,
  onAct,
  children,
}: ConfirmProps): ReactElement {
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose}>
      {children}
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} />}
      <div className="btn-row is-end">
        <button type="button" className="btn is-quiet" onClick={onClose}>
          {keep}
        </button>
        <button type="button" className={isDanger ? 'btn is-danger' : 'btn is-primary'} disabled={isPending} onClick={onAct}>
          {act}
        </button>
      </div>
    </Dialog>
  );
}
