import { type ReactElement, type ReactNode, useState } from 'react';
import type { ApiError } from '../api/client.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { offerUndo } from '../ui/toast.tsx';

/** Error of a failed act. */
function outcomeWords({ code, isUnknown, wasKeyed }: ApiError, within: string): string {
  if (code === 'FIELD_MANAGED') return 'Its declaration owns this.';
  // The first request with the key may still be under way.
  if (code === 'IDEMPOTENCY_CONFLICT') return 'This request changed nothing.';
  if (!isUnknown) return 'Nothing was changed.';
  const again = wasKeyed ? ` A second press${within} sends the same request: it is carried out once, and gives the same answer.` : '';
  return `It is unknown whether this was done.${again}`;
}

/** Why the API did not do it, or that the result is unknown. What Git owns is changed there. `isKept`: a second press is the same request at any time. */
export function Refusal({ error, isKept = false }: { error: ApiError | null; isKept?: boolean }): ReactElement | null {
  if (error === null) return null;
  return (
    <div className="note is-bad" role="alert">
      <Icon name={error.code === 'FIELD_MANAGED' ? 'git' : 'fail'} />
      <div>
        <p>
          <strong>{outcomeWords(error, isKept ? '' : ' within 2 minutes')}</strong> {error.message}
        </p>
        {error.requestId === null ? null : (
          <p className="small">
            Request <code>{error.requestId}</code>
          </p>
        )}
      </div>
    </div>
  );
}

export interface WriteState {
  mutate: () => void;
  isPending: boolean;
  error: ApiError | null;
}

export interface Switched<Sent> {
  name: string;
  isOn: boolean;
  change: { mutateAsync: (input: Sent) => Promise<unknown>; isPending: boolean; error: ApiError | null };
  inputOf: (isOn: boolean) => Sent;
}

/** Turns a resource on or off, and offers to undo that. */
export function switchWrite<Sent>({ name, isOn, change, inputOf }: Switched<Sent>): WriteState {
  const { mutateAsync, isPending, error } = change;
  const undo = (): Promise<unknown> => mutateAsync(inputOf(isOn));
  // What is refused is shown where the button is.
  const mutate = (): void =>
    void mutateAsync(inputOf(!isOn)).then(
      () =>
        offerUndo({
          text: `${name} is ${isOn ? 'disabled' : 'enabled'}.`,
          undoneText: `Undone: ${name} is ${isOn ? 'enabled' : 'disabled'} again.`,
          undo,
        }),
      () => undefined,
    );
  return { mutate, isPending, error };
}

/** The change of an application or endpoint that is turned on or off. Undone, it is disabled for the reason that it had. */
export function disabledChange(isOn: boolean, disabledReason: string | null): { isDisabled: boolean; disabledReason?: string } {
  return { isDisabled: !isOn, ...(!isOn && disabledReason !== null && { disabledReason }) };
}

/** Turns a resource on or off. */
export function SwitchButton({ isOn, write }: { isOn: boolean; write: WriteState }): ReactElement {
  return (
    <button type="button" className="btn" disabled={write.isPending} onClick={write.mutate}>
      <Icon name={isOn ? 'pause' : 'play'} />
      {isOn ? 'Disable' : 'Enable'}
    </button>
  );
}

export interface ConfirmedActProps {
  /** The button, such as `Delete source`. */
  word: string;
  question: string;
  write: WriteState;
  isSmall?: boolean;
  /** Its effect on messages and on other resources. */
  children: ReactNode;
}

/** An act that is confirmed first: the button opens a dialog, which names the effect. */
export function ConfirmedAct({ word, question, write, isSmall = false, children }: ConfirmedActProps): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={`btn is-danger${isSmall ? ' is-sm' : ''}`} onClick={() => setOpen(true)}>
        {word}…
      </button>
      <Dialog title={question} isOpen={isOpen} onClose={() => setOpen(false)}>
        {children}
        <Refusal error={write.error} />
        <div className="btn-row is-end">
          <button type="button" className="btn" onClick={() => setOpen(false)}>
            Keep it
          </button>
          <button type="button" className="btn is-danger" disabled={write.isPending} onClick={write.mutate}>
            {word}
          </button>
        </div>
      </Dialog>
    </>
  );
}
