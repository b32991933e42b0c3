import { useBlocker } from '@tanstack/react-router';
import { type ReactElement, type ReactNode, useRef } from 'react';
import { Confirm } from '../ui/confirm.tsx';
import { CopyButton } from '../ui/copy.tsx';
import { Dialog } from '../ui/dialog.tsx';

export interface ShownSecret {
  secret: string;
  /** Of the key that is beside it; null: there is none. */
  publicKey: string | null;
}

export interface SecretDialogProps extends ShownSecret {
  /** The reader has stored it. */
  onStored: () => void;
  /** What else there is to know. */
  children?: ReactNode;
}

/** Shows a signing secret for the only time. Nothing but its button closes it, and whoever leaves the page is asked. */
export function SecretDialog({ secret, publicKey, onStored, children }: SecretDialogProps): ReactElement {
  const isStored = useRef(false);
  const blocker = useBlocker({
    shouldBlockFn: () => !isStored.current,
    enableBeforeUnload: () => !isStored.current,
    withResolver: true,
  });
  return (
    <Dialog title="Store the signing secret" isOpen needsAct onClose={onStored}>
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
      <div className="btn-row is-end">
        <button
          type="button"
          className="btn is-primary"
          onClick={() => {
            isStored.current = true;
            onStored();
          }}
        >
          I have stored it
        </button>
      </div>
      <Confirm
        title="Leave without the secret?"
        act="Leave"
        keep="Stay"
        isDanger
        isOpen={blocker.status === 'blocked'}
        isPending={false}
        error={null}
        onClose={() => blocker.reset?.()}
        onAct={() => blocker.proceed?.()}
      >
        <p>It is not shown again. Whoever has not stored it has to rotate it.</p>
      </Confirm>
    </Dialog>
  );
}
