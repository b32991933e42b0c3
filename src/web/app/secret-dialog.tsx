import { type ReactElement, type ReactNode, useRef } from 'react';
import { CopyButton } from '../ui/copy.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { useLeaveQuestion } from './leave-question.tsx';

export interface ShownSecret {
  secret: string;
  /** Public part of the key that is beside it; null: there is none. */
  publicKey: string | null;
}

export interface SecretGuard {
  /** From now on the page asks before it closes. */
  hold: () => void;
  letGo: () => void;
  /** Content of the open dialog. */
  question: ReactElement;
}

const signingSecret = { noun: 'secret', remedy: 'rotate it' };

/** Asks before the page is left while a secret is on its way or is shown. `remedy`: other ways to get one. */
export function useSecretGuard({ noun, remedy } = signingSecret): SecretGuard {
  const isHeld = useRef(false);
  const question = useLeaveQuestion({
    title: `Leave without the ${noun}?`,
    isNeeded: () => isHeld.current,
    children: <p>It is not shown again. If you have not stored it, you have to {remedy}.</p>,
  });
  return {
    hold: () => {
      isHeld.current = true;
    },
    letGo: () => {
      isHeld.current = false;
    },
    question,
  };
}

export interface ShownOnceProps {
  title: string;
  guard: SecretGuard;
  /** The reader has stored it. */
  onStored: () => void;
  children: ReactNode;
}

/** Shows something for the only time. Only its button closes it, and the page asks before it is left. */
export function ShownOnce({ title, guard, onStored, children }: ShownOnceProps): ReactElement {
  return (
    <Dialog title={title} isOpen needsAct onClose={onStored}>
      {children}
      <div className="btn-row is-end">
        <button
          type="button"
          className="btn is-primary"
          onClick={() => {
            guard.letGo();
            onStored();
          }}
        >
          I have stored it
        </button>
      </div>
      {guard.question}
    </Dialog>
  );
}

export interface SecretDialogProps extends ShownSecret {
  guard: SecretGuard;
  /** The reader has stored it. */
  onStored: () => void;
  /** Additional information. */
  children?: ReactNode;
}

/** Shows a signing secret for the only time. */
export function SecretDialog({ secret, publicKey, guard, onStored, children }: SecretDialogProps): ReactElement {
  return (
    <ShownOnce title="Store the signing secret" guard={guard} onStored={onStored}>
      <p>The receiver verifies {publicKey === null ? 'its messages' : 'v1 signatures'} with this secret. It is not shown again.</p>
      <p className="row">
        <code>{secret}</code>
        <CopyButton text={secret} label="Copy secret" />
      </p>
      {publicKey === null ? null : (
        <>
          <p>It verifies v1a signatures with this public key, which is no secret and stays readable.</p>
          <p className="row">
            <code>{publicKey}</code>
            <CopyButton text={publicKey} label="Copy public key" />
          </p>
        </>
      )}
      {children}
    </ShownOnce>
  );
}
